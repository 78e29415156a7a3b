// Which copy of the vector code this machine runs.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/dispatch.hpp"

#define MERCER_DECLARE(variant)               \
  namespace mercer::variant {                 \
  const Tiles<float>& tiles_float();          \
  const Tiles<double>& tiles_double();        \
  }

MERCER_DECLARE(baseline)
#ifdef MERCER_HAS_AVX2
MERCER_DECLARE(avx2)
#endif
#ifdef MERCER_HAS_AVX512
MERCER_DECLARE(avx512)
#endif

namespace mercer {
namespace {

struct Choice {
  const char* name;
  bool works;
  const Tiles<float>& (*in_float)();
  const Tiles<double>& (*in_double)();
};

// Fastest first.
const std::vector<Choice>& choices() {
  static const std::vector<Choice> all = {
#ifdef MERCER_HAS_AVX512
      {"avx512",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"),
       avx512::tiles_float, avx512::tiles_double},
#endif
#ifdef MERCER_HAS_AVX2
      {"avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), avx2::tiles_float,
       avx2::tiles_double},
#endif
      {"baseline", true, baseline::tiles_float, baseline::tiles_double},
  };
  return all;
}

// Read at every binding, so that one process can test all variants.
const Choice& choose() {
  const char* variable = std::getenv("MERCER_ISA");
  const std::string wanted = variable ? variable : "";
  for (const Choice& choice : choices()) {
    if (choice.works && (wanted.empty() || wanted == choice.name)) return choice;
  }
  throw std::runtime_error("MERCER_ISA=" + wanted + " is not available on this machine");
}

}  // namespace

template <>
const Tiles<float>& tiles<float>() {
  return choose().in_float();
}

template <>
const Tiles<double>& tiles<double>() {
  return choose().in_double();
}

bool byte_products(const Tiles<float>& tiles) {
#ifdef MERCER_HAS_AVX512
  const char* variable = std::getenv("MERCER_VNNI");  // read anew, as above
  const bool wanted = variable == nullptr || std::string(variable) != "0";
  return wanted && tiles.bytes && __builtin_cpu_supports("avx512vnni");
#else
  return tiles.bytes;
#endif
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Choice& choice : choices()) {
    if (choice.works) names.emplace_back(choice.name);
  }
  return names;
}

}  // namespace mercer
