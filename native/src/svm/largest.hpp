// The largest value of a sweep and its place; of equal ones the first. For files that CMake compiles
// once per MERCER_VARIANT.
#pragma once

#include <initializer_list>

#include "runtime/vector.hpp"

namespace mercer::svm {
namespace {

// The largest value of each lane and where it was first.
template <class Entry>
struct Largest {
  Vec<Entry> value;
  Ints<Entry> place;

  MERCER_INLINE explicit Largest(Entry start)
      : value(splat<Entry>(start)), place(Ints<Entry>{} - 1) {}

  MERCER_INLINE void offer(Vec<Entry> v, Ints<Entry> at) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Entry) == 4) {
      const __mmask16 better = _mm512_cmp_ps_mask(v, value, _CMP_GT_OQ);
      value = _mm512_mask_mov_ps(value, better, v);
      place = (Ints<Entry>)_mm512_mask_mov_epi32((__m512i)place, better, (__m512i)at);
    } else {
      const __mmask8 better = _mm512_cmp_pd_mask(v, value, _CMP_GT_OQ);
      value = _mm512_mask_mov_pd(value, better, v);
      place = (Ints<Entry>)_mm512_mask_mov_epi64((__m512i)place, better, (__m512i)at);
    }
#else
    const Ints<Entry> better = v > value;
    value = better ? v : value;
    place = better ? at : place;
#endif
  }
};

// The largest over all lanes of two chains; of equal ones that with the smallest place. A place of
// -1 (nothing was offered above the start) loses.
template <class Entry>
MERCER_INLINE int32_t first_largest(const Largest<Entry>& a, const Largest<Entry>& b,
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
  int64_t place = -1;
  value = start;
  for (const Largest<Entry>* chain : {&a, &b}) {
    for (int lane = 0; lane < kLanes<Entry>; ++lane) {
      const Entry v = chain->value[lane];
      const int64_t at = chain->place[lane];
      if (v > value || (v == value && at >= 0 && at < place)) {
        value = v;
        place = at;
      }
    }
  }
  return static_cast<int32_t>(place);
}

}  // namespace
}  // namespace mercer::svm
