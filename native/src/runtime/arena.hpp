// Memory for large buffers: pages that were touched before are kept and handed out again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/size.hpp"

namespace mercer {

constexpr std::size_t kAlignment = 64;  // a cache line, and a 512-bit vector

// Gives uninitialised memory, so aligned. From 1 MB on it comes from a process-wide pool
// of touched huge pages, since zeroing fresh pages costs more than filling a kernel matrix.
// Throws std::bad_alloc. Thread-safe, safe to fork.
void* take_memory(std::size_t bytes);
void give_memory(void* memory) noexcept;

// Hands the idle pages back to the system; returns how many bytes.
std::size_t release_memory() noexcept;

// Bytes that idle pages may hold; more is unmapped as soon as it comes back.
void set_idle_limit(std::size_t bytes) noexcept;
std::size_t idle_memory() noexcept;

// An owned array of plain numbers in such memory, uninitialised. Constness is that of the handle,
// not of the numbers: parallel tasks write to disjoint parts of a buffer they share.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Size size) : data_(allocate(size)), size_(size) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) give_memory(data_);
  }

  T* data() const noexcept { return data_; }
  Size size() const noexcept { return size_; }
  T& operator[](Size i) const noexcept { return data_[i]; }
  void clear() const noexcept {
    if (size_ > 0) std::memset(data_, 0, static_cast<std::size_t>(size_) * sizeof(T));
  }

 private:
  // Not null where there are no numbers, so that pointers into it are good for arithmetic.
  static T* allocate(Size size) {
    if (size < 0 || size > INT64_MAX / static_cast<Size>(sizeof(T))) throw std::bad_alloc();
    return static_cast<T*>(take_memory(static_cast<std::size_t>(size > 0 ? size : 1) * sizeof(T)));
  }

  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data_ = nullptr;
  Size size_ = 0;
};

}  // namespace mercer
