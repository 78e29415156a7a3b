// Python's view of the dense algorithms: shapes are checked here, the interpreter lock is released.
#include <utility>

#include "algebra/band.hpp"
#include "algebra/cholesky.hpp"
#include "runtime/bindings.hpp"

namespace mercer::algebra {
namespace {

using Changed = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // in place

Size factor(Changed A, int threads) {
  const Size n = static_cast<Size>(A.shape(0));
  require(A.shape(1) == A.shape(0), "A must be square");
  return unlocked([&](Poll& poll) { return cholesky(A.data(), n, n, usable(threads), poll); });
}

constexpr int kWidest = 4096;  // of bands: wider ones cost more than they save, and much memory

void require_width(int width) {
  require(width >= 1 && width <= kWidest, "width must be from 1 to 4096");
}

nb::tuple reduce(Changed A, int width, int threads) {
  const std::size_t n = A.shape(0), columns = static_cast<std::size_t>(width) + 1;
  require(A.shape(1) == A.shape(0), "A must be square");
  require_width(width);
  Buffer<double> lower(n * columns), qt;
  unlocked([&](Poll& poll) {
    const Reflections reflections =
        band_reduce(A.data(), static_cast<Size>(n), width, lower.data(), usable(threads), poll);
    qt = Buffer<double>(n * n);
    band_basis(reflections, qt.data(), usable(threads), poll);
  });
  return nb::make_tuple(as_array(std::move(qt), {n, n}), as_array(std::move(lower), {n, columns}));
}

Array<double> inverse_diagonals(MatrixOf<double> Qt, MatrixOf<double> lower, int width,
                                VectorOf<double> shifts, int threads) {
  const std::size_t n = Qt.shape(0), count = shifts.shape(0);
  require(Qt.shape(1) == Qt.shape(0), "Qt must be square");
  require_width(width);
  require(lower.shape(0) == Qt.shape(0) && lower.shape(1) == static_cast<std::size_t>(width) + 1,
          "lower must have shape (n, width + 1)");
  Buffer<double> out(count * n);
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
