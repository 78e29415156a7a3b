// Finding the few small entries of a row.
#pragma once

#include "runtime/vector.hpp"
#include "tiles/tiles.hpp"

namespace mercer {
namespace {

// One bit for each lane with v <= limit; a NaN has none.
template <class T>
MERCER_INLINE unsigned at_most(Vec<T> v, Vec<T> limit) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask(v, limit, _CMP_LE_OQ);
  else return _mm512_cmp_pd_mask(v, limit, _CMP_LE_OQ);
#elif defined(__AVX2__)
  const Ints<T> below = v <= limit;
  if constexpr (sizeof(T) == 4) return _mm256_movemask_ps(from_bits<T>(below));
  else return _mm256_movemask_pd(from_bits<T>(below));
#elif defined(__x86_64__)
  const Ints<T> below = v <= limit;
  if constexpr (sizeof(T) == 4) return _mm_movemask_ps(from_bits<T>(below));
  else return _mm_movemask_pd(from_bits<T>(below));
#else
  const Ints<T> below = v <= limit;
  unsigned mask = 0;
  for (int l = 0; l < kLanes<T>; ++l) mask |= (below[l] ? 1u : 0u) << l;
  return mask;
#endif
}

// Whole vectors are read: the row has room up to the next multiple of the vector length.
template <class T>
int select(const T* row, int columns, T limit, int32_t* out) {
  constexpr int W = kLanes<T>;
  const Vec<T> limits = splat(limit);
  int found = 0;
  for (int j = 0; j < columns; j += W) {
    for (unsigned mask = at_most<T>(load(row + j), limits); mask; mask &= mask - 1) {
      out[found++] = j + __builtin_ctz(mask);
    }
  }
  while (found > 0 && out[found - 1] >= columns) --found;
  return found;
}

}  // namespace
}  // namespace mercer
