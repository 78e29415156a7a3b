// Pairwise statistics of sparse rows: every statistic is a sum over the features both rows have,
// plus terms of each row alone, which the caller adds (see Tiles::combine).
#pragma once

#include "tiles/micro_tile.hpp"
#include "tiles/statistics.hpp"

namespace mercer {
namespace {

// Steps over joint features. With b = 0, the value of an absent feature, each changes nothing.
template <class T>
struct JointAbsDist {
  static constexpr T start = 0;
  static MERCER_INLINE Vec<T> step(Vec<T> sum, Vec<T> a, Vec<T> b) {
    return sum + (absolute<T>(a - b) - absolute<T>(a) - absolute<T>(b));
  }
};

template <class T>
struct JointChiSq {
  static constexpr T start = 0;
  static MERCER_INLINE Vec<T> step(Vec<T> sum, Vec<T> a, Vec<T> b) {
    const Vec<T> total = a + b;
    return sum + T(4) * a * b / pick<T>(total > T(0), total, splat<T>(1));
  }
};

// Gives each feature of the columns in work a slot and spreads their values over it.
template <class T>
void fill_slots(const SparseArgs<T>& p) {
  constexpr int nr = kNr<T>;
  int32_t used = 0;
  for (int j = 0; j < nr; ++j) p.values[j] = 0;
  for (int j = 0; j < p.columns; ++j) {
    const int64_t row = p.b_begin + j;
    for (int64_t e = p.b.start[row]; e < p.b.start[row + 1]; ++e) {
      int32_t& slot = p.slot[p.b.feature[e]];
      if (slot == 0) {
        slot = ++used;
        for (int l = 0; l < nr; l += kLanes<T>) store(p.values + slot * int64_t(nr) + l, Vec<T>{});
      }
      p.values[slot * int64_t(nr) + j] = p.b.value[e];
    }
  }
}

template <class T>
void clear_slots(const SparseArgs<T>& p) {
  const int64_t end = p.b.start[p.b_begin + p.columns];
  for (int64_t e = p.b.start[p.b_begin]; e < end; ++e) p.slot[p.b.feature[e]] = 0;
}

template <class T, class Step>
void walk_rows(const SparseArgs<T>& p) {
  constexpr int W = kLanes<T>;
  for (int i = 0; i < p.rows; ++i) {
    Vec<T> s0 = splat<T>(Step::start), s1 = s0, s2 = s0;
    const int64_t row = p.a_rows[i], end = p.a.start[row + 1];
    for (int64_t e = p.a.start[row]; e < end; ++e) {
      const T* b = p.values + p.slot[p.a.feature[e]] * int64_t(kNr<T>);
      const Vec<T> a = splat<T>(p.a.value[e]);
      s0 = Step::step(s0, a, load(b));
      s1 = Step::step(s1, a, load(b + W));
      s2 = Step::step(s2, a, load(b + 2 * W));
    }
    T* c = p.c + i * p.ld;
    store(c, s0);
    store(c + W, s1);
    store(c + 2 * W, s2);
  }
}

template <class T>
void walk_symmetric_sum(const SparseArgs<T>& p) {
  constexpr int W = kLanes<T>;
  for (int i = 0; i < p.rows; ++i) {
    const int64_t row = p.a_rows[i];
    for (int v = 0; v < kColumnVectors; ++v) {
      Vec<T> sums[kMaxDegree + 1] = {splat<T>(1)};
      for (int64_t e = p.a.start[row]; e < p.a.start[row + 1]; ++e) {
        const T* b = p.values + p.slot[p.a.feature[e]] * int64_t(kNr<T>) + v * W;
        extend_sums<T>(sums, p.degree, p.a.value[e] * load(b));
      }
      store(p.c + i * p.ld + v * W, sums[p.degree]);
    }
  }
}

template <class T>
void walk(Statistic statistic, const SparseArgs<T>& p) {
  switch (statistic) {
    case kDot:
    case kSqDist: return walk_rows<T, DotStep<T>>(p);
    case kAbsDist: return walk_rows<T, JointAbsDist<T>>(p);
    case kMinSum: return walk_rows<T, MinSumStep<T>>(p);
    case kChiSq: return walk_rows<T, JointChiSq<T>>(p);
    case kSubsetProduct: return walk_rows<T, SubsetProductStep<T>>(p);
    case kSymmetricSum: return walk_symmetric_sum<T>(p);
    case kByteDot: return;  // of dense rows only
  }
}

template <class T>
void compare_sparse(Statistic statistic, const SparseArgs<T>& p) {
  fill_slots(p);
  walk(statistic, p);
  clear_slots(p);
}

}  // namespace
}  // namespace mercer
