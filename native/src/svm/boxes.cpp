// One box after another, or side by side: from what was asked to levels and back.
//
// With float entries F is kept in float, too. Its error at the end comes from rounding in the steps
// since the last matrix was gathered, some 1e-7 sqrt(steps) of the largest F on the way, so that after
// a million steps its third digit may be wrong; the b that belongs to it is exact. Who needs F to more digits computes it once from b.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "svm/frame.hpp"

namespace mercer::svm {
namespace {

constexpr Size kColumnsPerThread = 3000;  // of a box that gets all threads

// A box on its way: its first level, and how to get back.
template <class Entry>
class Whole {
 public:
  Whole(const Matrix<Entry>& matrix, const Box& box, const Worker& worker)
      : matrix_(matrix), box_(box), worker_(worker), frame_(matrix, box), level_(frame_.level) {
    fill();
  }

  void solve(double tol, std::int64_t max_iter, Scratch<Entry>& scratch, Answer& answer) {
    answer.iterations = 0;
    if (!all_finite()) {
      answer.violation = std::numeric_limits<double>::quiet_NaN();
      return give_back_start(answer);
    }
    frame_.give_matrix(worker_);
    scratch.finish = Finish{};
    if (worker_.stopped() && frame_.copied()) return give_back_start(answer);  // it may be half made
    worker_.unit = 1.0 / scale_;
    const Descent done = solve_level(level_, tol * scale_, max_iter, worker_, scratch);
    answer.iterations = done.steps;
    answer.violation = done.gap / scale_;
    give_back(answer);
  }

 private:
  bool all_finite() const {
    double poison = 0.0;
    for (Size t = 0; t < box_.n; ++t) poison += box_.gradient[t] * 0.0;
    return poison == 0.0;
  }

  // Powers of two are exact: F of the size of one neither over- nor underflows when squared.
  void choose_scale() {
    if (sizeof(Entry) != sizeof(float)) return;
    double largest = 0.0;
    for (Size t = 0; t < box_.n; ++t) largest = std::max(largest, std::abs(box_.gradient[t]));
    if (largest == 0.0 || !std::isfinite(largest)) return;
    scale_ = std::ldexp(1.0, std::clamp(-std::ilogb(largest), -300, 300));
  }

  void fill() {
    choose_scale();
    frame_.each([&](Size t, std::int32_t v, Size r) {
      level_.origin[t] = v;
      level_.diag[t] = matrix_.k[r * (matrix_.ld + 1)];
      if (v < 0) return;  // in the box [0, 0]: it never moves
      level_.b[t] = scale_ * box_.start[v];
      level_.lower[t] = scale_ * box_.lower[v];
      level_.upper[t] = scale_ * box_.upper[v];
      level_.kink[t] = box_.kink == nullptr ? 0.0 : scale_ * box_.kink[v];
      level_.shift[t] = box_.shift == nullptr ? 0.0 : box_.shift[v];
      level_.diag[t] =
          static_cast<Entry>(static_cast<double>(level_.diag[t]) + level_.shift[t]);
      level_.refresh(t, level_.b[t]);
    });
    centre();
    level_.each_variable([&](Size t) {
      const auto g = static_cast<std::size_t>(level_.group_of(t));
      level_.f[t] =
          static_cast<Entry>(scale_ * box_.gradient[level_.origin[t]] - level_.middle[g]);
    });
  }

  // F around the middle of what violates: there its digits matter.
  void centre() {
    std::vector<double> top(level_.middle.size(), -kNever), bottom(level_.middle.size(), kNever);
    level_.each_variable([&](Size t) {
      const auto g = static_cast<std::size_t>(level_.group_of(t));
      const double f = scale_ * box_.gradient[level_.origin[t]];
      top[g] = std::max(top[g], f + static_cast<double>(level_.up[t]));
      bottom[g] = std::min(bottom[g], f + static_cast<double>(level_.low[t]));
    });
    for (std::size_t g = 0; g < level_.middle.size(); ++g) {
      const double middle = 0.5 * (top[g] + bottom[g]);
      if (std::isfinite(middle)) level_.middle[g] = middle;
    }
  }

