// Choosing instructions at run time: one always-inlined body, compiled for several processors.
#pragma once

#include <atomic>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define MERCER_X86 1
#define MERCER_TARGET_512 __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#define MERCER_TARGET_256 __attribute__((target("avx2,fma")))
#endif
#define MERCER_INLINE inline __attribute__((always_inline))

namespace mercer::algebra {

enum class Level { plain, wide, widest };  // 128, 256 and 512 bit registers

inline std::atomic<Level> g_level{Level::plain};

// What the products use now; cheap, they ask at every call.
inline Level level() { return g_level.load(std::memory_order_relaxed); }

// Sets it to the best this machine has, or to what MERCER_ISA names (baseline, avx2, avx512);
// throws std::runtime_error. Called at the start of every verb, so one process can test all.
void choose_level();

// Vectors of `lanes` numbers; a width the processor lacks is split by the compiler. The loose
// alignment and may_alias make loads through these types legal on any array of such numbers.
template <class T, int lanes>
struct Vector {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
  typedef T loose __attribute__((vector_size(lanes * sizeof(T)), aligned(sizeof(T)), may_alias));
};

}  // namespace mercer::algebra
