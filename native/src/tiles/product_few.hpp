// Products with few right-hand sides: vectors run along the columns of the tile, so that no lane
// is spent on right-hand sides that are not there.
#pragma once

#include "tiles/micro_tile.hpp"
#include "tiles/placement.hpp"
#include "tiles/tiles.hpp"

namespace mercer {
namespace {

// Right-hand sides at once, and rows: each row has a sum for each right-hand side and an entry of
// the tile in registers. Rows are a power of two, so that strips of kMr have no rows left over.
constexpr int kGroup = 6;
constexpr int few_rows(int group) {
  int rows = kMr;
  while (rows * (group + 1) > kRegisters - 2) rows /= 2;
  return rows;
}

// The tile may hold anything beyond its last column, or nothing.
template <class T>
MERCER_INLINE Vec<T> load_first(const T* p, int count) {
  T part[kLanes<T>] = {};
  for (int l = 0; l < count; ++l) part[l] = p[l];
  return load(part);
}

// The sums over the lanes of `count` vectors, many at once: two vectors make one of sums of halves.
template <class T, int count>
MERCER_INLINE void sum_all_lanes(const Vec<T>* v, T* sums) {
  constexpr int W = kLanes<T>;
#pragma GCC unroll 16
  for (int first = 0; first < count; first += W) {
    Vec<T> x[W];
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) x[i] = first + i < count ? v[first + i] : Vec<T>{};
#pragma GCC unroll 4
    for (int half = W / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < half; ++i) {
        x[i] = Interleave<W>::low(x[i], x[i + half]) + Interleave<W>::high(x[i], x[i + half]);
      }
    }
    store(sums + first, x[0]);
  }
}

// M rows times N right-hand sides; with Both also the columns times x, the right-hand sides of the
// rows ([row][vector]). Compilers cannot know that `turned` is not x, and read x again for every
// vector of columns; copies of it in all lanes would not find room in registers.
template <class T, int M, int N, bool Both>
__attribute__((noinline)) void multiply_few_block(const BothArgs<T>& p, int row, int vector,
                                                  const T* x) {
  constexpr int W = kLanes<T>;
  const T *a = p.strip + row * p.ld, *v = p.v + vector * W;
  T* t = Both ? p.turned + vector * W : nullptr;
  const int64_t ld = p.ld, next = p.vectors * W;
  const int columns = p.columns;
  Vec<T> sum[M * N] = {}, e[M];
  const auto step = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 6
    for (int c = 0; c < N; ++c) {
      const Vec<T> b = load(v + c * W);
      Vec<T> s = {};
      if constexpr (Both) s = load(t + c * W);
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        sum[i * N + c] += e[i] * b;
        if constexpr (Both) s += e[i] * x[i * N + c];
      }
      if constexpr (Both) store(t + c * W, s);
    }
    v += next;
    if constexpr (Both) t += next;
  };
  int k = 0;
#pragma GCC unroll 1
  for (; k + W <= columns; k += W) {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) e[i] = load(a + i * ld + k);
    step();
  }
  if (k < columns) {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) e[i] = load_first(a + i * ld + k, columns - k);
    step();
  }
  T totals[(M * N + W - 1) / W * W];
  sum_all_lanes<T, M * N>(sum, totals);
  for (int i = 0; i < M; ++i) {
    double* out = p.out + (row + i) * p.out_ld + vector;
    for (int c = 0; c < N; ++c) out[c] += static_cast<double>(totals[i * N + c]);
  }
}

template <class T, int M, int N, bool Both>
MERCER_INLINE int multiply_few_blocks(const BothArgs<T>& p, int row, int end, int vector) {
  for (; row + M <= end; row += M) {
    T x[M * N];
    for (int i = 0; i < M && Both; ++i) {
      for (int c = 0; c < N; ++c) x[i * N + c] = p.u[(row + i) * p.vectors + vector + c];
    }
    multiply_few_block<T, M, N, Both>(p, row, vector, x);
  }
  return row;
}

template <class T, int N, bool Both>
MERCER_INLINE void multiply_few_rows(const BothArgs<T>& p, int row, int end, int vector) {
  row = multiply_few_blocks<T, few_rows(N), N, Both>(p, row, end, vector);
  multiply_few_blocks<T, 1, N, Both>(p, row, end, vector);
}

// Right-hand sides in groups of nearly one size; a few rows meet all of them while in the cache.
template <class T, bool Both>
void multiply_few(const BothArgs<T>& p) {
  const int groups = (p.vectors + kGroup - 1) / kGroup;
  for (int row = 0; row < p.rows; row += kMr) {
    const int end = row + kMr < p.rows ? row + kMr : p.rows;
    for (int g = 0; g < groups; ++g) {
      const int first = p.vectors * g / groups, size = p.vectors * (g + 1) / groups - first;
      if (size == 1) multiply_few_rows<T, 1, Both>(p, row, end, first);
      if (size == 2) multiply_few_rows<T, 2, Both>(p, row, end, first);
      if (size == 3) multiply_few_rows<T, 3, Both>(p, row, end, first);
      if (size == 4) multiply_few_rows<T, 4, Both>(p, row, end, first);
      if (size == 5) multiply_few_rows<T, 5, Both>(p, row, end, first);
      if (size == kGroup) multiply_few_rows<T, kGroup, Both>(p, row, end, first);
    }
  }
}

template <class T>
void collect_few(T* turned, int columns, int vectors, double* out) {
  constexpr int W = kLanes<T>;
  for (int first = 0; first < columns; first += W) {
    T* group = turned + first * vectors;
    const int count = columns - first < W ? columns - first : W;
    for (int l = 0; l < count; ++l) {
      double* row = out + (first + l) * vectors;
      for (int c = 0; c < vectors; ++c) row[c] += static_cast<double>(group[c * W + l]);
    }
    for (int c = 0; c < vectors; ++c) store(group + c * W, Vec<T>{});
  }
}

}  // namespace
}  // namespace mercer
