// Preparing rows in parallel, a fixed number at a time.
#pragma once

#include <algorithm>

#include "pairs/leaf.hpp"
#include "runtime/pool.hpp"

namespace mercer {

constexpr Size kChunk = 1024;  // rows per task

inline Size chunks(Size rows) { return (rows + kChunk - 1) / kChunk; }

inline int threads_for(Size rows, Work work) { return rows > 4 * kChunk ? work.threads : 1; }

// Calls body(chunk, begin, end).
template <class F>
void for_chunks(Size rows, Work work, F&& body) {
  const auto task = [&](Size chunk, int) {
    body(chunk, chunk * kChunk, std::min(rows, (chunk + 1) * kChunk));
  };
  parallel_for(chunks(rows), task, threads_for(rows, work), *work.poll);
}

template <class T>
Buffer<T> padded_zeros(Size rows) {
  Buffer<T> out(round_up(std::max<Size>(rows, 1), kTile));
  std::fill_n(out.data(), out.size(), T(0));
  return out;
}

}  // namespace mercer
