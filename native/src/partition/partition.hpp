// Partitions of points in feature space: Lloyd's steps, then moves of single points.
//
// The objective is sum_i w_i |phi_i - m_c(i)|^2 with m_c the weighted mean of cluster c. Several
// starts share the points; each runs on one thread, or one start on all threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "linear/linear.hpp"
#include "runtime/poll.hpp"
#include "runtime/pool.hpp"

namespace mercer::partition {

using Label = std::int32_t;

struct Task {
  Size n, count;           // points, clusters
  const double* weight;    // positive
  const double* diagonal;  // K_ii
  Size max_iter;           // steps: assignments and sweeps
  bool refine;             // whether single points are moved at the end
};

struct Step {
  double objective, seconds;
};

struct Answer {
  Label* labels;            // the start, overwritten by the answer; no cluster is ever empty
  const double* means;      // (count, width): rows start with the nearest of these; or null
  std::vector<Step> steps;  // the objective of the start and after every step; never rises
  bool settled = false;     // no step is left that lowers the objective
};

// What the caller of Python is told while starts run.
class Board {
 public:
  void note(double objective) noexcept {
    steps_.fetch_add(1, std::memory_order_relaxed);
    double best = best_.load(std::memory_order_relaxed);
    while (objective < best && !best_.compare_exchange_weak(best, objective)) {
    }
  }
  std::int64_t steps() const noexcept { return steps_.load(std::memory_order_relaxed); }
  double best() const noexcept { return best_.load(std::memory_order_relaxed); }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  }

 private:
  std::atomic<std::int64_t> steps_{0};
  std::atomic<double> best_{__builtin_inf()};
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

// Where the passes of one start run: in the pool, or on the thread that has the start.
struct Place {
  int threads;  // 1: here
  bool polls;   // whether this thread looks at signals
  Poll* poll;

  bool stopped() const { return poll->stopped(); }

  template <class F>
  void each(Size tasks, F&& function) const {
    if (threads > 1)
      return parallel_for(tasks, [&](Size task, int) { function(task); }, threads, *poll);
    for (Size task = 0; task < tasks && !stopped(); ++task) {
      function(task);
      if (polls) poll->check();
    }
  }
};

template <class Entry>
struct Matrix {
  const Entry* data;
  Size stride;

  const Entry* row(Size i) const { return data + i * stride; }
};

// On a stored K: keeps the sums of the rows of every cluster. The same for any threads.
template <class Entry>
void divide(const Matrix<Entry>& K, const Task& task, std::vector<Answer>& answers, int threads,
            Poll& poll, Board& board);

// On rows of features: keeps means, and bounds by the triangle inequality. The same for any threads.
template <class Rows>
void divide(const Rows& rows, const Task& task, std::vector<Answer>& answers, int threads,
            Poll& poll, Board& board);

}  // namespace mercer::partition
