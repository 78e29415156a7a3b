// Memory for large buffers: pages that were touched before are kept and handed out again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace mercer {

// Gives uninitialised memory, aligned to 64 bytes. From 1 MB on it comes from a process-wide pool
// of touched huge pages, since zeroing fresh pages costs more than filling a kernel matrix.
// Throws std::bad_alloc. Thread-safe, safe to fork.
void* take_memory(std::size_t bytes);
void give_memory(void* memory) noexcept;

// Hands the idle pages back to the system; returns how many bytes.
std::size_t release_memory() noexcept;

// Bytes that idle pages may hold; more is unmapped as soon as it comes back.
void set_idle_limit(std::size_t bytes) noexcept;
std::size_t idle_memory() noexcept;

// An owned array of plain numbers in such memory.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t size) : data_(allocate(size)), size_(size) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) give_memory(data_);
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::int64_t size() const noexcept { return size_; }
  T& operator[](std::int64_t i) noexcept { return data_[i]; }
  const T& operator[](std::int64_t i) const noexcept { return data_[i]; }

 private:
  static T* allocate(std::int64_t size) {
    if (size <= 0) return nullptr;
    if (size > INT64_MAX / static_cast<std::int64_t>(sizeof(T))) throw std::bad_alloc();
    return static_cast<T*>(take_memory(static_cast<std::size_t>(size) * sizeof(T)));
  }

  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace mercer
