// Moving finished tiles: to their place in the matrix, and turned over for the mirror place.
#pragma once

#include "runtime/vector.hpp"
#include "tiles/tiles.hpp"

namespace mercer {
namespace {

// The first and the second half of a and b, interleaved. Doing this log2(lanes) times to rows
// i and i + lanes/2 turns a square block of vectors over.
template <int W>
struct Interleave;
template <>
struct Interleave<2> {
  template <class V>
  static MERCER_INLINE V low(V a, V b) { return __builtin_shufflevector(a, b, 0, 2); }
  template <class V>
  static MERCER_INLINE V high(V a, V b) { return __builtin_shufflevector(a, b, 1, 3); }
};
template <>
struct Interleave<4> {
  template <class V>
  static MERCER_INLINE V low(V a, V b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
  template <class V>
  static MERCER_INLINE V high(V a, V b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
};
template <>
struct Interleave<8> {
  template <class V>
  static MERCER_INLINE V low(V a, V b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  template <class V>
  static MERCER_INLINE V high(V a, V b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};
template <>
struct Interleave<16> {
  template <class V>
  static MERCER_INLINE V low(V a, V b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19,  //
                                   4, 20, 5, 21, 6, 22, 7, 23);
  }
  template <class V>
  static MERCER_INLINE V high(V a, V b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27,  //
                                   12, 28, 13, 29, 14, 30, 15, 31);
  }
};

// A square block of vectors, turned over in registers.
template <class T>
struct Turned {
  Vec<T> row[kLanes<T>];
};

template <class T>
MERCER_INLINE Turned<T> turn(const T* in, int64_t ld) {
  constexpr int W = kLanes<T>;
  Turned<T> turned;
  Vec<T>(&x)[W] = turned.row;
  Vec<T> y[W];
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) x[i] = load(in + i * ld);
#pragma GCC unroll 4
  for (int round = 1; round < W; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < W / 2; ++i) {
      y[2 * i] = Interleave<W>::low(x[i], x[i + W / 2]);
      y[2 * i + 1] = Interleave<W>::high(x[i], x[i + W / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) x[i] = y[i];
  }
  return turned;
}

// Whole blocks: both buffers have room up to the next multiple of the vector length.
template <class T>
void transpose(const T* in, int64_t ld, int rows, int columns, T* out, int64_t out_ld) {
  constexpr int W = kLanes<T>;
  for (int i = 0; i < rows; i += W) {
    for (int j = 0; j < columns; j += W) {
      const Turned<T> block = turn<T>(in + i * ld + j, ld);
#pragma GCC unroll 16
      for (int k = 0; k < W; ++k) store(out + (j + k) * out_ld + i, block.row[k]);
    }
  }
}

template <class T>
void stream_turned(const T* in, int64_t ld, int columns, T* out, int64_t out_ld) {
  constexpr int W = kLanes<T>;
  int j = 0;
  for (; j + W <= columns; j += W) {
    const Turned<T> block = turn<T>(in + j, ld);
#pragma GCC unroll 16
    for (int k = 0; k < W; ++k) stream(out + (j + k) * out_ld, block.row[k]);
  }
  for (; j < columns; ++j) {  // less than a block: `out` has no room beyond its rows
    for (int k = 0; k < W; ++k) out[j * out_ld + k] = in[k * ld + j];
  }
}

// One row: plain stores up to a vector boundary, streamed vectors, plain stores for the rest.
template <class T>
MERCER_INLINE void stream_row(const T* in, int columns, T* out) {
  constexpr int W = kLanes<T>;
  int j = 0;
  for (; j < columns && reinterpret_cast<uintptr_t>(out + j) % kVectorBytes; ++j) out[j] = in[j];
  for (; j + W <= columns; j += W) stream(out + j, load(in + j));
  for (; j < columns; ++j) out[j] = in[j];
}

template <class T>
void place(const T* in, int64_t ld, int rows, int columns, T* out, int64_t out_ld, bool streaming) {
  for (int i = 0; i < rows; ++i) {
    if (streaming) {
      stream_row(in + i * ld, columns, out + i * out_ld);
    } else {
      __builtin_memcpy(out + i * out_ld, in + i * ld, sizeof(T) * static_cast<size_t>(columns));
    }
  }
}

}  // namespace
}  // namespace mercer
