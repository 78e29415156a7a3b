// Products with dense rows, in our own threads: no copies, the same result for any thread count.
#include <algorithm>
#include <cmath>
#include <vector>

#include "algebra/memory.hpp"
#include "algebra/multiply.hpp"
#include "algebra/simd.hpp"
#include "linear/linear.hpp"
#include "runtime/pool.hpp"

namespace mercer::linear {
namespace {

using algebra::Buffer;
using algebra::kStrip;
using algebra::Level;

constexpr Size kBlock = 512;  // rows between two looks at the signals
constexpr Size kParts = 8;    // partial sums: fixed, so that threads do not change the result
constexpr Size kNarrow = 640;  // columns up to which every part may have its own square

template <int lanes>
MERCER_INLINE double dot(const double* x, const double* w, Size n) {
  using V = typename algebra::Vector<double, lanes>::type;
  using Loose = typename algebra::Vector<double, lanes>::loose;
  V a = {}, b = {};
  Size k = 0;
  for (; k + 2 * lanes <= n; k += 2 * lanes) {
    a += *reinterpret_cast<const Loose*>(x + k) * *reinterpret_cast<const Loose*>(w + k);
    b += *reinterpret_cast<const Loose*>(x + k + lanes) *
         *reinterpret_cast<const Loose*>(w + k + lanes);
  }
  for (; k + lanes <= n; k += lanes)
    a += *reinterpret_cast<const Loose*>(x + k) * *reinterpret_cast<const Loose*>(w + k);
  a += b;
  double total = 0.0;
  for (int i = 0; i < lanes; ++i) total += a[i];
  for (; k < n; ++k) total += x[k] * w[k];
  return total;
}

template <int lanes>
MERCER_INLINE void add(double scale, const double* x, double* w, Size n) {
  using Loose = typename algebra::Vector<double, lanes>::loose;
  Size k = 0;
  for (; k + lanes <= n; k += lanes)
    *reinterpret_cast<Loose*>(w + k) += scale * *reinterpret_cast<const Loose*>(x + k);
  for (; k < n; ++k) w[k] += scale * x[k];
}

template <int lanes>
MERCER_INLINE void some_times(const DenseRows& rows, const double* w, double* out, Size begin,
                              Size end) {
  for (Size i = begin; i < end; ++i) out[i] = dot<lanes>(rows.row(i), w, rows.width);
}

template <int lanes>
MERCER_INLINE void some_pull(const DenseRows& rows, const double* x, double* out, Size begin,
                             Size end) {
  for (Size i = begin; i < end; ++i)
    if (x[i] != 0.0) add<lanes>(x[i], rows.row(i), out, rows.width);
}

#ifdef MERCER_X86
MERCER_TARGET_512 void times_512(const DenseRows& r, const double* w, double* o, Size a, Size b) {
  some_times<8>(r, w, o, a, b);
}
MERCER_TARGET_256 void times_256(const DenseRows& r, const double* w, double* o, Size a, Size b) {
  some_times<4>(r, w, o, a, b);
}
MERCER_TARGET_512 void pull_512(const DenseRows& r, const double* x, double* o, Size a, Size b) {
  some_pull<8>(r, x, o, a, b);
}
MERCER_TARGET_256 void pull_256(const DenseRows& r, const double* x, double* o, Size a, Size b) {
  some_pull<4>(r, x, o, a, b);
}
#endif

void times_range(const DenseRows& r, const double* w, double* o, Size a, Size b) {
#ifdef MERCER_X86
  if (algebra::level() == Level::widest) return times_512(r, w, o, a, b);
  if (algebra::level() == Level::wide) return times_256(r, w, o, a, b);
#endif
  some_times<2>(r, w, o, a, b);
}

void pull_range(const DenseRows& r, const double* x, double* o, Size a, Size b) {
#ifdef MERCER_X86
  if (algebra::level() == Level::widest) return pull_512(r, x, o, a, b);
  if (algebra::level() == Level::wide) return pull_256(r, x, o, a, b);
#endif
  some_pull<2>(r, x, o, a, b);
}

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
  Buffer squares(kParts * ld * ld);
  squares.clear();
  parallel_for(
      kParts,
      [&](Size part, int) {
        Buffer packed(kBlock * ld);
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
  Buffer packed(kBlock * ld);
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
  parallel_for(
      (rows.count + kBlock - 1) / kBlock,
      [&](Size task, int) {
        times_range(rows, w, out, task * kBlock, std::min(rows.count, (task + 1) * kBlock));
      },
      threads, poll);
}

void pull(const DenseRows& rows, const double* x, double* out, int threads, Poll& poll) {
  Buffer sums(kParts * rows.width);
  sums.clear();
  parallel_for(
      kParts,
      [&](Size part, int) {
        double* mine = sums.data() + part * rows.width;
        blocks_of(part, rows.count, poll,
                  [&](Size begin, Size end) { pull_range(rows, x, mine, begin, end); });
      },
      threads, poll);
  std::fill_n(out, rows.width, 0.0);
  for (Size part = 0; part < kParts; ++part)
    for (Size k = 0; k < rows.width; ++k) out[k] += sums.data()[part * rows.width + k];
}

void gram(const DenseRows& rows, const double* centre, const std::int8_t* group, Size groups,
          const double* weight, double* out, int threads, Poll& poll) {
  const Size m = rows.width + groups, ld = algebra::round_up(std::max<Size>(1, m), kStrip);
  const Packing packing{rows, centre, group, groups, weight, ld};
  Buffer square(ld * ld);
  square.clear();
  if (ld <= kNarrow) gram_by_parts(packing, square.data(), threads, poll);
  else gram_by_strips(packing, square.data(), threads, poll);
  for (Size i = 0; i < m; ++i)
    for (Size j = 0; j < m; ++j) out[i * m + j] = square.data()[std::min(i, j) * ld + std::max(i, j)];
}

}  // namespace mercer::linear