  void give_back(Answer& answer) const {
    level_.snap();
    level_.each_variable([&](Size t) {
      const std::int32_t v = level_.origin[t];
      const auto g = static_cast<std::size_t>(level_.group_of(t));
      answer.b[v] = std::clamp(level_.b[t] / scale_, box_.lower[v], box_.upper[v]);
      answer.gradient[v] = (static_cast<double>(level_.f[t]) + level_.middle[g]) / scale_;
    });
  }

  void give_back_start(Answer& answer) const {
    std::copy_n(box_.start, box_.n, answer.b);
    std::copy_n(box_.gradient, box_.n, answer.gradient);
  }

  const Matrix<Entry>& matrix_;
  const Box& box_;
  Worker worker_;
  Frame<Entry> frame_;
  DescentState<Entry>& level_;
  double scale_ = 1.0;
};

template <class Entry>
void solve_one(const Matrix<Entry>& matrix, const Box& box, Answer& answer, double tol,
               std::int64_t max_iter, const Worker& worker, Scratch<Entry>& scratch) {
  Whole<Entry>(matrix, box, worker).solve(tol, max_iter, scratch, answer);
  worker.progress.finished(worker.id, answer.violation);
}

}  // namespace

double Progress::violation() const {
  double worst = finished_.load(std::memory_order_relaxed);
  for (const auto& one : known_) worst = std::max(worst, one.load(std::memory_order_relaxed));
  return any_.load(std::memory_order_relaxed) ? worst : kNever;
}

void Progress::add(int worker, std::int64_t steps, double violation) {
  steps_.fetch_add(steps, std::memory_order_relaxed);
  known_[static_cast<std::size_t>(worker)].store(violation, std::memory_order_relaxed);
  any_.store(true, std::memory_order_relaxed);
}

void Progress::finished(int worker, double violation) {
  double seen = finished_.load(std::memory_order_relaxed);
  while (violation > seen && !finished_.compare_exchange_weak(seen, violation)) {
  }
  known_[static_cast<std::size_t>(worker)].store(-kNever, std::memory_order_relaxed);
}

template <class Entry>
void solve_boxes(const Matrix<Entry>& matrix, const std::vector<Box>& boxes,
                 std::vector<Answer>& answers, double tol, std::int64_t max_iter, int threads,
                 Poll& poll, Progress& progress) {
  std::vector<std::size_t> order(boxes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return boxes[a].n > boxes[b].n; });
  for (const std::size_t at : order) {  // what is not reached stays at its start
    std::copy_n(boxes[at].start, boxes[at].n, answers[at].b);
    std::copy_n(boxes[at].gradient, boxes[at].n, answers[at].gradient);
  }
  double left = 0.0;  // work, as far as it can be known
  for (const Box& box : boxes) left += static_cast<double>(box.n) * static_cast<double>(box.n);
  std::size_t next = 0;
  {
    Scratch<Entry> scratch;
    const Worker all{poll, progress, 0, threads};
    for (; next < order.size() && !poll.stopped(); ++next) {
      // all threads for boxes that can use them, and for those that would be waited for
      const Size n = boxes[order[next]].n;
      const double work = static_cast<double>(n) * static_cast<double>(n);
      if (n < kColumnsPerThread * threads && work * threads < left) break;
      solve_one(matrix, boxes[order[next]], answers[order[next]], tol, max_iter, all, scratch);
      left -= work;
    }
  }
  if (next == order.size() || poll.stopped()) return;
  std::vector<Scratch<Entry>> scratch(static_cast<std::size_t>(threads));
  parallel_for(
      static_cast<std::int64_t>(order.size() - next),
      [&](std::int64_t task, int id) {
        const std::size_t at = order[next + static_cast<std::size_t>(task)];
        const Worker worker{poll, progress, id, 1};
        solve_one(matrix, boxes[at], answers[at], tol, max_iter, worker,
                  scratch[static_cast<std::size_t>(id)]);
      },
      threads, poll);
}

template void solve_boxes(const Matrix<float>&, const std::vector<Box>&, std::vector<Answer>&,
                          double, std::int64_t, int, Poll&, Progress&);
template void solve_boxes(const Matrix<double>&, const std::vector<Box>&, std::vector<Answer>&,
                          double, std::int64_t, int, Poll&, Progress&);

}  // namespace mercer::svm
