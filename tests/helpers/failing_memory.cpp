// Preloaded by test_native_out_of_memory.py: lets the k-th request for memory fail, once or from
// then on, so that every place where the compiled core takes memory is seen to fail.
#include <dlfcn.h>
#include <errno.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> left{-1};  // requests until one fails; negative: none will
std::atomic<bool> for_ever{false};
std::atomic<long> asked{0};

bool fails() {
  asked.fetch_add(1);
  long now = left.load();
  while (now >= 0) {
    if (now == 0 && for_ever.load()) return true;
    if (left.compare_exchange_weak(now, now - 1)) return now == 0;
  }
  return false;
}

void* take(std::size_t bytes, std::size_t alignment) {
  if (fails()) throw std::bad_alloc();
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment,
                     bytes == 0 ? 1 : bytes) != 0)
    throw std::bad_alloc();
  return memory;
}

}  // namespace

// After `request` further requests one fails: and all after it, if `ever`.
extern "C" void fail_request(long request, int ever) {
  for_ever.store(ever != 0);
  asked.store(0);
  left.store(request);
}

// Ends it; returns how many requests there were.
extern "C" long stop_failing() {
  left.store(-1);
  return asked.load();
}

void* operator new(std::size_t bytes) { return take(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return take(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t a) { return take(bytes, std::size_t(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return take(bytes, std::size_t(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

// What the arena of the compiled core asks for.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (fails()) {
    errno = ENOMEM;
    return nullptr;
  }
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                      long offset) {
  using Map = void* (*)(void*, std::size_t, int, int, int, long);
  static const Map real = reinterpret_cast<Map>(dlsym(RTLD_NEXT, "mmap"));
  if (bytes > (std::size_t{2} << 20) && fails()) {  // the arena maps huge pages and one more
    errno = ENOMEM;
    return reinterpret_cast<void*>(-1);
  }
  return real(address, bytes, protection, flags, file, offset);
}
