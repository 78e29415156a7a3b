// The perceptron's walk over rows: score, compare, and on a mistake add the row.
#include <nanobind/stl/optional.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/bindings.hpp"

namespace mercer::online {
namespace {

using Matrix = MatrixOf<double>;
using Values = VectorOf<double>;
using Numbers = VectorOf<std::int64_t>;
using Columns = VectorOf<std::int32_t>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Constants = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr Size kRowsPerLook = 256;  // between two looks at the clock

// Four sums side by side: one alone would wait for itself, and may not be reordered by a compiler.
double dot(const double* x, const double* w, Size d) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  Size j = 0;
  for (; j + 4 <= d; j += 4) {
    s0 += x[j] * w[j];
    s1 += x[j + 1] * w[j + 1];
    s2 += x[j + 2] * w[j + 2];
    s3 += x[j + 3] * w[j + 3];
  }
  for (; j < d; ++j) s0 += x[j] * w[j];
  return (s0 + s1) + (s2 + s3);
}

struct DenseRows {
  const double* x;
  Size count, width;

  double squared(Size i) const { return dot(x + i * width, x + i * width, width); }
  double score(Size i, const double* w) const { return dot(x + i * width, w, width); }
  template <class Visit>
  void each(Size i, Visit&& visit) const {
    for (Size j = 0; j < width; ++j) visit(j, x[i * width + j]);
  }
};

struct SparseRows {
  const std::int64_t* begin;
  const std::int32_t* columns;
  const double* values;
  Size count, width;

  double squared(Size i) const {
    return dot(values + begin[i], values + begin[i], begin[i + 1] - begin[i]);
  }
  double score(Size i, const double* w) const {
    double s = 0.0;
    for (Size p = begin[i]; p < begin[i + 1]; ++p) s += values[p] * w[columns[p]];
    return s;
  }
  template <class Visit>
  void each(Size i, Visit&& visit) const {
    for (Size p = begin[i]; p < begin[i + 1]; ++p) visit(columns[p], values[p]);
  }
};

// One function for two classes, one for each class otherwise. `late` sums step times change: what
// the mean over all steps lacks of the last weights.
struct Functions {
  double *weights, *bias, *late, *late_bias;
  Size count;
  bool has_bias;

