// The state of a descent on some variables: the whole box, or those that still move.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/arena.hpp"
#include "svm/newton/finish.hpp"
#include "svm/passes.hpp"
#include "svm/problem.hpp"

namespace mercer::svm {

constexpr double kNever = std::numeric_limits<double>::infinity();

constexpr double kRoundedSum = 2e-12;  // relative error of a sum of b, with room

// Distance between arrays of the state: entries of two arrays with the same index must not agree
// in the low 12 bits of their addresses, or each load waits for an unrelated store.
constexpr Size spacing(Size size) { return round_up(size, 1024) + 192; }

// What earlier steps of a descent are remembered by: the last pair, and what was gained. All
// members of a team keep the same one.
struct Trail {
  // A descent that gains less than this share of all it has gained, over a window of steps, is
  // lost in rounding. Violations do not tell: they stay where they are for long while it gains.
  static constexpr double kLeastGain = 1e-5;

  Size i = -1, j = -1;
  double difference = 0.0;  // of the last pair
  double boost = 1.0;
  double gained = 0.0, recent = 0.0;
  std::int64_t steps = 0;  // of this window
  bool stale = false;

  void note(double gain, std::int64_t window) {
    recent += std::max(gain, 0.0);
    if (++steps < window) return;
    gained += recent;
    stale = !(recent > kLeastGain * gained);
    recent = 0.0;
    steps = 0;
  }
};

template <class Entry>
struct DescentState {
  // Arrays for `size` places, of which the runs take `count`; the others are set to harmless
  // values here.
  DescentState(std::vector<Run> own_runs, int group_count, Size places);

  Share<Entry> all() const {
    return {k,  ld,  row_of, runs.data(), static_cast<Size>(runs.size()), padded, is_even(),
            f,  up,  low,    diag};
  }
  const Entry* row(Size i) const { return k + (row_of == nullptr ? i : row_of[i]) * ld; }
  Size column_of(Size j) const { return row_of == nullptr ? j : row_of[j]; }
  int group_of(Size place) const;

  void refresh(Size t, double value) {
    const Entry bend = static_cast<Entry>(kink[t]);
    constexpr Entry far = std::numeric_limits<Entry>::infinity();
    up[t] = value < upper[t] ? (value < 0.0 ? bend : -bend) : -far;
    low[t] = value > lower[t] ? (value > 0.0 ? -bend : bend) : far;
  }

  bool is_free(Size t) const {
    return b[t] > lower[t] && b[t] < upper[t] && (b[t] != 0.0 || kink[t] == 0.0);
  }

  // What is at a bound, or at the kink, but for rounding of sums: it must not pass for free. In
  // terms of b, not of the bounds, which may be far away.
  void snap() {
    double sum = 0.0;
    each_variable([&](Size t) { sum += std::abs(b[t]); });
    const double near = kRoundedSum * sum;
    if (!std::isfinite(near)) return;
    each_variable([&](Size t) {
      double to = b[t];
      if (std::abs(b[t]) <= near && kink[t] > 0.0) to = 0.0;
      if (upper[t] - b[t] <= near) to = upper[t];
      if (b[t] - lower[t] <= near) to = lower[t];
      if (to == b[t]) return;
      b[t] = to;
      refresh(t, to);
    });
  }

  bool finite() const;
  bool is_even() const;

  // fn(t) for every place of the runs.
  template <class F>
  void each(F&& fn) const {
    for (const Run& run : runs)
      for (Size t = run.local; t < run.local + run.length; ++t) fn(t);
  }

  // fn(t) for every place with a variable.
  template <class F>
  void each_variable(F&& fn) const {
    each([&](Size t) {
      if (origin[t] >= 0) fn(t);
    });
  }

  std::vector<Run> runs;  // by group
  int groups;
  Size count, size;

  const Entry* k = nullptr;
  Size ld = 0;
  const std::int64_t* row_of = nullptr;
  bool padded = false;

  Entry *f, *up, *low, *diag;
  // K times earlier directions, and F at the beginning of a chain, where a descent remembers them.
  Entry *past[kPast], *mark;
  std::int16_t* place;  // among the variables that those move; -1: none of them
  double *b, *lower, *upper, *kink, *shift;
  std::int32_t* origin;  // place in the level this one was taken from; of the first level the
                         // number of the variable, or -1
  std::vector<double> middle;  // by group: what was subtracted from F

