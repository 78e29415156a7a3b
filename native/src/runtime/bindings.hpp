// What all bindings share: how wrong arguments are refused, and how arrays change hands. Nothing
// below the bindings looks at bounds.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/dispatch.hpp"
#include "runtime/poll.hpp"

namespace mercer {

namespace nb = nanobind;

// What most verbs are given: arrays in C order, which are only read.
template <class T>
using VectorOf = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using MatrixOf = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// What is filled, or made anew.
template <class T>
using Result = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// Rows may lie further apart than they are long.
template <class T>
using Square = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

// More threads than any machine has cores for; workers have memory of their own.
constexpr int kMostWorkers = 256;
constexpr std::int64_t kMostColumns = INT32_MAX;  // of sparse rows, which number them in 32 bits

inline void require(bool condition, const char* message) {
  if (!condition) throw nb::value_error(message);
}

// At least the calling thread.
inline int usable(int threads) { return std::clamp(threads, 1, kMostWorkers); }

// Comparisons with NaN are false: a loop would never find that it is done.
inline void require_tolerance(double tol) { require(tol >= 0.0, "tol must not be negative or NaN"); }

template <class Array>
std::int64_t extent(const Array& array, std::size_t axis) {
  return static_cast<std::int64_t>(array.shape(axis));
}

// nb::cast, with words for who passed something else.
template <class T>
T cast_to(nb::handle given, const char* refusal) {
  try {
    return nb::cast<T>(given);
  } catch (const nb::cast_error&) {
    throw nb::type_error(refusal);
  }
}

// nanobind's own conversion of lists must not throw, so that memory that it cannot have would end
// the process.
template <class T>
std::vector<T> read_list(nb::handle given, const char* refusal) {
  std::vector<T> out;
  for (const nb::handle one : given) out.push_back(cast_to<T>(one, refusal));
  return out;
}

// What is asked now and then whether to stop: a function, or None.
inline void require_poll(const nb::object& poll) {
  if (!poll.is_none() && !PyCallable_Check(poll.ptr()))
    throw nb::type_error("poll is a function or None");
}

// Row numbers, or null for all rows in order.
template <class Numbers>
const std::int64_t* row_numbers(const std::optional<Numbers>& index, std::int64_t rows) {
  if (!index) return nullptr;
  const std::int64_t* first = index->data();
  require(std::all_of(first, first + index->shape(0),
                      [&](std::int64_t i) { return i >= 0 && i < rows; }),
          "a row number is out of range");
  return first;
}

// Whether compressed rows describe their values; returns how many rows there are.
template <class Starts, class Columns, class Values>
std::int64_t sparse_rows(const Starts& begin, const Columns& columns, const Values& values,
                         std::int64_t width) {
  const std::int64_t rows = extent(begin, 0) - 1, filled = extent(values, 0);
  require(width >= 0 && width <= kMostColumns, "sparse rows have up to 2147483647 columns");
  require(rows >= 0 && begin.data()[0] == 0 && begin.data()[rows] == filled &&
              extent(columns, 0) == filled &&
              std::is_sorted(begin.data(), begin.data() + rows + 1),
          "the rows do not describe the values");
  require(std::all_of(columns.data(), columns.data() + filled,
                      [&](std::int32_t c) { return c >= 0 && c < width; }),
          "a column is out of range");
  return rows;
}

template <class T>
void require_square(const Square<T>& K) {
  require(K.shape(1) == K.shape(0), "K must be square");
  require(K.shape(0) < 2 || K.stride(1) == 1, "the rows of K must be contiguous");
}

// What every verb does around its computation: `work` runs without the interpreter lock, and `ask`,
// if there is one, now and then with it.
template <class Work>
auto unlocked(Work&& work, std::function<bool()> ask = {}) {
  choose_instruction_set();
  Poll poll(std::move(ask));
  nb::gil_scoped_release released;
  return work(poll);
}

template <class T>
using Array = nb::ndarray<nb::numpy, T>;

// Hands a buffer over to NumPy; kept by us if that fails.
template <class T>
Array<T> as_array(Buffer<T>&& buffer, std::initializer_list<std::size_t> shape) {
  auto kept = std::make_unique<Buffer<T>>(std::move(buffer));
  T* data = kept->data();
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
  kept.release();
  return Array<T>(data, shape, owner);
}

}  // namespace mercer
