// Rows of a tile times a block of vectors: the tile is used while it is in the cache, then dropped.
#pragma once

#include "mercer/tiles.hpp"
#include "vector.hpp"

namespace mercer {
namespace {

// M rows times N vectors of right-hand sides; sums over the tile in T, over tiles in float64.
template <class T, int M, int N>
__attribute__((noinline)) void multiply_block(const T* a, int64_t ld, int depth, const T* v,
                                              int64_t v_ld, int vectors, double* out,
                                              int64_t out_ld) {
  constexpr int W = kLanes<T>;
  Vec<T> sum[M][N] = {};
#pragma GCC unroll 1
  for (int k = 0; k < depth; ++k) {
    Vec<T> b[N];
#pragma GCC unroll 3
    for (int j = 0; j < N; ++j) b[j] = load(v + j * W);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const Vec<T> x = splat<T>(a[i * ld + k]);
#pragma GCC unroll 3
      for (int j = 0; j < N; ++j) sum[i][j] += x * b[j];
    }
    v += v_ld;
  }
  T flat[M][N * W];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < N; ++j) store(flat[i] + j * W, sum[i][j]);
  }
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < vectors; ++j) out[i * out_ld + j] += static_cast<double>(flat[i][j]);
  }
}

template <class T, int M>
MERCER_INLINE void multiply_rows(const ProductArgs<T>& p, int row) {
  constexpr int W = kLanes<T>;
  const T* a = p.strip + row * p.ld;
  for (int j = 0; j < p.width; j += kColumnVectors * W) {
    const int left = p.vectors - j, use = left < kColumnVectors * W ? left : kColumnVectors * W;
    double* out = p.out + row * p.out_ld + j;
    const T* v = p.v + j;
    if (left > 2 * W) {
      multiply_block<T, M, 3>(a, p.ld, p.columns, v, p.width, use, out, p.out_ld);
    } else if (left > W) {
      multiply_block<T, M, 2>(a, p.ld, p.columns, v, p.width, use, out, p.out_ld);
    } else {
      multiply_block<T, M, 1>(a, p.ld, p.columns, v, p.width, use, out, p.out_ld);
    }
  }
}

// Few right-hand sides: vectors run along the columns of the tile instead. Entries of V beyond
// the last column are zero, but the tile may hold anything there, so the last vector is masked.
template <class T>
MERCER_INLINE Vec<T> keep_first(Vec<T> v, int64_t count) {
  constexpr int W = kLanes<T>;
  for (int l = 0; l < W; ++l) {
    if (l >= count) v[l] = 0;
  }
  return v;
}

template <class T>
MERCER_INLINE T dot_row(const T* a, const T* v, int64_t size) {
  constexpr int W = kLanes<T>;
  Vec<T> s0 = {}, s1 = {}, s2 = {}, s3 = {};
  int64_t j = 0;
  for (; j + 4 * W <= size; j += 4 * W) {
    s0 += load(a + j) * load(v + j);
    s1 += load(a + j + W) * load(v + j + W);
    s2 += load(a + j + 2 * W) * load(v + j + 2 * W);
    s3 += load(a + j + 3 * W) * load(v + j + 3 * W);
  }
  for (; j + W <= size; j += W) s0 += load(a + j) * load(v + j);
  if (j < size) s1 += keep_first<T>(load(a + j), size - j) * load(v + j);
  return sum_lanes<T>((s0 + s1) + (s2 + s3));
}

template <class T>
void multiply_few(const ProductArgs<T>& p) {
  for (int i = 0; i < p.rows; ++i) {
    for (int c = 0; c < p.vectors; ++c) {
      const T sum = dot_row(p.strip + i * p.ld, p.v + c * p.v_ld, p.columns);
      p.out[i * p.out_ld + c] += static_cast<double>(sum);
    }
  }
}

template <class T>
void multiply(const ProductArgs<T>& p) {
  if (p.width == 0) return multiply_few(p);
  int i = 0;
  for (; i + kMr <= p.rows; i += kMr) multiply_rows<T, kMr>(p, i);
  for (; i < p.rows; ++i) multiply_rows<T, 1>(p, i);
}

}  // namespace
}  // namespace mercer
