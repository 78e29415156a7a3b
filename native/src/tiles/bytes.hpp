// Bytes in words of four: one instruction makes 64 products and adds them up, all in whole numbers.
#pragma once

#include "runtime/vector.hpp"
#include "tiles/tiles.hpp"

namespace mercer {
namespace {

// Whether this copy has the instruction; the machine may still lack it, see has_byte_products().
template <class T>
constexpr bool kHasBytes = sizeof(T) == 4 && kVectorBytes == 64;

// In assembly: GCC 12 spills the accumulators of the intrinsic, and no other code of this copy may
// use VNNI.
struct ByteDotStep {
  static constexpr int32_t start = 0;
  static MERCER_INLINE Vec<int32_t> step(Vec<int32_t> sum, Vec<int32_t> a, Vec<int32_t> b) {
#if defined(__AVX512F__)
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));  // a unsigned, b signed
#else
    (void)a, (void)b;
#endif
    return sum;
  }
};

template <class T>
MERCER_INLINE PanelArgs<int32_t> as_words(const PanelArgs<T>& p) {
  return {reinterpret_cast<const int32_t*>(p.a),
          reinterpret_cast<const int32_t*>(p.b),
          p.a_stride,
          p.b_stride,
          p.depth,
          reinterpret_cast<int32_t*>(p.c),
          p.ld,
          p.rows,
          p.panels,
          p.degree,
          p.first};
}

// See Tiles::combine. Exact up to the last line, so that nothing is ever doubtful.
template <class T>
MERCER_INLINE void combine_words(T* strip, int64_t ld, int rows, const T* x, const T* y, T factor,
                                 T unit) {
  const auto* x_words = reinterpret_cast<const int32_t*>(x);
  const auto* y_words = reinterpret_cast<const int32_t*>(y);
  const auto times = static_cast<int32_t>(factor);
  for (int i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < ld; j += kLanes<T>) {
      T* at = strip + i * ld + j;
      const Vec<int32_t> products = load(reinterpret_cast<const int32_t*>(at));
      const Vec<int32_t> whole = (x_words[i] + load(y_words + j)) + times * products;
      store(at, unit * __builtin_convertvector(whole, Vec<T>));
    }
  }
}

}  // namespace
}  // namespace mercer
