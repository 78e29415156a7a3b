// Rows of a tile times a block of vectors: the tile is used while it is in the cache, then dropped.
#pragma once

#include "tiles/micro_tile.hpp"
#include "tiles/product_few.hpp"
#include "tiles/tiles.hpp"

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

template <class T>
void multiply(const ProductArgs<T>& p) {
  if (p.width == 0) {
    return multiply_few<T, false>({p.strip, p.ld, p.rows, p.columns, p.v, nullptr, 0, p.vectors,
                                   p.out, p.out_ld, nullptr});
  }
  int i = 0;
  for (; i + kMr <= p.rows; i += kMr) multiply_rows<T, kMr>(p, i);
  for (; i < p.rows; ++i) multiply_rows<T, 1>(p, i);
}

// --- tiles of symmetric matrices: the strip and its transpose in one go -----------------------

// M rows times N vectors of right-hand sides, and the columns times the vectors of the M rows:
// each entry is fetched once and used twice.
template <class T, int M, int N>
__attribute__((noinline)) void multiply_both_block(const BothArgs<T>& p, int row, int vector) {
  constexpr int W = kLanes<T>;
  const T* a = p.strip + row * p.ld;
  const T *v = p.v + vector, *u = p.u + row * p.width + vector;
  T* t = p.turned + vector;
  Vec<T> sum[M][N] = {}, x[M][N];
#pragma GCC unroll 12
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) x[i][j] = load(u + i * p.width + j * W);
  }
#pragma GCC unroll 1
  for (int k = 0; k < p.columns; ++k) {
    Vec<T> b[N], s[2][N] = {};  // two chains: one alone would wait for its own sums
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) b[j] = load(v + j * W), s[0][j] = load(t + j * W);
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i) {
      const Vec<T> e = splat<T>(a[i * p.ld + k]);
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j) sum[i][j] += e * b[j], s[i % 2][j] += e * x[i][j];
    }
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) store(t + j * W, s[0][j] + s[1][j]);
    v += p.width, t += p.width;
  }
  const int left = p.vectors - vector, use = left < N * W ? left : N * W;
  for (int i = 0; i < M; ++i) {
    T flat[N * W];
    for (int j = 0; j < N; ++j) store(flat + j * W, sum[i][j]);
    double* out = p.out + (row + i) * p.out_ld + vector;
    for (int j = 0; j < use; ++j) out[j] += static_cast<double>(flat[j]);
  }
}

template <class T, int N>
MERCER_INLINE void multiply_both_rows(const BothArgs<T>& p, int vector) {
  constexpr int wide = 3 * kMr / 2 / N, M = kMr / N;
  int i = 0;
  if (p.rows >= 2 * wide * N) {  // not a strip of one micro tile
    for (; i + wide <= p.rows; i += wide) multiply_both_block<T, wide, N>(p, i, vector);
  }
  for (; i + M <= p.rows; i += M) multiply_both_block<T, M, N>(p, i, vector);
  for (; i < p.rows; ++i) multiply_both_block<T, 1, N>(p, i, vector);
}

template <class T>
void multiply_both(const BothArgs<T>& p) {
  constexpr int W = kLanes<T>;
  if (p.width == 0) return multiply_few<T, true>(p);
  int vector = 0;
  for (; p.width - vector >= 2 * W; vector += 2 * W) multiply_both_rows<T, 2>(p, vector);
  if (vector < p.width) multiply_both_rows<T, 1>(p, vector);
}

// Adds what a tile gave to the rows of its columns, and clears it for the next.
template <class T>
void collect(T* turned, int width, int columns, int vectors, double* out) {
  if (width == 0) return collect_few(turned, columns, vectors, out);
  for (int j = 0; j < columns; ++j) {
    T* row = turned + j * width;
    for (int c = 0; c < vectors; ++c) out[j * vectors + c] += static_cast<double>(row[c]);
    for (int c = 0; c < width; ++c) row[c] = T(0);
  }
}

}  // namespace
}  // namespace mercer
