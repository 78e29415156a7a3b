// Products with dense rows, in our own threads: no copies, the same result for any thread count.
#include <algorithm>
#include <cmath>
#include <vector>

#include "algebra/multiply.hpp"
#include "linear/linear.hpp"
#include "linear/rows.hpp"
#include "runtime/arena.hpp"
#include "runtime/dispatch.hpp"
#include "runtime/pool.hpp"

namespace mercer::linear {
namespace {

using algebra::kStrip;

constexpr Size kBlock = 512;  // rows between two looks at the signals
constexpr Size kParts = 8;    // partial sums: fixed, so that threads do not change the result
constexpr Size kNarrow = 640;  // columns up to which every part may have its own square

// Calls fn(begin, end) for the blocks of one part.
template <class F>
void blocks_of(Size part, Size count, const Poll& poll, F&& fn) {
  const Size first = count * part / kParts, last = count * (part + 1) / kParts;
  for (Size begin = first; begin < last && !poll.stopped(); begin += kBlock)
    fn(begin, std::min(last, begin + kBlock));
}

// What the weighted rows look like: scaled by the root of their weight, offsets beside them.
struct Packing {
  const DenseRows& rows;
  const double* centre;
  const std::int8_t* group;
  Size groups;
  const double* weight;
  Size ld;

  // Packs rows begin .. end - 1 that have weight; gives how many.
  Size pack(Size begin, Size end, double* out) const {
    const Size width = rows.width;
    Size packed = 0;
    for (Size i = begin; i < end; ++i) {
      if (weight[i] == 0.0) continue;
      const double root = std::sqrt(weight[i]);
      const double* x = rows.row(i);
      double* to = out + packed++ * ld;
      for (Size k = 0; k < width; ++k) to[k] = root * (x[k] - centre[k]);
      for (Size k = width; k < ld; ++k) to[k] = 0.0;
      if (group[i] >= 0) to[width + group[i]] = root;
    }
    return packed;
  }

  // Adds the products of packed rows to one strip of the upper triangle.
  void add_strip(const double* packed, Size depth, Size strip, double* square) const {
    const Size column = strip * kStrip, height = std::min(ld, column + kStrip);
    algebra::multiply(algebra::Into::add, algebra::Shape::full, height, depth, {packed, 1, ld},
                      packed + column, ld, square + column, ld);
  }
};

void gram_by_parts(const Packing& packing, double* square, int threads, Poll& poll) {
  const Size ld = packing.ld, strips = ld / kStrip;
  Buffer<double> squares(kParts * ld * ld);
  squares.clear();
  parallel_for(
      kParts,
      [&](Size part, int) {
        Buffer<double> packed(kBlock * ld);
        double* mine = squares.data() + part * ld * ld;
        blocks_of(part, packing.rows.count, poll, [&](Size begin, Size end) {
          const Size depth = packing.pack(begin, end, packed.data());
          for (Size strip = 0; depth > 0 && strip < strips; ++strip)
            packing.add_strip(packed.data(), depth, strip, mine);
        });
      },
      threads, poll);
  for (Size part = 0; part < kParts; ++part)
    for (Size k = 0; k < ld * ld; ++k) square[k] += squares.data()[part * ld * ld + k];
}

void gram_by_strips(const Packing& packing, double* square, int threads, Poll& poll) {
  const Size ld = packing.ld, strips = ld / kStrip, count = packing.rows.count;
  Buffer<double> packed(kBlock * ld);
  for (Size begin = 0; begin < count && !poll.stopped(); begin += kBlock) {
    const Size depth = packing.pack(begin, std::min(count, begin + kBlock), packed.data());
    if (depth == 0) continue;
    // the tall strips first: they take longest
    parallel_for(
        strips,
        [&](Size task, int) {
          packing.add_strip(packed.data(), depth, strips - 1 - task, square);
        },
        threads, poll);
  }
}

}  // namespace

void times(const DenseRows& rows, const double* w, double* out, int threads, Poll& poll) {
  const RowLoops& loops = table<RowLoops>();
  parallel_for(
      (rows.count + kBlock - 1) / kBlock,
      [&](Size task, int) {
        loops.times(rows, w, out, task * kBlock, std::min(rows.count, (task + 1) * kBlock));
      },
      threads, poll);
}

void pull(const DenseRows& rows, const double* x, double* out, int threads, Poll& poll) {
  const RowLoops& loops = table<RowLoops>();
  Buffer<double> sums(kParts * rows.width);
  sums.clear();
  parallel_for(
      kParts,
      [&](Size part, int) {
        double* mine = sums.data() + part * rows.width;
        blocks_of(part, rows.count, poll,
                  [&](Size begin, Size end) { loops.pull(rows, x, mine, begin, end); });
      },
      threads, poll);
  std::fill_n(out, rows.width, 0.0);
  for (Size part = 0; part < kParts; ++part)
    for (Size k = 0; k < rows.width; ++k) out[k] += sums.data()[part * rows.width + k];
}

void gram(const DenseRows& rows, const double* centre, const std::int8_t* group, Size groups,
          const double* weight, double* out, int threads, Poll& poll) {
  const Size m = rows.width + groups, ld = round_up(std::max<Size>(1, m), kStrip);
  const Packing packing{rows, centre, group, groups, weight, ld};
  Buffer<double> square(ld * ld);
  square.clear();
  if (ld <= kNarrow) gram_by_parts(packing, square.data(), threads, poll);
  else gram_by_strips(packing, square.data(), threads, poll);
  for (Size i = 0; i < m; ++i)
    for (Size j = 0; j < m; ++j) out[i * m + j] = square.data()[std::min(i, j) * ld + std::max(i, j)];
}

}  // namespace mercer::linear
