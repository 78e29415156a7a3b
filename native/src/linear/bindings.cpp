// Python's view of rows of features: shapes are checked here, the interpreter lock is released.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/bindings.hpp"
#include "linear/linear.hpp"

namespace mercer::linear {
namespace {

using Matrix = MatrixOf<double>;
using Vector = VectorOf<double>;
using Numbers = VectorOf<std::int64_t>;
using Columns = VectorOf<std::int32_t>;
using Groups = VectorOf<std::int8_t>;

constexpr int kMostGroups = INT8_MAX + 1;  // their numbers have eight bits

DenseRows dense(const Matrix& F, const std::optional<Numbers>& index) {
  const Size rows = static_cast<Size>(F.shape(0));
  return {F.data(), index ? static_cast<Size>(index->shape(0)) : rows,
          static_cast<Size>(F.shape(1)), row_numbers(index, rows)};
}

Array<double> multiply(Matrix F, std::optional<Numbers> index, Vector w, int threads) {
  const DenseRows rows = dense(F, index);
  require(static_cast<Size>(w.shape(0)) == rows.width, "w must have one entry per column");
  Buffer<double> out(rows.count);
  unlocked([&](Poll& poll) { times(rows, w.data(), out.data(), usable(threads), poll); });
  return as_array(std::move(out), {static_cast<std::size_t>(rows.count)});
}

Array<double> multiply_back(Matrix F, std::optional<Numbers> index, Vector x, int threads) {
  const DenseRows rows = dense(F, index);
  require(static_cast<Size>(x.shape(0)) == rows.count, "x must have one entry per row");
  Buffer<double> out(rows.width);
  unlocked([&](Poll& poll) { pull(rows, x.data(), out.data(), usable(threads), poll); });
  return as_array(std::move(out), {static_cast<std::size_t>(rows.width)});
}

Array<double> weighted(Matrix F, std::optional<Numbers> index, Vector centre, Groups group,
                       int groups, Vector weight, int threads) {
  const DenseRows rows = dense(F, index);
  require(static_cast<Size>(centre.shape(0)) == rows.width, "one centre per column");
  require(static_cast<Size>(group.shape(0)) == rows.count &&
              static_cast<Size>(weight.shape(0)) == rows.count,
          "group and weight must have one entry per row");
  require(groups >= 0 && groups <= kMostGroups && std::all_of(group.data(), group.data() + rows.count,
                                     [&](int g) { return g < groups; }),
          "a group is out of range");
  const std::size_t m = static_cast<std::size_t>(rows.width + groups);
  Buffer<double> out(m * m);
  unlocked([&](Poll& poll) {
    gram(rows, centre.data(), group.data(), groups, weight.data(), out.data(),
         usable(threads), poll);
  });
  return as_array(std::move(out), {m, m});
}

// The vectors of a box, checked; held by the caller while the computation runs.
struct Sides {
  Vector linear, lower, upper;
  std::optional<Vector> shift, kink;
  Groups group;
  Vector totals;

