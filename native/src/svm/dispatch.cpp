// Which copy of the sweeps this machine runs.
#include "algebra/simd.hpp"
#include "svm/path/expand.hpp"
#include "svm/passes.hpp"

#define MERCER_DECLARE(variant)            \
  namespace mercer::svm::variant {         \
  const Passes<float>& passes_float();     \
  const Passes<double>& passes_double();   \
  Expand<float> expand_float();            \
  Expand<double> expand_double();          \
  }

MERCER_DECLARE(baseline)
#ifdef MERCER_HAS_AVX2
MERCER_DECLARE(avx2)
#endif
#ifdef MERCER_HAS_AVX512
MERCER_DECLARE(avx512)
#endif

namespace mercer::svm {
namespace {

#ifdef MERCER_HAS_AVX512
// The dense algorithms ask for less at the same level.
bool widest() {
  static const bool complete = __builtin_cpu_supports("avx512bw");
  return complete && algebra::level() == algebra::Level::widest;
}
#endif

#ifdef MERCER_HAS_AVX2
bool wide() { return algebra::level() >= algebra::Level::wide; }
#endif

}  // namespace

template <>
const Passes<float>& passes<float>() {
#ifdef MERCER_HAS_AVX512
  if (widest()) return avx512::passes_float();
#endif
#ifdef MERCER_HAS_AVX2
  if (wide()) return avx2::passes_float();
#endif
  return baseline::passes_float();
}

template <>
const Passes<double>& passes<double>() {
#ifdef MERCER_HAS_AVX512
  if (widest()) return avx512::passes_double();
#endif
#ifdef MERCER_HAS_AVX2
  if (wide()) return avx2::passes_double();
#endif
  return baseline::passes_double();
}

template <>
Expand<float> expand<float>() {
#ifdef MERCER_HAS_AVX512
  if (widest()) return avx512::expand_float();
#endif
#ifdef MERCER_HAS_AVX2
  if (wide()) return avx2::expand_float();
#endif
  return baseline::expand_float();
}

template <>
Expand<double> expand<double>() {
#ifdef MERCER_HAS_AVX512
  if (widest()) return avx512::expand_double();
#endif
#ifdef MERCER_HAS_AVX2
  if (wide()) return avx2::expand_double();
#endif
  return baseline::expand_double();
}

}  // namespace mercer::svm
