// Vectors of the instruction set this copy is compiled for. Internal linkage throughout.
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mercer {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16, kRegisters = 32;
#else
constexpr int kVectorBytes = 16, kRegisters = 16;
#endif

template <class T>
struct Float;

template <>
struct Float<float> {
  typedef float V __attribute__((vector_size(kVectorBytes)));
  typedef float Unaligned __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
  typedef int32_t Int;
  typedef int32_t I __attribute__((vector_size(kVectorBytes)));
};

template <>
struct Float<double> {
  typedef double V __attribute__((vector_size(kVectorBytes)));
  typedef double Unaligned __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
  typedef int64_t Int;
  typedef int64_t I __attribute__((vector_size(kVectorBytes)));
};

// Words of whole numbers go through loads, stores and the micro kernel like floats.
template <>
struct Float<int32_t> {
  typedef int32_t V __attribute__((vector_size(kVectorBytes)));
  typedef int32_t Unaligned __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
};

template <class T>
using Vec = typename Float<T>::V;
template <class T>
using Ints = typename Float<T>::I;

template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

// The micro tile mr x nr: accumulators fill three quarters of the registers, the rest hold one row
// of B and a broadcast element of A.
constexpr int kColumnVectors = 3;
constexpr int kMr = kRegisters / 4;
template <class T>
constexpr int kNr = kColumnVectors * kLanes<T>;

#define MERCER_INLINE static inline __attribute__((always_inline))

template <class T>
MERCER_INLINE Vec<T> load(const T* p) {
  return *reinterpret_cast<const typename Float<T>::Unaligned*>(p);
}

template <class T>
MERCER_INLINE void store(T* p, Vec<T> v) {
  *reinterpret_cast<typename Float<T>::Unaligned*>(p) = v;
}

template <class T>
MERCER_INLINE Vec<T> splat(T x) {
  return x - Vec<T>{};  // x - 0 is x for every x, so the subtraction folds away; x + 0 would not
}

template <class T>
MERCER_INLINE Vec<T> pick(Ints<T> mask, Vec<T> yes, Vec<T> no) {
  return mask ? yes : no;
}

// Of a limit and a value; a NaN value stays NaN. Compilers do not find the one instruction that
// does this by themselves when NaN must be honoured.
template <class T>
MERCER_INLINE Vec<T> larger(Vec<T> limit, Vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_max_ps(limit, v);
  else return _mm512_max_pd(limit, v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_max_ps(limit, v);
  else return _mm256_max_pd(limit, v);
#else
  return pick<T>(limit > v, limit, v);
#endif
}

template <class T>
MERCER_INLINE Vec<T> smaller(Vec<T> limit, Vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_min_ps(limit, v);
  else return _mm512_min_pd(limit, v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_min_ps(limit, v);
  else return _mm256_min_pd(limit, v);
#else
  return pick<T>(limit < v, limit, v);
#endif
}

template <class T>
MERCER_INLINE Ints<T> bits(Vec<T> v) {
  return reinterpret_cast<Ints<T>>(v);
}

template <class T>
MERCER_INLINE Vec<T> from_bits(Ints<T> i) {
  return reinterpret_cast<Vec<T>>(i);
}

template <class T>
MERCER_INLINE T sum_lanes(Vec<T> v) {
  T total = 0;
  for (int l = 0; l < kLanes<T>; ++l) total += v[l];
  return total;
}

// Square root of each element; compilers turn this loop into one instruction.
template <class T>
MERCER_INLINE Vec<T> root(Vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_sqrt_ps(v);
  else return _mm512_sqrt_pd(v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_sqrt_ps(v);
  else return _mm256_sqrt_pd(v);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return _mm_sqrt_ps(v);
  else return _mm_sqrt_pd(v);
#else
  Vec<T> out;
  for (int l = 0; l < kLanes<T>; ++l) {
    out[l] = sizeof(T) == 4 ? __builtin_sqrtf(v[l]) : __builtin_sqrt(v[l]);
  }
  return out;
#endif
}

// Stores past the caches; p is aligned to the vector.
template <class T>
MERCER_INLINE void stream(T* p, Vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) _mm512_stream_ps(p, v);
  else _mm512_stream_pd(p, v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) _mm256_stream_ps(p, v);
  else _mm256_stream_pd(p, v);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) _mm_stream_ps(p, v);
  else _mm_stream_pd(p, v);
#else
  store(p, v);
#endif
}

// Streamed lines become visible to other threads in order with later stores.
inline void finish_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace
}  // namespace mercer
