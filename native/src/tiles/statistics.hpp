// Pairwise statistics of packed rows: one micro kernel, one short step per statistic.
#pragma once

#include "tiles/bytes.hpp"
#include "tiles/micro_tile.hpp"
#include "tiles/tiles.hpp"

namespace mercer {
namespace {

template <class T>
MERCER_INLINE Vec<T> absolute(Vec<T> v) {
  const Ints<T> sign = bits<T>(splat<T>(T(-0.0)));
  return from_bits<T>(bits<T>(v) & ~sign);
}

template <class T>
struct DotStep {
  static constexpr T start = 0;
  static MERCER_INLINE Vec<T> step(Vec<T> sum, Vec<T> a, Vec<T> b) { return sum + a * b; }
};

template <class T>
struct SqDistStep {
  static constexpr T start = 0;
  static MERCER_INLINE Vec<T> step(Vec<T> sum, Vec<T> a, Vec<T> b) {
    const Vec<T> gap = a - b;
    return sum + gap * gap;
  }
};

template <class T>
struct AbsDistStep {
  static constexpr T start = 0;
  static MERCER_INLINE Vec<T> step(Vec<T> sum, Vec<T> a, Vec<T> b) { return sum + absolute<T>(a - b); }
};

template <class T>
struct MinSumStep {
  static constexpr T start = 0;
  static MERCER_INLINE Vec<T> step(Vec<T> sum, Vec<T> a, Vec<T> b) { return sum + smaller<T>(a, b); }
};

template <class T>
struct ChiSqStep {
  static constexpr T start = 0;
  static MERCER_INLINE Vec<T> step(Vec<T> sum, Vec<T> a, Vec<T> b) {
    const Vec<T> total = a + b, gap = a - b;
    return sum + gap * gap / pick<T>(total > T(0), total, splat<T>(1));
  }
};

template <class T>
struct SubsetProductStep {
  static constexpr T start = 1;
  static MERCER_INLINE Vec<T> step(Vec<T> product, Vec<T> a, Vec<T> b) {
    return product * (a * b + T(1));
  }
};

// M x nr entries at once, all accumulators in registers.
template <class T, class Step, int M>
MERCER_INLINE void micro(const T* a, const T* b, int64_t depth, T* c, int64_t ld, bool first) {
  constexpr int W = kLanes<T>;
  Vec<T> sum[M][kColumnVectors];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kColumnVectors; ++j) {
      sum[i][j] = first ? splat<T>(Step::start) : load(c + i * ld + j * W);
    }
  }
#pragma GCC unroll 1
  for (int64_t k = 0; k < depth; ++k) {
    const Vec<T> b0 = load(b), b1 = load(b + W), b2 = load(b + 2 * W);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const Vec<T> ai = splat<T>(a[i]);
      sum[i][0] = Step::step(sum[i][0], ai, b0);
      sum[i][1] = Step::step(sum[i][1], ai, b1);
      sum[i][2] = Step::step(sum[i][2], ai, b2);
    }
    a += kMr;
    b += kNr<T>;
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kColumnVectors; ++j) store(c + i * ld + j * W, sum[i][j]);
  }
}

// Kept out of line, so that each micro kernel gets all registers for itself.
template <class T, class Step, int M>
__attribute__((noinline)) void micro_panel(const T* a, const T* b, int64_t depth, T* c, int64_t ld,
                                           bool first) {
  if (first) {
    micro<T, Step, M>(a, b, depth, c, ld, true);
  } else {
    micro<T, Step, M>(a, b, depth, c, ld, false);
  }
}

template <class T, class Step>
MERCER_INLINE void micro_rows(int rows, const T* a, const T* b, int64_t depth, T* c, int64_t ld,
                              bool first) {
  if (rows > kMr / 2) return micro_panel<T, Step, kMr>(a, b, depth, c, ld, first);
  if (rows > 1) return micro_panel<T, Step, kMr / 2>(a, b, depth, c, ld, first);
  micro_panel<T, Step, 1>(a, b, depth, c, ld, first);
}

// Panels of B outside: one panel of it (nr columns) stays close while all rows of A pass.
template <class T, class Step>
void compare_panels(const PanelArgs<T>& p) {
  for (int j = 0; j < p.panels; ++j) {
    for (int i = 0; i < p.rows; i += kMr) {
      micro_rows<T, Step>(p.rows - i, p.a + (i / kMr) * p.a_stride, p.b + j * p.b_stride, p.depth,
                          p.c + i * p.ld + j * kNr<T>, p.ld, p.first);
    }
  }
}

// Elementary symmetric sums need degree + 1 running sums per pair: one row and one vector of
// columns at a time. The depth is never split for it.

template <class T>
MERCER_INLINE void extend_sums(Vec<T>* sums, int degree, Vec<T> product) {
  for (int q = degree; q > 0; --q) sums[q] += product * sums[q - 1];
}

template <class T>
void compare_symmetric_sum(const PanelArgs<T>& p) {
  constexpr int W = kLanes<T>;
  for (int j = 0; j < p.panels * kColumnVectors; ++j) {
    const T* b = p.b + (j / kColumnVectors) * p.b_stride + (j % kColumnVectors) * W;
    for (int i = 0; i < p.rows; ++i) {
      const T* a = p.a + (i / kMr) * p.a_stride + i % kMr;
      Vec<T> sums[kMaxDegree + 1] = {splat<T>(1)};
      for (int64_t k = 0; k < p.depth; ++k) {
        extend_sums<T>(sums, p.degree, a[k * kMr] * load(b + k * kNr<T>));
      }
      store(p.c + i * p.ld + j * W, sums[p.degree]);
    }
  }
}

template <class T>
void compare(Statistic statistic, const PanelArgs<T>& p) {
  switch (statistic) {
    case kDot: return compare_panels<T, DotStep<T>>(p);
    case kSqDist: return compare_panels<T, SqDistStep<T>>(p);
    case kAbsDist: return compare_panels<T, AbsDistStep<T>>(p);
    case kMinSum: return compare_panels<T, MinSumStep<T>>(p);
    case kChiSq: return compare_panels<T, ChiSqStep<T>>(p);
    case kSubsetProduct: return compare_panels<T, SubsetProductStep<T>>(p);
    case kSymmetricSum: return compare_symmetric_sum<T>(p);
    case kByteDot:
      if constexpr (kHasBytes<T>) compare_panels<int32_t, ByteDotStep>(as_words(p));
      return;
  }
}

template <class T>
int64_t combine(T* strip, int64_t ld, int rows, const T* x, const T* y, T factor, T unit) {
  constexpr int W = kLanes<T>;
  if constexpr (kHasBytes<T>) {
    if (unit != 0) return combine_words(strip, ld, rows, x, y, factor, unit), 0;
  }
  Ints<T> doubtful = {};
  for (int i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < ld; j += W) {
      const Vec<T> total = x[i] + load(y + j);
      const Vec<T> value = total + factor * load(strip + i * ld + j);
      doubtful -= ~(value >= total * T(1.0 / 64));  // NaN is doubtful too
      store(strip + i * ld + j, larger<T>(Vec<T>{}, value));
    }
  }
  int64_t count = 0;
  for (int l = 0; l < W; ++l) count += doubtful[l];
  return count;
}

}  // namespace
}  // namespace mercer
