// Scratch memory of the dense algorithms: doubles from the arena, whose pages are touched already.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "mercer/arena.hpp"

namespace mercer::algebra {

constexpr std::size_t kAlignment = 64;

// Uninitialised doubles. Constness is that of the handle, not of the numbers: parallel tasks write
// to disjoint parts of a buffer they share.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count) : data_(allocate(count)), count_(count) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) give_memory(data_);
  }

  double* data() const noexcept { return data_; }
  std::size_t count() const noexcept { return count_; }
  void clear() const noexcept {
    if (count_ > 0) std::memset(data_, 0, count_ * sizeof(double));
  }
  // Gives the memory to a new owner, who returns it with give_memory.
  double* release() noexcept {
    count_ = 0;
    return std::exchange(data_, nullptr);
  }

 private:
  static double* allocate(std::size_t count) {
    if (count > (std::size_t{1} << 58)) throw std::bad_alloc();
    return static_cast<double*>(take_memory(std::max<std::size_t>(1, count) * sizeof(double)));
  }

  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
  }

  double* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace mercer::algebra
