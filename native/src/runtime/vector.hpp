// Vectors of the instruction set that this copy is compiled for: what every file that CMake compiles once per
// MERCER_VARIANT is made of. Internal linkage throughout, so that copies never mix.
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define MERCER_INLINE inline __attribute__((always_inline))

namespace mercer {

// A file of one instruction set gives its tables of functions to dispatch.hpp by specialising this.
namespace MERCER_VARIANT {
template <class Table>
const Table& table();
}

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
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
struct IntegerOf;
template <>
struct IntegerOf<float> {
  typedef int32_t type;
};
template <>
struct IntegerOf<double> {
  typedef int64_t type;
};

// Vectors of `lanes` numbers; a width the processor lacks is split by the compiler. The loose
// alignment and may_alias make loads through these types legal on any array of such numbers.
template <class T, int lanes>
struct Simd {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
  typedef T loose __attribute__((vector_size(lanes * sizeof(T)), aligned(sizeof(T)), may_alias));
};

template <class T, int lanes = kLanes<T>>
using Vec = typename Simd<T, lanes>::type;
template <class T>
using Int = typename IntegerOf<T>::type;
template <class T>
using Ints = typename Simd<Int<T>, kLanes<T>>::type;

template <class T, int lanes = kLanes<T>>
MERCER_INLINE Vec<T, lanes> load(const T* from) {
  return *reinterpret_cast<const typename Simd<T, lanes>::loose*>(from);
}

template <class T, int lanes = kLanes<T>>
MERCER_INLINE void store(T* to, Vec<T, lanes> v) {
  *reinterpret_cast<typename Simd<T, lanes>::loose*>(to) = v;
}

// The first `count` numbers, then zeros; reads no further.
template <class T>
MERCER_INLINE Vec<T> load_some(const T* from, int64_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1u), from);
  else
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1u), from);
#else
  Vec<T> v = {};
  for (int64_t lane = 0; lane < count; ++lane) v[lane] = from[lane];
  return v;
#endif
}

template <class T>
MERCER_INLINE Vec<T> splat(T x) {
  return x - Vec<T>{};  // x - 0 is x for every x, so the subtraction folds away; x + 0 would not
}

template <class T>
MERCER_INLINE Vec<T> pick(Ints<T> mask, Vec<T> yes, Vec<T> no) {
  return mask ? yes : no;
}

// The larger; b where one of them is not a number. Compilers do not find the one instruction that
// does this by themselves when NaN must be honoured.
template <class T>
MERCER_INLINE Vec<T> larger(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_max_ps(a, b);
  else return _mm512_max_pd(a, b);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_max_ps(a, b);
  else return _mm256_max_pd(a, b);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return _mm_max_ps(a, b);
  else return _mm_max_pd(a, b);
#else
  return pick<T>(a > b, a, b);
#endif
}

// The smaller; b where one of them is not a number.
template <class T>
MERCER_INLINE Vec<T> smaller(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_min_ps(a, b);
  else return _mm512_min_pd(a, b);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_min_ps(a, b);
  else return _mm256_min_pd(a, b);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return _mm_min_ps(a, b);
  else return _mm_min_pd(a, b);
#else
  return pick<T>(a < b, a, b);
#endif
}

// c + a b and c - a b, rounded once where the machine can: always the same way, so that two sweeps
// over the same entries agree to the last bit.
template <class T>
MERCER_INLINE Vec<T> plus_product(Vec<T> c, Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_fmadd_ps(a, b, c);
  else return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  if constexpr (sizeof(T) == 4) return _mm256_fmadd_ps(a, b, c);
  else return _mm256_fmadd_pd(a, b, c);
#else
  return c + a * b;
#endif
}

template <class T>
MERCER_INLINE Vec<T> minus_product(Vec<T> c, Vec<T> a, Vec<T> b) {
  return plus_product<T>(c, -a, b);
}

// 1 / v, to three digits at least: for ranking.
template <class T>
MERCER_INLINE Vec<T> reciprocal(Vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_rcp14_ps(v);
  else return _mm512_rcp14_pd(v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_rcp_ps(v);
  else return T(1) / v;
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return _mm_rcp_ps(v);
  else return T(1) / v;
#else
  return T(1) / v;
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

template <class T, int lanes = kLanes<T>>
MERCER_INLINE T sum_lanes(Vec<T, lanes> v) {
  T total = 0;
  for (int l = 0; l < lanes; ++l) total += v[l];
  return total;
}

template <class T>
MERCER_INLINE T largest_lane(Vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_reduce_max_ps(v);
  else return _mm512_reduce_max_pd(v);
#else
  T most = v[0];
  for (int l = 1; l < kLanes<T>; ++l) most = v[l] > most ? v[l] : most;
  return most;
#endif
}

template <class T>
MERCER_INLINE T smallest_lane(Vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_reduce_min_ps(v);
  else return _mm512_reduce_min_pd(v);
#else
  T least = v[0];
  for (int l = 1; l < kLanes<T>; ++l) least = v[l] < least ? v[l] : least;
  return least;
#endif
}

// Whether a > b in any lane.
template <class T>
MERCER_INLINE bool any_above(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
  else return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ) != 0;
#else
  bool any = false;
  for (int l = 0; l < kLanes<T>; ++l) any |= a[l] > b[l];
  return any;
#endif
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
  store<T>(p, v);
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
