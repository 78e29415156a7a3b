// Sums over coefficients of one instruction set. CMake compiles this file once per MERCER_VARIANT.
#include "svm/path/expand.hpp"

#include "runtime/vector.hpp"

namespace mercer::svm {
namespace {

#if defined(__AVX512F__)
constexpr Size kVectors = 8;  // registers of columns
#else
constexpr Size kVectors = 4;
#endif
constexpr Size kTerms = 64;  // added in the type of K

// The sums do not leave the registers.
template <class Entry>
MERCER_INLINE void add_terms(const Entry* tile, const std::int32_t* places, const Entry* weights,
                             Size count, Entry (*sums)[kVectors * kLanes<Entry>]) {
  Vec<Entry> total[kStagesAtOnce][kVectors] = {};
  for (Size r = 0; r < count; ++r) {
    const Entry* row = tile + places[r] * kTileColumns;
    for (Size c = 0; c < kVectors; ++c) {
      const Vec<Entry> k = load(row + c * kLanes<Entry>);
      for (Size s = 0; s < kStagesAtOnce; ++s) total[s][c] += weights[r * kStagesAtOnce + s] * k;
    }
  }
  for (Size s = 0; s < kStagesAtOnce; ++s)
    for (Size c = 0; c < kVectors; ++c) store(sums[s] + c * kLanes<Entry>, total[s][c]);
}

template <class Entry>
void expand(const Entry* tile, Size columns, const std::int32_t* places, const Entry* weights,
            Size count, Size stages, double* sums, Size apart) {
  constexpr Size wide = kVectors * kLanes<Entry>;
  static_assert(kTileColumns % wide == 0);
  alignas(64) Entry few[kStagesAtOnce][wide];
  for (Size r = 0; r < count; r += kTerms) {
    const Size terms = count - r < kTerms ? count - r : kTerms;
    for (Size t = 0; t < columns; t += wide) {
      add_terms(tile + t, places + r, weights + r * kStagesAtOnce, terms, few);
      const Size length = columns - t < wide ? columns - t : wide;
      for (Size s = 0; s < stages; ++s) {
        double* to = sums + s * apart + t;
        for (Size c = 0; c < length; ++c) to[c] += static_cast<double>(few[s][c]);
      }
    }
  }
}

template <class Entry>
constexpr Expand<Entry> kExpand = {expand<Entry>};

}  // namespace
}  // namespace mercer::svm

namespace mercer {

template <>
const svm::Expand<float>& MERCER_VARIANT::table() {
  return svm::kExpand<float>;
}
template <>
const svm::Expand<double>& MERCER_VARIANT::table() {
  return svm::kExpand<double>;
}

}  // namespace mercer
