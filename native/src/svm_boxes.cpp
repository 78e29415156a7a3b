// One box after another, or side by side: from what was asked to levels and back.
//
// With float entries F is kept in float, too. Its error at the end comes from rounding in the steps
// since the last matrix was gathered, some 1e-7 sqrt(steps) of the largest F on the way, so that after
// a million steps its third digit may be wrong; the b that belongs to it is exact. Who needs F to more digits computes it once from b.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "mercer/svm_level.hpp"

namespace mercer::svm {
namespace {

constexpr Size kShortRun = 96;  // mean length of runs below which a copy of K is worth it
constexpr Size kBridge = 64;    // rows left out that are swept nevertheless, to make runs longer
constexpr double kMostSwept = 1.5;  // of the variables: places swept in place rather than copied
constexpr Size kColumnsPerThread = 3000;  // of a box that gets all threads

// The places of the state in order: by group, else as given. A place may hold no variable.
struct Order {
  std::vector<std::int32_t> variable;  // -1: none, only a row in between
  std::vector<std::int64_t> row;       // of K
  std::vector<int> group;
  int groups = 1;

  void add(std::int32_t v, std::int64_t r, int g) {
    variable.push_back(v);
    row.push_back(r);
    group.push_back(g);
  }
};

std::vector<int> dense_groups(const Box& box, int& groups) {
  std::vector<int> dense(static_cast<std::size_t>(box.n), 0);
  groups = 1;
  if (box.group == nullptr || box.n == 0) return dense;
  std::vector<std::int64_t> names(box.group, box.group + box.n);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  groups = static_cast<int>(names.size());
  for (std::size_t t = 0; t < dense.size(); ++t)
    dense[t] = static_cast<int>(
        std::lower_bound(names.begin(), names.end(), box.group[t]) - names.begin());
  return dense;
}

Order order_of(const Box& box) {
  Order order;
  const auto n = static_cast<std::size_t>(box.n);
  const std::vector<int> group = dense_groups(box, order.groups);
  order.variable.resize(n);
  std::iota(order.variable.begin(), order.variable.end(), 0);
  if (order.groups > 1)
    std::stable_sort(order.variable.begin(), order.variable.end(), [&](int a, int b) {
      return group[static_cast<std::size_t>(a)] < group[static_cast<std::size_t>(b)];
    });
  for (const std::int32_t v : order.variable) {
    order.group.push_back(group[static_cast<std::size_t>(v)]);
    order.row.push_back(box.rows == nullptr ? v : box.rows[v]);
  }
  return order;
}

// The same with short gaps between rows filled by places without a variable: a fold of shuffled
// rows can then be swept in place.
Order bridged(const Order& order) {
  Order out;
  out.groups = order.groups;
  for (std::size_t t = 0; t < order.row.size(); ++t) {
    const bool same = t > 0 && order.group[t] == order.group[t - 1];
    if (same && order.row[t] > order.row[t - 1] && order.row[t] - order.row[t - 1] <= kBridge)
      for (std::int64_t r = order.row[t - 1] + 1; r < order.row[t]; ++r)
        out.add(-1, r, order.group[t]);
    out.add(order.variable[t], order.row[t], order.group[t]);
  }
  return out;
}

// Stretches of consecutive rows in one group.
std::vector<Run> runs_in_place(const Order& order, Size& size) {
  std::vector<Run> runs;
  size = 0;
  for (std::size_t t = 0; t < order.row.size(); ++t) {
    const bool goes_on = t > 0 && order.row[t] == order.row[t - 1] + 1 &&
                         order.group[t] == order.group[t - 1];
    if (goes_on) {
      ++runs.back().length;
      continue;
    }
    if (!runs.empty()) size = runs.back().local + round_up(runs.back().length, kPad);
    runs.push_back({static_cast<Size>(order.row[t]), size, 1, order.group[t]});
  }
  if (!runs.empty()) size = runs.back().local + round_up(runs.back().length, kPad);
  return runs;
}

// A box on its way: its first level, and how to get back.
template <class Entry>
class Whole {
 public:
  Whole(const Matrix<Entry>& matrix, const Box& box, const Worker& worker)
      : matrix_(matrix), box_(box), worker_(worker), order_(order_of(box)), level_(layout()) {
    fill();
  }

  void solve(double tol, std::int64_t max_iter, Scratch<Entry>& scratch, Answer& answer) {
    answer.iterations = 0;
    if (!all_finite()) {
      answer.violation = std::numeric_limits<double>::quiet_NaN();
      return give_back_start(answer);
    }
    give_matrix();
    if (worker_.stopped() && copied_) return give_back_start(answer);  // it may be half made
    worker_.unit = 1.0 / scale_;
    const Descent done = solve_level(level_, tol * scale_, max_iter, worker_, scratch);
    answer.iterations = done.steps;
    answer.violation = done.gap / scale_;
    give_back(answer);
  }

 private:
  Level<Entry> layout() {
    Size size = 0;
    std::vector<Run> runs = runs_in_place(order_, size);
    if (short_runs(runs)) {
      Order filled = bridged(order_);
      std::vector<Run> longer = runs_in_place(filled, size);
      copied_ = short_runs(longer) || static_cast<double>(filled.row.size()) >
                                          kMostSwept * static_cast<double>(box_.n);
      if (!copied_) {
        order_ = std::move(filled);
        runs = std::move(longer);
      }
    }
    if (copied_) {
      std::vector<Size> lengths(static_cast<std::size_t>(order_.groups), 0);
      for (const int g : order_.group) ++lengths[static_cast<std::size_t>(g)];
      runs = runs_of_groups(lengths, size);
    }
    return Level<Entry>(std::move(runs), order_.groups, size);
  }

  bool short_runs(const std::vector<Run>& runs) const {
    return runs.size() > 4 && static_cast<Size>(runs.size()) * kShortRun > box_.n;
  }

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
    std::size_t next = 0;
    level_.each([&](Size t) {
      const Size r = static_cast<Size>(order_.row[next]);
      const std::int32_t v = order_.variable[next++];
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

  void give_matrix() {
    if (copied_) {
      std::vector<const Entry*> rows;
      std::vector<std::int32_t> columns;
      for (const std::int64_t r : order_.row) {
        rows.push_back(matrix_.k + r * matrix_.ld);
        columns.push_back(static_cast<std::int32_t>(r));
      }
      level_.ld = row_distance(level_.size);
      copy_ = Buffer<Entry>(level_.size * level_.ld);
      level_.k = copy_.data();
      level_.padded = true;
      gather_square(level_, copy_.data(), level_.ld, rows.data(), columns.data(), worker_);
      return;
    }
    level_.k = matrix_.k;
    level_.ld = matrix_.ld;
    if (level_.runs.size() == 1 && level_.runs[0].column == 0) return;
    places_ = Buffer<std::int64_t>(std::max<Size>(1, level_.size));
    for (const Run& run : level_.runs)
      for (Size t = 0; t < run.length; ++t) places_[run.local + t] = run.column + t;
    level_.row_of = places_.data();
  }

  void give_back(Answer& answer) const {
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
  Order order_;
  bool copied_ = false;
  double scale_ = 1.0;
  Level<Entry> level_;
  Buffer<Entry> copy_;
  Buffer<std::int64_t> places_;
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