  // What the last sweeps found, by group.
  std::vector<Top<Entry>> tops;
  std::vector<Entry> lows;

  Trail trail;

 private:
  Buffer<Entry> entries_;
  Buffer<double> doubles_;
  Buffer<std::int32_t> places_;
  Buffer<std::int16_t> moved_;
};

template <class Entry>
DescentState<Entry>::DescentState(std::vector<Run> own_runs, int group_count, Size places)
    : runs(std::move(own_runs)),
      groups(group_count),
      count(0),
      size(places),
      middle(static_cast<std::size_t>(group_count), 0.0),
      tops(static_cast<std::size_t>(group_count)),
      lows(static_cast<std::size_t>(group_count)),
      entries_((5 + kPast) * spacing(places)),
      doubles_(5 * spacing(places)),
      places_(spacing(places)),
      moved_(spacing(places)) {
  for (const Run& run : runs) count += run.length;
  Entry* e = entries_.data();
  double* d = doubles_.data();
  const Size gap = spacing(size);
  constexpr Entry far = std::numeric_limits<Entry>::infinity();
  f = e, up = e + gap, low = e + 2 * gap, diag = e + 3 * gap;
  b = d, lower = d + gap, upper = d + 2 * gap, kink = d + 3 * gap, shift = d + 4 * gap;
  origin = places_.data();
  for (int p = 0; p < kPast; ++p) past[p] = e + (4 + p) * gap;
  mark = e + (4 + kPast) * gap;
  place = moved_.data();
  std::fill_n(place, size, std::int16_t(-1));
  std::fill_n(f, size, Entry(0));
  std::fill_n(up, size, -far);
  std::fill_n(low, size, far);
  std::fill_n(diag, size, Entry(0));
  std::fill_n(d, 5 * gap, 0.0);
}

template <class Entry>
int DescentState<Entry>::group_of(Size place) const {
  if (groups == 1) return 0;
  const auto after = std::upper_bound(runs.begin(), runs.end(), place,
                                      [](Size at, const Run& run) { return at < run.local; });
  return (after - 1)->group;
}

template <class Entry>
bool DescentState<Entry>::finite() const {
  Entry poison = 0;  // 0, or NaN once an F is not finite
  each_variable([&](Size t) { poison += f[t] * Entry(0); });
  return poison == Entry(0);
}

template <class Entry>
bool DescentState<Entry>::is_even() const {
  if (count == 0) return true;
  const Entry one = diag[runs.front().local];
  bool even = true;
  each([&](Size t) { even &= diag[t] == one; });
  return even;
}

// How a descent on a level ended.
enum class End { solved, limit, stuck, broken, stopped };

struct Descent {
  End end;
  std::int64_t steps;
  double gap;  // largest violation at the end, by the F that was kept
};

// Pair steps on all variables of the level until the gap is at most `tol`, or `limit` steps; on
// several threads where there are enough columns.
template <class Entry>
Descent descend(DescentState<Entry>& level, double tol, std::int64_t limit, const Worker& worker);

// What descents keep from one compaction, and from one programme, to the next.
template <class Entry>
class Scratch {
 public:
  // Memory for sub-matrices, one per depth.
  Entry* at(std::size_t depth, Size entries);

  Finish finish;

 private:
  std::vector<Buffer<Entry>> held_;
};

// Descends, and goes on with the variables that can still move on a smaller matrix, recursively: as
// soon as `since` and the steps made would have paid for it. Newton's steps finish what takes long.
template <class Entry>
Descent solve_level(DescentState<Entry>& level, double tol, std::int64_t limit, const Worker& worker,
                    Scratch<Entry>& scratch, int depth = 0, std::int64_t since = 0);

// Fills `k`, laid out as the state of `to`: for its variables in their order, columns of rows. May
// end early when the poll stops it.
template <class Entry>
void gather_square(const DescentState<Entry>& to, Entry* k, Size ld, const Entry* const* rows,
                   const std::int32_t* columns, const Worker& worker);

// Distance of rows for gather_square: no power of two, where the same columns of all rows would
// compete for few places in the cache.
constexpr Size row_distance(Size size) { return size % 256 == 0 ? size + 16 : size; }

// Runs for variables given by the number of their group, in order of groups.
std::vector<Run> runs_of_groups(const std::vector<Size>& lengths, Size& size);

}  // namespace mercer::svm