  Box box(Size count) const {
    const auto fits = [&](const auto& v) { return static_cast<Size>(v.shape(0)) == count; };
    require(fits(linear) && fits(lower) && fits(upper) && fits(group) &&
                (!shift || fits(*shift)) && (!kink || fits(*kink)),
            "every vector must have one entry per row");
    const int groups = static_cast<int>(std::min<std::size_t>(totals.shape(0), kMostGroups + 1));
    require(groups <= kMostGroups && std::all_of(group.data(), group.data() + count, [&](int g) { return g < groups; }),
            "a group is out of range");
    return {linear.data(), lower.data(), upper.data(), shift ? shift->data() : nullptr,
            kink ? kink->data() : nullptr, group.data(), totals.data(), groups};
  }
};

template <class Rows>
nb::tuple run(const Rows& rows, const Sides& sides, Vector start, Vector offsets, double tol,
              std::int64_t max_epochs, nb::object callback) {
  const Box box = sides.box(rows.count);
  require_tolerance(tol);
  require_poll(callback);
  require(static_cast<Size>(start.shape(0)) == rows.count, "start must have one entry per row");
  require(static_cast<Size>(offsets.shape(0)) == box.groups, "one offset per group");
  Buffer<double> b(rows.count), weights(rows.width), r(box.groups);
  std::copy_n(start.data(), rows.count, b.data());
  std::copy_n(offsets.data(), box.groups, r.data());
  Descent sofar{0, std::numeric_limits<double>::infinity(), 0.0};
  std::function<bool()> ask;
  if (!callback.is_none())
    ask = [&] { return nb::cast<bool>(callback(sofar.epochs, sofar.violation)); };
  unlocked(
      [&](Poll& poll) {
        descend(rows, box, b.data(), weights.data(), r.data(), tol, max_epochs, poll, sofar);
      },
      std::move(ask));
  return nb::make_tuple(as_array(std::move(b), {static_cast<std::size_t>(rows.count)}),
                        as_array(std::move(r), {static_cast<std::size_t>(box.groups)}),
                        sofar.epochs, sofar.violation);
}

nb::tuple run_dense(Matrix F, std::optional<Numbers> index, Vector linear, Vector lower,
                    Vector upper, std::optional<Vector> shift, std::optional<Vector> kink,
                    Groups group, Vector totals, Vector start, Vector offsets, double tol,
                    std::int64_t max_epochs, nb::object poll) {
  const Sides sides{linear, lower, upper, shift, kink, group, totals};
  return run(dense(F, index), sides, start, offsets, tol, max_epochs, std::move(poll));
}

nb::tuple run_sparse(Numbers begin, Columns columns, Vector values, std::int64_t width,
                     std::optional<Numbers> index, Vector linear, Vector lower, Vector upper,
                     std::optional<Vector> shift, std::optional<Vector> kink, Groups group,
                     Vector totals, Vector start, Vector offsets, double tol,
                     std::int64_t max_epochs, nb::object poll) {
  const Size rows = sparse_rows(begin, columns, values, width);
  const SparseRows sparse{begin.data(), columns.data(), values.data(),
                          index ? static_cast<Size>(index->shape(0)) : rows, width,
                          row_numbers(index, rows)};
  const Sides sides{linear, lower, upper, shift, kink, group, totals};
  return run(sparse, sides, start, offsets, tol, max_epochs, std::move(poll));
}

}  // namespace
}  // namespace mercer::linear

void bind_linear(nanobind::module_& m) {
  using namespace mercer::linear;
  namespace nb = nanobind;
  m.def("linear_times", &multiply, nb::arg("F").noconvert(), nb::arg("index").none(),
        nb::arg("w"), nb::arg("threads"));
  m.def("linear_pull", &multiply_back, nb::arg("F").noconvert(), nb::arg("index").none(),
        nb::arg("x"), nb::arg("threads"));
  m.def("linear_gram", &weighted, nb::arg("F").noconvert(), nb::arg("index").none(),
        nb::arg("centre"), nb::arg("group"), nb::arg("groups"), nb::arg("weight"),
        nb::arg("threads"));
  m.def("linear_descent", &run_dense, nb::arg("F").noconvert(), nb::arg("index").none(),
        nb::arg("linear"), nb::arg("lower"), nb::arg("upper"), nb::arg("shift").none(),
        nb::arg("kink").none(), nb::arg("group"), nb::arg("totals"), nb::arg("start"),
        nb::arg("offsets"), nb::arg("tol"), nb::arg("max_epochs"), nb::arg("poll").none());
  m.def("linear_descent_sparse", &run_sparse, nb::arg("begin"), nb::arg("columns"),
        nb::arg("values"), nb::arg("width"), nb::arg("index").none(), nb::arg("linear"),
        nb::arg("lower"), nb::arg("upper"), nb::arg("shift").none(), nb::arg("kink").none(),
        nb::arg("group"), nb::arg("totals"), nb::arg("start"), nb::arg("offsets"),
        nb::arg("tol"), nb::arg("max_epochs"), nb::arg("poll").none());
}
