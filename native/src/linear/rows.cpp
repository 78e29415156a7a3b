// Loops over dense rows of one instruction set. CMake compiles this file once per MERCER_VARIANT.
#include "linear/rows.hpp"

#include "runtime/vector.hpp"

namespace mercer::linear {
namespace {

constexpr Size lanes = kLanes<double>;

MERCER_INLINE double dot(const double* x, const double* w, Size n) {
  Vec<double> a = {}, b = {};
  Size k = 0;
  for (; k + 2 * lanes <= n; k += 2 * lanes) {
    a += load(x + k) * load(w + k);
    b += load(x + k + lanes) * load(w + k + lanes);
  }
  for (; k + lanes <= n; k += lanes) a += load(x + k) * load(w + k);
  a += b;
  double total = sum_lanes<double>(a);
  for (; k < n; ++k) total += x[k] * w[k];
  return total;
}

MERCER_INLINE void add(double scale, const double* x, double* w, Size n) {
  Size k = 0;
  for (; k + lanes <= n; k += lanes) store(w + k, load(w + k) + scale * load(x + k));
  for (; k < n; ++k) w[k] += scale * x[k];
}

void times(const DenseRows& rows, const double* w, double* out, Size begin, Size end) {
  for (Size i = begin; i < end; ++i) out[i] = dot(rows.row(i), w, rows.width);
}

void pull(const DenseRows& rows, const double* x, double* out, Size begin, Size end) {
  for (Size i = begin; i < end; ++i)
    if (x[i] != 0.0) add(x[i], rows.row(i), out, rows.width);
}

constexpr RowLoops kLoops = {times, pull};

}  // namespace
}  // namespace mercer::linear

namespace mercer {

template <>
const linear::RowLoops& MERCER_VARIANT::table() {
  return linear::kLoops;
}

}  // namespace mercer
