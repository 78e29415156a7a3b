// Vectors of the instruction set this file is compiled for. For files that CMake compiles once per MERCER_VARIANT.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "svm/passes.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12's own headers
#endif

namespace mercer::svm::MERCER_VARIANT {

#define MERCER_INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <class Entry>
struct Types;
template <>
struct Types<float> {
  typedef float Vector __attribute__((vector_size(kBytes)));
  typedef float Loose __attribute__((vector_size(kBytes), aligned(4), may_alias));
  typedef std::int32_t Places __attribute__((vector_size(kBytes)));
};
template <>
struct Types<double> {
  typedef double Vector __attribute__((vector_size(kBytes)));
  typedef double Loose __attribute__((vector_size(kBytes), aligned(8), may_alias));
  typedef std::int64_t Places __attribute__((vector_size(kBytes)));
};

template <class Entry>
using Vector = typename Types<Entry>::Vector;
template <class Entry>
using Places = typename Types<Entry>::Places;
template <class Entry>
constexpr Size kLanes = kBytes / static_cast<Size>(sizeof(Entry));
template <class Entry>
constexpr Entry kInfinity = std::numeric_limits<Entry>::infinity();

template <class Entry>
MERCER_INLINE Vector<Entry> load(const Entry* from) {
  return *reinterpret_cast<const typename Types<Entry>::Loose*>(from);
}

template <class Entry>
MERCER_INLINE void store(Entry* to, Vector<Entry> v) {
  *reinterpret_cast<typename Types<Entry>::Loose*>(to) = v;
}

template <class Entry>
MERCER_INLINE Vector<Entry> filled(Entry value) {
  return Vector<Entry>{} + value;
}

// The first `count` entries, then zeros; reads no further.
template <class Entry>
MERCER_INLINE Vector<Entry> load_some(const Entry* from, Size count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Entry) == 4)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1u), from);
  else
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1u), from);
#else
  Vector<Entry> v = {};
  for (Size lane = 0; lane < count; ++lane) v[lane] = from[lane];
  return v;
#endif
}

// The larger; b where a is not a number.
template <class Entry>
MERCER_INLINE Vector<Entry> larger(Vector<Entry> a, Vector<Entry> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Entry) == 4)
    return _mm512_max_ps(a, b);
  else
    return _mm512_max_pd(a, b);
#elif defined(__AVX__)
  if constexpr (sizeof(Entry) == 4)
    return _mm256_max_ps(a, b);
  else
    return _mm256_max_pd(a, b);
#elif defined(__SSE2__)
  if constexpr (sizeof(Entry) == 4)
    return _mm_max_ps(a, b);
  else
    return _mm_max_pd(a, b);
#else
  return a > b ? a : b;
#endif
}

// The smaller; b where a is not a number.
template <class Entry>
MERCER_INLINE Vector<Entry> smaller(Vector<Entry> a, Vector<Entry> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Entry) == 4)
    return _mm512_min_ps(a, b);
  else
    return _mm512_min_pd(a, b);
#elif defined(__AVX__)
  if constexpr (sizeof(Entry) == 4)
    return _mm256_min_ps(a, b);
  else
    return _mm256_min_pd(a, b);
#elif defined(__SSE2__)
  if constexpr (sizeof(Entry) == 4)
    return _mm_min_ps(a, b);
  else
    return _mm_min_pd(a, b);
#else
  return a < b ? a : b;
#endif
}

// c + a b and c - a b, rounded once where the machine can: always the same way, so that two sweeps
// over the same entries agree to the last bit.
template <class Entry>
MERCER_INLINE Vector<Entry> plus_product(Vector<Entry> c, Vector<Entry> a, Vector<Entry> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Entry) == 4)
    return _mm512_fmadd_ps(a, b, c);
  else
    return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  if constexpr (sizeof(Entry) == 4)
    return _mm256_fmadd_ps(a, b, c);
  else
    return _mm256_fmadd_pd(a, b, c);
#else
  return c + a * b;
#endif
}

template <class Entry>
MERCER_INLINE Vector<Entry> minus_product(Vector<Entry> c, Vector<Entry> a, Vector<Entry> b) {
  return plus_product<Entry>(c, -a, b);
}

// 1 / v, to three digits at least: it only ranks gains.
template <class Entry>
MERCER_INLINE Vector<Entry> reciprocal(Vector<Entry> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Entry) == 4)
    return _mm512_rcp14_ps(v);
  else
    return _mm512_rcp14_pd(v);
