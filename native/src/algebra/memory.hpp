// Scratch memory of the dense algorithms: numbers from the arena, whose pages are touched already.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/arena.hpp"

namespace mercer::algebra {

constexpr std::size_t kAlignment = 64;

// Uninitialised numbers. Constness is that of the handle, not of the numbers: parallel tasks write
// to disjoint parts of a buffer they share.
template <class T>
class BufferOf {
 public:
  BufferOf() = default;
  explicit BufferOf(std::size_t count) : data_(allocate(count)), count_(count) {}
  BufferOf(BufferOf&& other) noexcept { swap(other); }
  BufferOf& operator=(BufferOf&& other) noexcept {
    swap(other);
    return *this;
  }
  ~BufferOf() {
    if (data_ != nullptr) give_memory(data_);
  }

  T* data() const noexcept { return data_; }
  std::size_t count() const noexcept { return count_; }
  void clear() const noexcept {
    if (count_ > 0) std::memset(data_, 0, count_ * sizeof(T));
  }
  // Gives the memory to a new owner, who returns it with give_memory.
  T* release() noexcept {
    count_ = 0;
    return std::exchange(data_, nullptr);
  }

 private:
  static T* allocate(std::size_t count) {
    if (count > (std::size_t{1} << 58)) throw std::bad_alloc();
    return static_cast<T*>(take_memory(std::max<std::size_t>(1, count) * sizeof(T)));
  }

  void swap(BufferOf& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
  }

  T* data_ = nullptr;
  std::size_t count_ = 0;
};

using Buffer = BufferOf<double>;

}  // namespace mercer::algebra
