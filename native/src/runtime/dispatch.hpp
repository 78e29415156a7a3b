// Which copy of the vector code runs. Files that CMake compiles once per instruction set
// (MERCER_VARIANT) hand out tables of functions, and a table is asked for here by its type.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace mercer {

enum class InstructionSet { baseline, avx2, avx512 };

// The one in use; cheap, inner products ask at every call.
inline std::atomic<InstructionSet> g_instruction_set{InstructionSet::baseline};

// Sets it to the best this machine has, or to what MERCER_ISA names (baseline, avx2, avx512);
// throws std::runtime_error. Called at the start of every verb, so that one process can test all.
void choose_instruction_set();

// Names of those that run here, fastest first.
std::vector<std::string> instruction_sets();

// Whether the machine has AVX-512 VNNI, and the environment does not say MERCER_VNNI=0.
bool has_byte_products();

#define MERCER_DECLARE(variant) \
  namespace variant {           \
  template <class Table>        \
  const Table& table();         \
  }

MERCER_DECLARE(baseline)
#ifdef MERCER_HAS_X86
MERCER_DECLARE(avx2)
MERCER_DECLARE(avx512)
#endif
#undef MERCER_DECLARE

// The table of the instruction set in use.
template <class Table>
const Table& table() {
#ifdef MERCER_HAS_X86
  const InstructionSet set = g_instruction_set.load(std::memory_order_relaxed);
  if (set == InstructionSet::avx512) return avx512::table<Table>();
  if (set == InstructionSet::avx2) return avx2::table<Table>();
#endif
  return baseline::table<Table>();
}

}  // namespace mercer
