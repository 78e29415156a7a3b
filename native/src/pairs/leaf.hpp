// A pairwise statistic bound to its rows: centred, rounded to the working type, packed.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/arena.hpp"
#include "runtime/poll.hpp"
#include "runtime/size.hpp"
#include "tiles/tiles.hpp"

namespace mercer {

// What a computation may use, given anew with every call.
struct Work {
  int threads;
  Poll* poll;
};

// Rows as Python hands them over; only read while the leaf is made.
template <class S>
struct DenseInput {
  const S* values;
  Size rows;
  Size features;
};

template <class T>
struct SparseInput {
  SparseRows<T> entries;
  Size rows;
};

template <class T>
struct SparseCopy {
  Buffer<Size> start;
  Buffer<std::int32_t> feature;
  Buffer<T> value;

  SparseRows<T> view() const { return {start.data(), feature.data(), value.data()}; }
};

// How `kernel` (what the micro kernel sums up) becomes the statistic:
//   factor == 0: it is the statistic;
//   otherwise max(0, x_i + y_j + factor * kernel) with the marginals x and y, where entries that
//   lost too many bits are computed again from the rows (`direct`).
// A leaf of bytes (unit != 0) is unit * (x_i + y_j + factor * kernel). Its buffers hold words of
// 32 bits instead of numbers, four features or one whole number each; the tile loops move them
// like any others.
template <class T>
struct Leaf {
  Statistic statistic = kDot;
  Statistic kernel = kDot;
  int degree = 1;
  T factor = 0;
  T unit = 0;
  Size features = 0;
  bool sparse = false;

  Buffer<T> x_rows;    // dense: n x features
  Buffer<T> y_panels;  // dense: panels of nr rows of Y, each [feature][nr], zero padded

  SparseCopy<T> x_sparse;
  std::unique_ptr<SparseCopy<T>> y_sparse_own;  // null when Y is X
  Size most_slots = 0;                          // of any panel of Y

  Buffer<T> x_margin;
  Buffer<T> y_margin;  // zero padded to whole tiles

  const SparseCopy<T>& y_sparse() const { return y_sparse_own ? *y_sparse_own : x_sparse; }

  // Very wide rows are packed pass by pass, so that the packed copy stays small.
  bool packed_by_pass() const { return kernel != kSymmetricSum && features > 2048; }

  // The statistic of row x and column y from the values themselves; for factor != 0.
  T direct(Size x, Size y, int nr) const;
};

// `y` null means Y is X.
template <class T, class S>
Leaf<T> bind_dense(Statistic statistic, int degree, DenseInput<S> x, const DenseInput<S>* y,
                   const Tiles<T>& tiles, Work work);

// Makes a leaf of bytes if the statistic, the values and the machine allow it, or changes nothing.
template <class S>
bool bind_bytes(Leaf<float>& leaf, DenseInput<S> x, const DenseInput<S>* y,
                const Tiles<float>& tiles, Work work);

template <class T>
Leaf<T> bind_sparse(Statistic statistic, int degree, Size features, SparseInput<T> x,
                    const SparseInput<T>* y, const Tiles<T>& tiles);

}  // namespace mercer