  template <class Rows>
  void add(const Rows& rows, Size i, Size c, double sign, double step) {
    rows.each(i, [&](Size j, double x) { weights[j * count + c] += sign * x; });
    if (has_bias) bias[c] += sign;
    if (late == nullptr) return;
    const double share = sign * step;
    rows.each(i, [&](Size j, double x) { late[j * count + c] += share * x; });
    if (has_bias) late_bias[c] += share;
  }
};

// True where the row was a mistake. A tie is one: the first of a stream, with no weights yet, too.
template <class Rows>
bool learn_row(const Rows& rows, Size i, Size code, Functions& f, double step,
               std::vector<double>& scores) {
  if (f.count == 1) {
    const double sign = code == 1 ? 1.0 : -1.0;
    if (sign * (rows.score(i, f.weights) + f.bias[0]) > 0.0) return false;
    f.add(rows, i, 0, sign, step);
    return true;
  }
  for (Size c = 0; c < f.count; ++c) scores[c] = f.bias[c];
  rows.each(i, [&](Size j, double x) {
    const double* w = f.weights + j * f.count;
    for (Size c = 0; c < f.count; ++c) scores[c] += x * w[c];
  });
  Size rival = code == 0 ? 1 : 0;
  for (Size c = rival + 1; c < f.count; ++c)
    if (c != code && scores[c] > scores[rival]) rival = c;
  if (scores[code] > scores[rival]) return false;
  f.add(rows, i, code, 1.0, step);
  f.add(rows, i, rival, -1.0, step);
  return true;
}

// All rows are looked at before any is learned: a row that is no number changes nothing. `tally`
// counts rows and mistakes and keeps the largest length as it goes: a walk that is interrupted has
// counted just what it learned.
template <class Rows>
nb::tuple learn(const Rows& rows, const std::optional<Numbers>& order, Numbers codes, Table weights,
                Constants bias, std::optional<Table> late, std::optional<Constants> late_bias,
                std::optional<Constants> tally, bool has_bias, double step, bool interruptible) {
  const Size functions = static_cast<Size>(weights.shape(1));
  require(static_cast<Size>(weights.shape(0)) == rows.width, "weights of the wrong shape");
  require(static_cast<Size>(codes.shape(0)) == rows.count, "one code per row");
  require(static_cast<Size>(bias.shape(0)) == functions, "one bias per function");
  require(late.has_value() == late_bias.has_value(), "both sums of lateness, or none");
  require(!late || (late->shape(0) == weights.shape(0) && late->shape(1) == weights.shape(1) &&
                    static_cast<Size>(late_bias->shape(0)) == functions),
          "lateness of the wrong shape");
  require(!tally || tally->shape(0) == 3, "a tally has three entries");
  const Size known = functions == 1 ? 2 : functions;
  const Size walked = order ? static_cast<Size>(order->shape(0)) : rows.count;
  for (Size k = 0; k < walked; ++k) {
    const Size i = order ? order->data()[k] : k;
    require(i >= 0 && i < rows.count, "a row is out of range");
    require(codes.data()[i] >= 0 && codes.data()[i] < known, "a code is out of range");
  }
  Functions f{weights.data(),
              bias.data(),
              late ? late->data() : nullptr,
              late ? late_bias->data() : nullptr,
              functions,
              has_bias};
  Size mistakes = 0, bad = -1;
  double longest = 0.0;
  Poll poll;
  {
    nb::gil_scoped_release released;
    double* const counts = tally ? tally->data() : nullptr;
    std::vector<double> lengths(counts != nullptr ? static_cast<std::size_t>(walked) : 0);
    for (Size k = 0; k < walked && bad < 0; ++k) {
      const Size i = order ? order->data()[k] : k;
      const double length = rows.squared(i);
      if (!(length <= std::numeric_limits<double>::max())) bad = i;
      if (length > longest) longest = length;
      if (counts != nullptr) lengths[static_cast<std::size_t>(k)] = length;
    }
    std::vector<double> scores(static_cast<std::size_t>(functions));
    for (Size k = 0; k < walked && bad < 0; ++k) {
      const Size i = order ? order->data()[k] : k;
      const bool wrong =
          learn_row(rows, i, codes.data()[i], f, step + static_cast<double>(k), scores);
      mistakes += wrong;
      if (counts != nullptr) {
        const double length = lengths[static_cast<std::size_t>(k)];
        counts[0] += 1.0;
        counts[1] += wrong;
        if (length > counts[2]) counts[2] = length;
      }
      if (interruptible && k % kRowsPerLook == 0) poll.check();
    }
  }
  return nb::make_tuple(mistakes, longest, bad);
}

nb::tuple learn_dense(Matrix x, std::optional<Numbers> order, Numbers codes, Table weights,
                      Constants bias, std::optional<Table> late, std::optional<Constants> late_bias,
                      std::optional<Constants> tally, bool has_bias, double step,
                      bool interruptible) {
  const DenseRows rows{x.data(), static_cast<Size>(x.shape(0)), static_cast<Size>(x.shape(1))};
  return learn(rows, order, codes, weights, bias, late, late_bias, tally, has_bias,
               step, interruptible);
}

nb::tuple learn_sparse(Numbers begin, Columns columns, Values values, Size width,
                       std::optional<Numbers> order, Numbers codes, Table weights, Constants bias,
                       std::optional<Table> late, std::optional<Constants> late_bias,
                       std::optional<Constants> tally, bool has_bias, double step,
                       bool interruptible) {
  const Size count = sparse_rows(begin, columns, values, width);
  const SparseRows rows{begin.data(), columns.data(), values.data(), count, width};
  return learn(rows, order, codes, weights, bias, late, late_bias, tally, has_bias,
               step, interruptible);
}

}  // namespace
}  // namespace mercer::online

void bind_online(nanobind::module_& m) {
  using namespace mercer::online;
  using nanobind::literals::operator""_a;
  m.def("perceptron_dense", &learn_dense, "x"_a.noconvert(), "order"_a.none(), "codes"_a,
        "weights"_a.noconvert(), "bias"_a.noconvert(), "late"_a.noconvert().none(),
        "late_bias"_a.noconvert().none(), "tally"_a.noconvert().none(), "has_bias"_a, "step"_a,
        "interruptible"_a);
  m.def("perceptron_sparse", &learn_sparse, "begin"_a, "columns"_a, "values"_a, "width"_a,
        "order"_a.none(), "codes"_a, "weights"_a.noconvert(), "bias"_a.noconvert(),
        "late"_a.noconvert().none(), "late_bias"_a.noconvert().none(),
        "tally"_a.noconvert().none(), "has_bias"_a, "step"_a, "interruptible"_a);
}
