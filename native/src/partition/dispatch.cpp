// Which copy of the loops over rows this machine runs.
#include "algebra/simd.hpp"
#include "partition/passes.hpp"

#define MERCER_DECLARE(variant)              \
  namespace mercer::partition::variant {     \
  const Passes<float>& passes_float();       \
  const Passes<double>& passes_double();     \
  const SumPasses& passes_sums();            \
  const FeaturePasses& passes_features();    \
  }

MERCER_DECLARE(baseline)
#ifdef MERCER_HAS_AVX2
MERCER_DECLARE(avx2)
#endif
#ifdef MERCER_HAS_AVX512
MERCER_DECLARE(avx512)
#endif

namespace mercer::partition {
namespace {

struct Variant {
  const Passes<float>& (*in_float)();
  const Passes<double>& (*in_double)();
  const SumPasses& (*sums)();
  const FeaturePasses& (*features)();
};

Variant variant() {
#ifdef MERCER_HAS_AVX512
  static const bool complete = __builtin_cpu_supports("avx512bw");
  if (complete && algebra::level() == algebra::Level::widest)
    return {avx512::passes_float, avx512::passes_double, avx512::passes_sums,
            avx512::passes_features};
#endif
#ifdef MERCER_HAS_AVX2
  if (algebra::level() >= algebra::Level::wide)
    return {avx2::passes_float, avx2::passes_double, avx2::passes_sums,
            avx2::passes_features};
#endif
  return {baseline::passes_float, baseline::passes_double, baseline::passes_sums,
            baseline::passes_features};
}

}  // namespace

template <>
const Passes<float>& passes<float>() {
  return variant().in_float();
}

template <>
const Passes<double>& passes<double>() {
  return variant().in_double();
}

const SumPasses& sum_passes() { return variant().sums(); }
const FeaturePasses& feature_passes() { return variant().features(); }

}  // namespace mercer::partition
