// Stripes of a stored matrix, a few rows and many columns each, times right-hand sides that may
// lie anywhere: those of the rows need not be those of the columns.
#pragma once

#include "tiles/micro_tile.hpp"
#include "tiles/product_few.hpp"
#include "tiles/tiles.hpp"

namespace mercer {
namespace {

constexpr int kBeside = 3;  // right-hand sides at once
constexpr int kFetched = kMr;  // rows from those at work to those that are fetched

// Rows at once: their sums, and of each right-hand side a vector to be read and one to be written.
constexpr int stripe_rows(int beside) {
  int rows = kMr;
  while (rows * beside + 2 * beside + 1 > kRegisters) rows /= 2;
  return rows;
}

// M rows from `row` on times N right-hand sides from `first` on; with Both also the columns times
// the right-hand sides x of the rows, [row][vector].
template <class T, int M, int N, bool Both>
__attribute__((noinline)) void multiply_stripe(const StripeArgs<T>& p, int row, int first,
                                               const T* x) {
  constexpr int W = kLanes<T>;
  const T* a = p.strip + row * p.ld;
  const int64_t ld = p.ld, ahead = kFetched * ld;
  const bool fetch = first == 0 && row + kFetched + M <= p.rows;
  const T* v[N];
  T* t[N];
  for (int c = 0; c < N; ++c) v[c] = p.v[first + c], t[c] = Both ? p.turned[first + c] : nullptr;
  Vec<T> sum[M * N] = {};
  const auto step = [&](int k, auto entry) __attribute__((always_inline)) {
    Vec<T> b[N], s[N];
#pragma GCC unroll 4
    for (int c = 0; c < N; ++c) {
      b[c] = load(v[c] + k);
      if constexpr (Both) s[c] = load(t[c] + k);
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const Vec<T> e = entry(a + i * ld + k);
#pragma GCC unroll 4
      for (int c = 0; c < N; ++c) {
        sum[i * N + c] += e * b[c];
        if constexpr (Both) s[c] += e * x[i * N + c];
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < N && Both; ++c) store(t[c] + k, s[c]);
  };
  int k = 0;
#pragma GCC unroll 1
  for (; k + W <= p.columns; k += W) {
    if (fetch) {
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) __builtin_prefetch(a + ahead + i * ld + k, 0, 2);
    }
    step(k, [](const T* e) { return load(e); });
  }
  if (k < p.columns) step(k, [&](const T* e) { return load_first(e, p.columns - k); });
  T totals[(M * N + W - 1) / W * W];
  sum_all_lanes<T, M * N>(sum, totals);
  for (int i = 0; i < M; ++i) {
    for (int c = 0; c < N; ++c) p.out[first + c][row + i] += static_cast<double>(totals[i * N + c]);
  }
}

template <class T, int M, int N>
MERCER_INLINE void multiply_stripe_group(const StripeArgs<T>& p, int row, int first) {
  if (p.turned == nullptr) return multiply_stripe<T, M, N, false>(p, row, first, nullptr);
  T x[M * N];
  for (int i = 0; i < M; ++i) {
    for (int c = 0; c < N; ++c) x[i * N + c] = p.u[first + c][row + i];
  }
  multiply_stripe<T, M, N, true>(p, row, first, x);
}

template <class T, int N>
MERCER_INLINE void multiply_stripe_rows(const StripeArgs<T>& p, int row, int end, int first) {
  constexpr int M = stripe_rows(N);
  for (; row + M <= end; row += M) multiply_stripe_group<T, M, N>(p, row, first);
  for (; row < end; ++row) multiply_stripe_group<T, 1, N>(p, row, first);
}

// A stripe meets all right-hand sides while it is in the cache.
template <class T>
void multiply_stripes(const StripeArgs<T>& p) {
  const int groups = (p.vectors + kBeside - 1) / kBeside;
  for (int row = 0; row < p.rows; row += kMr) {
    const int end = row + kMr < p.rows ? row + kMr : p.rows;
    for (int g = 0; g < groups; ++g) {
      const int first = p.vectors * g / groups, size = p.vectors * (g + 1) / groups - first;
      if (size == 1) multiply_stripe_rows<T, 1>(p, row, end, first);
      if (size == 2) multiply_stripe_rows<T, 2>(p, row, end, first);
      if (size == kBeside) multiply_stripe_rows<T, kBeside>(p, row, end, first);
    }
  }
}

}  // namespace
}  // namespace mercer
