// Which instruction sets this machine has, and which one is in use.
#include "runtime/dispatch.hpp"

#include <cstdlib>
#include <stdexcept>

namespace mercer {
namespace {

struct Choice {
  InstructionSet set;
  const char* name;
  bool works;
};

// Fastest first.
const std::vector<Choice>& choices() {
  static const std::vector<Choice> all = {
#ifdef MERCER_HAS_X86
      {InstructionSet::avx512, "avx512",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")},
      {InstructionSet::avx2, "avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
#endif
      {InstructionSet::baseline, "baseline", true},
  };
  return all;
}

}  // namespace

void choose_instruction_set() {
  const char* variable = std::getenv("MERCER_ISA");
  const std::string wanted = variable ? variable : "";
  for (const Choice& choice : choices()) {
    if (!choice.works || !(wanted.empty() || wanted == choice.name)) continue;
    g_instruction_set.store(choice.set, std::memory_order_relaxed);
    return;
  }
  throw std::runtime_error("MERCER_ISA=" + wanted + " is not available on this machine");
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Choice& choice : choices()) {
    if (choice.works) names.emplace_back(choice.name);
  }
  return names;
}

bool has_byte_products() {
#ifdef MERCER_HAS_X86
  const char* variable = std::getenv("MERCER_VNNI");  // read anew, so that one process can test both
  const bool wanted = variable == nullptr || std::string(variable) != "0";
  return wanted && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

}  // namespace mercer
