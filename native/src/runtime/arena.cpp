// The pool of touched pages behind large arrays.
#include "runtime/arena.hpp"

#include <nanobind/nanobind.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace mercer {
namespace {

constexpr std::size_t kPooled = std::size_t{1} << 20;    // smaller requests go to malloc
constexpr std::size_t kHugePage = std::size_t{1} << 21;  // blocks start at and fill huge pages

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::size_t default_limit() {
  const auto physical = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::min<std::size_t>(std::size_t{4} << 30, physical / 4);
}

struct Block {
  void* start;
  std::size_t bytes;
};

// Maps whole huge pages: takes one more than needed and unmaps what sticks out on both sides.
void* map_pages(std::size_t bytes) {
  void* mapped = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t start = round_up(address, kHugePage);
  if (start > address) munmap(mapped, start - address);
  const std::uintptr_t end = start + bytes;
  if (end < address + bytes + kHugePage) {
    munmap(reinterpret_cast<void*>(end), address + kHugePage - start);
  }
#ifdef MADV_HUGEPAGE
  madvise(reinterpret_cast<void*>(start), bytes, MADV_HUGEPAGE);
#endif
  return reinterpret_cast<void*>(start);
}

class Arena {
 public:
  void* take(std::size_t bytes) {
    bytes = round_up(bytes, kHugePage);
    const std::lock_guard<std::mutex> guard(lock);
    make_room();
    void* start = reuse(bytes);
    if (start == nullptr) start = fresh(bytes);
    return start;
  }

  // False when the memory is not ours (a small request).
  bool give(void* start) {
    const std::lock_guard<std::mutex> guard(lock);
    const auto found = lent_.find(start);
    if (found == lent_.end()) return false;
    idle_.push_back({start, found->second});
    idle_bytes_ += found->second;
    lent_.erase(found);
    shrink_idle(limit_);
    return true;
  }

  std::size_t release() {
    const std::lock_guard<std::mutex> guard(lock);
    const std::size_t before = idle_bytes_;
    shrink_idle(0);
    return before;
  }

  void set_limit(std::size_t bytes) {
    const std::lock_guard<std::mutex> guard(lock);
    limit_ = bytes;
    shrink_idle(limit_);
  }

  std::size_t idle() {
    const std::lock_guard<std::mutex> guard(lock);
    return idle_bytes_;
  }

  std::mutex lock;

 private:
  // What is lent can come back without a new allocation: `give` must not fail.
  void make_room() {
    const std::size_t needed = idle_.size() + lent_.size() + 1;
    if (idle_.capacity() < needed) idle_.reserve(2 * needed);
  }

  // The smallest idle block that fits, unless it would waste more than a quarter.
  void* reuse(std::size_t bytes) {
    auto best = idle_.end();
    for (auto block = idle_.begin(); block != idle_.end(); ++block) {
      const bool fits = block->bytes >= bytes && block->bytes <= bytes + bytes / 4 + kHugePage;
      if (fits && (best == idle_.end() || block->bytes < best->bytes)) best = block;
    }
    if (best == idle_.end()) return nullptr;
    const Block block = *best;
    lent_.emplace(block.start, block.bytes);
    idle_bytes_ -= block.bytes;
    idle_.erase(best);
    return block.start;
  }

  // Idle pages that did not fit make room, so that idle and new pages together stay bounded.
  void* fresh(std::size_t bytes) {
    shrink_idle(limit_ > bytes ? limit_ - bytes : 0);
    void* start = map_pages(bytes);
    if (start == nullptr) {
      shrink_idle(0);
      start = map_pages(bytes);
    }
    if (start == nullptr) throw std::bad_alloc();
    try {
      lent_.emplace(start, bytes);
    } catch (...) {
      munmap(start, bytes);
      throw;
    }
    return start;
  }

  void shrink_idle(std::size_t limit) {
    auto oldest = idle_.begin();
    for (; oldest != idle_.end() && idle_bytes_ > limit; ++oldest) {
      munmap(oldest->start, oldest->bytes);
      idle_bytes_ -= oldest->bytes;
    }
    idle_.erase(idle_.begin(), oldest);
  }

  std::vector<Block> idle_;  // oldest first
  std::size_t idle_bytes_ = 0;
  std::unordered_map<void*, std::size_t> lent_;
  std::size_t limit_ = default_limit();
};

// Never destroyed: arrays may be freed while static destructors run. A fork waits until no other
// thread holds the lock, so that the child finds the arena in a consistent state.
Arena& arena() {
  static Arena* const shared = [] {
    auto* made = new Arena;
    pthread_atfork([] { arena().lock.lock(); }, [] { arena().lock.unlock(); },
                   [] { arena().lock.unlock(); });
    return made;
  }();
  return *shared;
}
// Made when the library is loaded: a fork in the middle of a first use would leave it half made.
[[maybe_unused]] const Arena& g_arena = arena();

}  // namespace

void* take_memory(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  if (bytes >= kPooled) return arena().take(bytes);
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give_memory(void* memory) noexcept {
  // Blocks of the arena start at huge pages; malloc's small ones almost never do.
  const bool may_be_ours = reinterpret_cast<std::uintptr_t>(memory) % kHugePage == 0;
  if (may_be_ours && arena().give(memory)) return;
  std::free(memory);
}

std::size_t release_memory() noexcept { return arena().release(); }
void set_idle_limit(std::size_t bytes) noexcept { arena().set_limit(bytes); }
std::size_t idle_memory() noexcept { return arena().idle(); }

}  // namespace mercer

void bind_arena(nanobind::module_& m) {
  m.def("release_memory", &mercer::release_memory,
        "Hand idle pages of the memory arena back to the system; return their bytes.");
  m.def("set_idle_limit", &mercer::set_idle_limit, nanobind::arg("bytes"));
  m.def("idle_memory", &mercer::idle_memory);
}
