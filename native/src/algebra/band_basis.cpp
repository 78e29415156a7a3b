// The orthogonal factor of the band reduction, accumulated backwards.
//
// Q = H_1 H_2 .. with H = I - V T V'. From the last step to the first, Q' <- Q' H' changes only the
// square from the start of the step on. Rows of Q' are independent: S = Q'_rows V, then
// Q'_rows -= (S T') V', for a few rows at a time.
#include <algorithm>

#include "algebra/band.hpp"
#include "runtime/pool.hpp"

namespace mercer::algebra {
namespace {

constexpr Size kRows = 48;        // rows per task: V is read once for all of them
constexpr Size kDepth = 6 * kStrip;  // columns per product: their part of V fits level 2

// V of one step in the two layouts of the right factor: by rows, and V' in groups of 32 columns.
struct Step {
  Step(Size n, Size width) : ld(round_up(width, kStrip)), tall(n * ld), wide((n + kStrip) * width),
                             t(width * ld) {}

  void set_t(const Reflections& from, Size step) {
    t.clear();
    const double* factor = from.factor(step);
    for (Size i = 0; i < from.width; ++i)
      for (Size j = 0; j < from.width; ++j) t.data()[j * ld + i] = factor[i * from.width + j];
  }

  // Group g: columns 32 g .. of V', counted from the start of the step.
  void set_group(const Reflections& from, Size start, Size g) {
    const Size count = std::min(kStrip, from.n - start - g * kStrip);
    double* columns = wide.data() + g * from.width * kStrip;
    double* rows = tall.data() + g * kStrip * ld;
    std::fill_n(columns, from.width * kStrip, 0.0);
    std::fill_n(rows, count * ld, 0.0);
    for (Size k = 0; k < from.width; ++k) {
      const double* v = from.a + (start - from.width + k) * from.n + start + g * kStrip;
      std::copy_n(v, count, columns + k * kStrip);
      for (Size i = 0; i < count; ++i) rows[i * ld + k] = v[i];
    }
  }

  Size ld;
  Buffer<double> tall, wide, t;  // t holds T'
};

// C -= left * right where only `columns` < 32 of the strip exist.
void subtract_edge(Size rows, Size depth, Left<double> left, const double* right, double* c,
                   Size c_step,
                   Size columns) {
  alignas(kAlignment) double strip[kRows * kStrip];
  multiply(Into::assign, Shape::full, rows, depth, left, right, kStrip, strip, kStrip);
  for (Size i = 0; i < rows; ++i)
    for (Size j = 0; j < columns; ++j) c[i * c_step + j] -= strip[i * kStrip + j];
}

// Applies one step to `rows` rows; `q` points at their first changing column of `columns`.
void apply(const Step& step, Size width, double* q, Size n, Size rows, Size columns, double* s) {
  const Size ld = step.ld;
  double* st = s + kRows * ld;
  std::fill_n(s, rows * ld, 0.0);
  for (Size k = 0; k < columns; k += kDepth)
    for (Size c = 0; c < ld; c += kStrip)
      multiply(Into::add, Shape::full, rows, std::min(kDepth, columns - k), {q + k, n, 1},
               step.tall.data() + k * ld + c, ld, s + c, ld);
  for (Size c = 0; c < ld; c += kStrip)
    multiply(Into::assign, Shape::full, rows, width, {s, ld, 1}, step.t.data() + c, ld, st + c, ld);
  for (Size c = 0; c < columns; c += kStrip) {
    const double* right = step.wide.data() + c * width;
    if (columns - c < kStrip)
      subtract_edge(rows, width, {st, ld, 1}, right, q + c, n, columns - c);
    else
      multiply(Into::subtract, Shape::full, rows, width, {st, ld, 1}, right, kStrip, q + c, n);
  }
}

void set_identity(double* qt, Size n, int threads, Poll& poll) {
  parallel_for(
      round_up(n, kRows) / kRows,
      [&](Size task, int) {
        for (Size i = task * kRows; i < std::min(n, (task + 1) * kRows); ++i) {
          std::fill_n(qt + i * n, n, 0.0);
          qt[i * n + i] = 1.0;
        }
      },
      threads, poll);
}

}  // namespace

void band_basis(const Reflections& from, double* qt, int threads, Poll& poll) {
  const Size n = from.n;
  set_identity(qt, n, threads, poll);
  if (from.steps == 0) return;
  Step step(n, from.width);
  Buffer<double> scratch(2 * kRows * step.ld * threads);
  for (Size index = from.steps; index-- > 0 && !poll.stopped();) {
    const Size start = from.start(index), size = n - start;
    step.set_t(from, index);
    parallel_for(
        round_up(size, kStrip) / kStrip, [&](Size g, int) { step.set_group(from, start, g); },
        threads, poll);
    parallel_for(
        round_up(size, kRows) / kRows,
        [&](Size task, int worker) {
          const Size row = start + task * kRows;
          apply(step, from.width, qt + row * n + start, n, std::min(kRows, n - row), size,
                scratch.data() + 2 * kRows * step.ld * worker);
        },
        threads, poll);
  }
}

}  // namespace mercer::algebra
