// From the rows of a box to runs of places.
#include "svm/frame.hpp"

#include <algorithm>
#include <numeric>

namespace mercer::svm {
namespace {

constexpr Size kShortRun = 96;  // mean length of runs below which a copy of K is worth it
constexpr Size kBridge = 64;    // rows left out that are swept nevertheless, to make runs longer
constexpr double kMostSwept = 1.5;  // of the variables: places swept in place rather than copied

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

bool short_runs(const std::vector<Run>& runs, Size n) {
  return runs.size() > 4 && static_cast<Size>(runs.size()) * kShortRun > n;
}

}  // namespace

template <class Entry>
Frame<Entry>::Frame(const Matrix<Entry>& matrix, const Box& box)
    : matrix_(matrix), order_(order_of(box)), level(layout(box.n)) {}

template <class Entry>
DescentState<Entry> Frame<Entry>::layout(Size n) {
  Size size = 0;
  std::vector<Run> runs = runs_in_place(order_, size);
  if (short_runs(runs, n)) {
    Order filled = bridged(order_);
    std::vector<Run> longer = runs_in_place(filled, size);
    copied_ = short_runs(longer, n) || static_cast<double>(filled.row.size()) >
                                           kMostSwept * static_cast<double>(n);
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
  return DescentState<Entry>(std::move(runs), order_.groups, size);
}

template <class Entry>
void Frame<Entry>::give_matrix(const Worker& worker) {
  if (copied_) {
    std::vector<const Entry*> rows;
    std::vector<std::int32_t> columns;
    for (const std::int64_t r : order_.row) {
      rows.push_back(matrix_.k + r * matrix_.ld);
      columns.push_back(static_cast<std::int32_t>(r));
    }
    level.ld = row_distance(level.size);
    copy_ = Buffer<Entry>(level.size * level.ld);
    level.k = copy_.data();
    level.padded = true;
    gather_square(level, copy_.data(), level.ld, rows.data(), columns.data(), worker);
    return;
  }
  level.k = matrix_.k;
  level.ld = matrix_.ld;
  if (level.runs.size() == 1 && level.runs[0].column == 0) return;
  places_ = Buffer<std::int64_t>(level.size);
  for (const Run& run : level.runs)
    for (Size t = 0; t < run.length; ++t) places_[run.local + t] = run.column + t;
  level.row_of = places_.data();
}

template class Frame<float>;
template class Frame<double>;

}  // namespace mercer::svm
