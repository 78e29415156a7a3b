// Which instructions the dense algorithms use.
#include "algebra/simd.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace mercer::algebra {
namespace {

struct Choice {
  Level level;
  const char* name;
  bool works;
};

}  // namespace

void choose_level() {
  static const Choice choices[] = {
#ifdef MERCER_X86
      {Level::widest, "avx512",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl")},
      {Level::wide, "avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
#endif
      {Level::plain, "baseline", true},
  };
  const char* wanted = std::getenv("MERCER_ISA");
  const bool any = wanted == nullptr || *wanted == 0;
  for (const Choice& choice : choices) {
    if (!choice.works || !(any || std::string(wanted) == choice.name)) continue;
    g_level.store(choice.level);
    return;
  }
  throw std::runtime_error("MERCER_ISA=" + std::string(wanted) +
                           " is not available on this machine");
}

}  // namespace mercer::algebra