#elif defined(__AVX__)
  if constexpr (sizeof(Entry) == 4)
    return _mm256_rcp_ps(v);
  else
    return Entry(1) / v;
#elif defined(__SSE2__)
  if constexpr (sizeof(Entry) == 4)
    return _mm_rcp_ps(v);
  else
    return Entry(1) / v;
#else
  return Entry(1) / v;
#endif
}

// The largest value of each lane and where it was first.
template <class Entry>
struct Largest {
  Vector<Entry> value;
  Places<Entry> place;

  MERCER_INLINE explicit Largest(Entry start)
      : value(filled<Entry>(start)), place(Places<Entry>{} - 1) {}

  MERCER_INLINE void offer(Vector<Entry> v, Places<Entry> at) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Entry) == 4) {
      const __mmask16 better = _mm512_cmp_ps_mask(v, value, _CMP_GT_OQ);
      value = _mm512_mask_mov_ps(value, better, v);
      place = (Places<Entry>)_mm512_mask_mov_epi32((__m512i)place, better, (__m512i)at);
    } else {
      const __mmask8 better = _mm512_cmp_pd_mask(v, value, _CMP_GT_OQ);
      value = _mm512_mask_mov_pd(value, better, v);
      place = (Places<Entry>)_mm512_mask_mov_epi64((__m512i)place, better, (__m512i)at);
    }
#else
    const Places<Entry> better = v > value;
    value = better ? v : value;
    place = better ? at : place;
#endif
  }
};

// The largest over all lanes of two chains; of equal ones that with the smallest place. A place of
// -1 (nothing was offered above the start) loses.
template <class Entry>
MERCER_INLINE std::int32_t first_largest(const Largest<Entry>& a, const Largest<Entry>& b,
                                         Entry start, Entry& value) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Entry) == 4) {
    const float top = _mm512_reduce_max_ps(_mm512_max_ps(a.value, b.value));
    value = top;
    if (!(top > start)) return -1;
    const __m512 tops = _mm512_set1_ps(top);
    const __m512i none = _mm512_set1_epi32(INT32_MAX);
    const __m512i pa = _mm512_mask_mov_epi32(
        none, _mm512_cmp_ps_mask(a.value, tops, _CMP_EQ_OQ), (__m512i)a.place);
    const __m512i pb = _mm512_mask_mov_epi32(
        none, _mm512_cmp_ps_mask(b.value, tops, _CMP_EQ_OQ), (__m512i)b.place);
    return _mm512_reduce_min_epi32(_mm512_min_epi32(pa, pb));
  }
#endif
  std::int64_t place = -1;
  value = start;
  for (const Largest<Entry>* chain : {&a, &b}) {
    for (Size lane = 0; lane < kLanes<Entry>; ++lane) {
      const Entry v = chain->value[lane];
      const std::int64_t at = chain->place[lane];
      if (v > value || (v == value && at >= 0 && at < place)) {
        value = v;
        place = at;
      }
    }
  }
  return static_cast<std::int32_t>(place);
}

template <class Entry>
MERCER_INLINE Entry largest_lane(Vector<Entry> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Entry) == 4)
    return _mm512_reduce_max_ps(v);
  else
    return _mm512_reduce_max_pd(v);
#else
  Entry most = v[0];
  for (Size lane = 1; lane < kLanes<Entry>; ++lane) most = v[lane] > most ? v[lane] : most;
  return most;
#endif
}

// Whether a > b in any lane.
template <class Entry>
MERCER_INLINE bool any_above(Vector<Entry> a, Vector<Entry> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Entry) == 4)
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
  else
    return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ) != 0;
#else
  bool any = false;
  for (Size lane = 0; lane < kLanes<Entry>; ++lane) any |= a[lane] > b[lane];
  return any;
#endif
}

template <class Entry>
MERCER_INLINE Entry smallest_lane(Vector<Entry> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Entry) == 4)
    return _mm512_reduce_min_ps(v);
  else
    return _mm512_reduce_min_pd(v);
#else
  Entry least = v[0];
  for (Size lane = 1; lane < kLanes<Entry>; ++lane) least = v[lane] < least ? v[lane] : least;
  return least;
#endif
}

}  // namespace mercer::svm::MERCER_VARIANT
