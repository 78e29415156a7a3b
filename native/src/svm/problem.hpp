// What the engine of box programmes is asked, what it answers, and how it stays interruptible.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/poll.hpp"
#include "runtime/pool.hpp"
#include "svm/passes.hpp"

namespace mercer::svm {

// Rows of K are `ld` apart.
template <class Entry>
struct Matrix {
  const Entry* k;
  Size n, ld;
};

// Minimise b'(K + diag(shift))b/2 - p'b + kink'|b| over lower <= b <= upper, sums over groups kept,
// from `start`, where p - (K + diag(shift)) b is `gradient`. Null: none.
struct Box {
  Size n;
  const double *gradient, *start, *lower, *upper;
  const double *kink, *shift;
  const std::int64_t *group, *rows;
};

struct Answer {
  double* b;
  double* gradient;  // with float entries of the accuracy of float: see svm/boxes.cpp
  std::int64_t iterations = 0;
  double violation = std::numeric_limits<double>::infinity();  // NaN: numbers overflowed
};

// How far all boxes are; written by the threads that work on them, read by the poll.
class Progress {
 public:
  explicit Progress(int workers) : known_(static_cast<std::size_t>(workers)) {
    for (auto& one : known_) one.store(-std::numeric_limits<double>::infinity());
  }
  std::int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  // The largest violation known; infinite while none is.
  double violation() const;
  void add(int worker, std::int64_t steps, double violation);
  void finished(int worker, double violation);

 private:
  std::atomic<std::int64_t> steps_{0};
  std::atomic<double> finished_{-std::numeric_limits<double>::infinity()};
  std::atomic<bool> any_{false};
  std::vector<std::atomic<double>> known_;
};

// The thread that works on a box. Only the caller of the whole computation looks at signals, and
// only it may have helpers.
struct Worker {
  Poll& poll;
  Progress& progress;
  int id;
  int threads;
  double unit = 1.0;  // of the violations told, where a box is scaled

  bool caller() const { return id == 0; }
  bool stopped() const { return poll.stopped(); }
  void told(std::int64_t steps, double violation) const {
    progress.add(id, steps, violation * unit);
  }
  void tick(std::int64_t steps, double violation) const {
    told(steps, violation);
    if (caller()) poll.check();
  }

  // fn(task) for all tasks, until the poll stops them.
  template <class F>
  void share(Size tasks, bool worth, F&& fn) const {
    share_with(poll, tasks, worth, fn);
  }

  // fn(task) for all tasks even when the poll asked to stop; a signal still ends it.
  template <class F>
  void share_always(Size tasks, bool worth, F&& fn) const {
    Poll calm([] { return false; });
    share_with(calm, tasks, worth, fn);
  }

 private:
  template <class F>
  void share_with(Poll& own, Size tasks, bool worth, F&& fn) const {
    if (worth && threads > 1 && caller()) {
      parallel_for(tasks, [&](std::int64_t task, int) { fn(static_cast<Size>(task)); }, threads,
                   own);
      return;
    }
    for (Size task = 0; task < tasks && !own.stopped(); ++task) {
      fn(task);
      if (caller()) own.check();
    }
  }
};

// Solves all boxes. Answers do not depend on the number of threads.
template <class Entry>
void solve_boxes(const Matrix<Entry>& matrix, const std::vector<Box>& boxes,
                 std::vector<Answer>& answers, double tol, std::int64_t max_iter, int threads,
                 Poll& poll, Progress& progress);

}  // namespace mercer::svm
