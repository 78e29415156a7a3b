// Python's view of the dense algorithms: shapes are checked here, the interpreter lock is released.
#include <initializer_list>
#include <utility>

#include "algebra/band.hpp"
#include "algebra/cholesky.hpp"
#include "algebra/simd.hpp"
#include "runtime/bindings.hpp"
#include "runtime/poll.hpp"

namespace mercer::algebra {
namespace {

using Square = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// What every verb does around its computation: `work` runs without the interpreter lock.
template <class Work>
auto unlocked(Work&& work) {
  choose_level();
  Poll poll;
  nb::gil_scoped_release released;
  return work(poll);
}

Size factor(Square A, int threads) {
  const Size n = static_cast<Size>(A.shape(0));
  require(A.shape(1) == A.shape(0), "A must be square");
  return unlocked([&](Poll& poll) { return cholesky(A.data(), n, n, usable(threads), poll); });
}

using Result = nb::ndarray<nb::numpy, double>;

// Hands a buffer over to NumPy.
Result as_array(Buffer&& buffer, std::initializer_list<std::size_t> shape) {
  double* data = buffer.data();
  nb::capsule owner(data, [](void* memory) noexcept { give_memory(memory); });
  buffer.release();
  return Result(data, shape, owner);
}

constexpr int kWidest = 4096;  // of bands: wider ones cost more than they save, and much memory

void require_width(int width) {
  require(width >= 1 && width <= kWidest, "width must be from 1 to 4096");
}

nb::tuple reduce(Square A, int width, int threads) {
  const std::size_t n = A.shape(0), columns = static_cast<std::size_t>(width) + 1;
  require(A.shape(1) == A.shape(0), "A must be square");
  require_width(width);
  Buffer lower(n * columns), qt;
  unlocked([&](Poll& poll) {
    const Reflections reflections =
        band_reduce(A.data(), static_cast<Size>(n), width, lower.data(), usable(threads), poll);
    qt = Buffer(n * n);
    band_basis(reflections, qt.data(), usable(threads), poll);
  });
  return nb::make_tuple(as_array(std::move(qt), {n, n}), as_array(std::move(lower), {n, columns}));
}

using ConstMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Result inverse_diagonals(ConstMatrix Qt, ConstMatrix lower, int width, ConstVector shifts,
                         int threads) {
  const std::size_t n = Qt.shape(0), count = shifts.shape(0);
  require(Qt.shape(1) == Qt.shape(0), "Qt must be square");
  require_width(width);
  require(lower.shape(0) == Qt.shape(0) && lower.shape(1) == static_cast<std::size_t>(width) + 1,
          "lower must have shape (n, width + 1)");
  Buffer out(count * n);
  unlocked([&](Poll& poll) {
    band_inverse_diagonals(Qt.data(), lower.data(), static_cast<Size>(n), width, shifts.data(),
                           static_cast<Size>(count), out.data(), usable(threads), poll);
  });
  return as_array(std::move(out), {count, n});
}

}  // namespace
}  // namespace mercer::algebra

void bind_algebra(nanobind::module_& m) {
  using namespace mercer::algebra;
  namespace nb = nanobind;
  m.def("cholesky", &factor, nb::arg("A").noconvert(), nb::arg("threads"));
  m.def("band_reduce", &reduce, nb::arg("A").noconvert(), nb::arg("width"), nb::arg("threads"));
  m.def("band_inverse_diagonals", &inverse_diagonals, nb::arg("Qt"), nb::arg("lower"),
        nb::arg("width"), nb::arg("shifts"), nb::arg("threads"));
}
