// Going on with fewer variables: most reach their bound early and stay there. Those that can still
// move get a matrix of their own, gathered from the rows of the larger one, on which a step costs a
// fraction; the larger level then takes the result over and checks it, so nothing can be lost.
#include <algorithm>
#include <cmath>

#include "runtime/dispatch.hpp"
#include "svm/descent/state.hpp"
#include "svm/path/sums.hpp"

namespace mercer::svm {
namespace {

constexpr Size kLeastVariables = 384;
constexpr int kMostDepth = 8;
constexpr std::int64_t kLeastSteps = 500;  // between two looks at what still moves
constexpr Size kLooks = 8;                 // variables per step between them
constexpr double kMany = 0.6;              // of the variables: then only the strongest go on
constexpr double kMost = 0.7;              // of them: memory for more was not planned
constexpr double kCapped = 0.3;            // of them, when all that can move are too many
constexpr double kRoomForFree = 1.2;       // free variables must all fit, or the descent crawls
// Of the gap, to be reached on a part: on all that can move, and on the strongest of them.
constexpr double kTighter = 0.005, kLooser = 0.3;
// Times the sweeps of a step: what a matrix costs, by its entries, and by the entries of the rows
// that are summed when its result is taken over.
constexpr double kGathered = 1.7, kSummed = 0.4;
constexpr double kBelow = 0.9;       // of the tolerance: what a part leaves for rounding
constexpr Size kRowsAtOnce = 16;     // rows of one task of gather_square
constexpr Size kWorthTwo = 1 << 20;  // entries; below, a second thread is not worth waking

struct Active {
  std::vector<std::int32_t> places;  // in order
  double rel = 0.0;                  // of the gap, to be reached on them
};

// The strongest candidates by `value`, largest first, until `most` of them are marked.
void mark_strongest(std::vector<std::pair<double, std::int32_t>>& candidates, Size most,
                    std::vector<char>& marked) {
  const Size n = std::min<Size>(most, static_cast<Size>(candidates.size()));
  std::nth_element(candidates.begin(), candidates.begin() + n, candidates.end(),
                   [](const auto& a, const auto& b) {
                     return a.first > b.first || (a.first == b.first && a.second < b.second);
                   });
  for (Size c = 0; c < n; ++c) marked[static_cast<std::size_t>(candidates[c].second)] = 1;
}

// What could still move: free variables, and those that could form a violating pair.
template <class Entry>
struct Movers {
  explicit Movers(const DescentState<Entry>& of) : level(of) {
    for (const Run& run : level.runs) {
      const auto g = static_cast<std::size_t>(run.group);
      const Entry top = level.tops[g].value, bottom = level.lows[g];
      for (Size t = run.local; t < run.local + run.length; ++t) {
        const bool is_free = level.is_free(t);
        free += is_free;
        all += is_free || level.f[t] + level.up[t] > bottom || level.f[t] + level.low[t] < top;
      }
    }
  }

  bool too_many() const {
    return static_cast<double>(all) > kMany * static_cast<double>(level.count);
  }

  // How many to go on with.
  double wanted() const {
    if (!too_many()) return static_cast<double>(all);
    return std::max(kCapped * static_cast<double>(level.count),
                    kRoomForFree * static_cast<double>(free));
  }

  const DescentState<Entry>& level;
  Size all = 0, free = 0;
};

// All that can move; when these are too many, free variables and the strongest of the others, half
// of them from each side. None where a matrix of them would not be worth its cost yet, after
// `since` steps.
template <class Entry>
Active choose_active(const DescentState<Entry>& level, std::int64_t since) {
  const Movers<Entry> movers(level);
  const double wanted = movers.wanted(), count = static_cast<double>(level.count);
  // not before shorter rows would have saved what the matrix costs
  const double cost = wanted * (kGathered * wanted + kSummed * count);
  if (wanted > kMost * count || !(static_cast<double>(since) * (count - wanted) > cost)) return {};
  std::vector<char> marked(static_cast<std::size_t>(level.size), 0);
  std::vector<std::pair<double, std::int32_t>> rising, falling;
  for (const Run& run : level.runs) {
    const auto g = static_cast<std::size_t>(run.group);
    const Entry top = level.tops[g].value, bottom = level.lows[g];
    for (Size t = run.local; t < run.local + run.length; ++t) {
      const Entry high = level.f[t] + level.up[t], low = level.f[t] + level.low[t];
      const auto place = static_cast<std::int32_t>(t);
      if (level.is_free(t))
        marked[static_cast<std::size_t>(t)] = 1;
      else if (high > bottom)
        rising.emplace_back(static_cast<double>(high - bottom), place);
      else if (low < top)
        falling.emplace_back(static_cast<double>(top - low), place);
    }
  }
  const Size most = movers.too_many() ? (static_cast<Size>(wanted) - movers.free) / 2 : level.count;
  mark_strongest(rising, most, marked);
  mark_strongest(falling, most, marked);
  Active active{{}, movers.too_many() ? kLooser : kTighter};
  level.each([&](Size t) {
    if (marked[static_cast<std::size_t>(t)]) active.places.push_back(static_cast<std::int32_t>(t));
  });
  return active;
}

// The state of the active variables, still without a matrix.
template <class Entry>
DescentState<Entry> part_of(const DescentState<Entry>& from, const std::vector<std::int32_t>& places) {
  std::vector<Size> lengths(static_cast<std::size_t>(from.groups), 0);
  for (const std::int32_t place : places) ++lengths[static_cast<std::size_t>(from.group_of(place))];
  Size size = 0;
  std::vector<Run> runs = runs_of_groups(lengths, size);
  DescentState<Entry> part(std::move(runs), from.groups, size);
  std::size_t next = 0;
  for (const Run& run : part.runs) {
    const auto g = static_cast<std::size_t>(run.group);
    // around the middle of the gap F is smallest where it matters most
    const double middle = 0.5 * (static_cast<double>(from.tops[g].value) +
                                 static_cast<double>(from.lows[g]));
    const double off = std::isfinite(middle) ? middle : 0.0;
    for (Size t = run.local; t < run.local + run.length; ++t) {
      const std::int32_t s = places[next++];
      part.origin[t] = s;
      part.f[t] = static_cast<Entry>(static_cast<double>(from.f[s]) - off);
      part.up[t] = from.up[s], part.low[t] = from.low[s], part.diag[t] = from.diag[s];
      part.b[t] = from.b[s], part.lower[t] = from.lower[s], part.upper[t] = from.upper[s];
      part.kink[t] = from.kink[s], part.shift[t] = from.shift[s];
    }
  }
  return part;
}

template <class Entry>
void give_matrix(const DescentState<Entry>& from, DescentState<Entry>& part, Entry* k, const Worker& worker) {
  std::vector<const Entry*> rows;
  std::vector<std::int32_t> columns;
  part.each([&](Size t) {
    rows.push_back(from.row(part.origin[t]));
    columns.push_back(static_cast<std::int32_t>(from.column_of(part.origin[t])));
  });
  part.k = k;
  part.ld = row_distance(part.size);
  part.padded = true;
  gather_square(part, k, part.ld, rows.data(), columns.data(), worker);
}

// Takes the variables of a part over: F -= K[:, changed] delta, summed in double precision, so that
// what rounding did to the F of the part is forgotten.
template <class Entry>
void take_over(DescentState<Entry>& level, const DescentState<Entry>& part, const Worker& worker) {
  Moves<Entry> moves;
  part.each([&](Size t) {
    const Size s = part.origin[t];
    const double delta = part.b[t] - level.b[s];
    if (delta == 0.0) return;
    moves.add(level.row(s), delta);
    level.f[s] = static_cast<Entry>(static_cast<double>(level.f[s]) - level.shift[s] * delta);
    level.b[s] = part.b[t];
    level.refresh(s, level.b[s]);
  });
  if (moves.empty()) return;
  Buffer<double> sums(level.size);
  sum_rows(level, std::move(moves), worker, sums.data());
  level.each([&](Size t) {
    level.f[t] = static_cast<Entry>(static_cast<double>(level.f[t]) - sums[t]);
  });
}

// One round on a part; what it did to `level` is in there when this returns.
template <class Entry>
Descent solve_part(DescentState<Entry>& level, const Active& active, double tol, std::int64_t limit,
                   const Worker& worker, Scratch<Entry>& scratch, int depth) {
  DescentState<Entry> part = part_of(level, active.places);
  Entry* k = scratch.at(static_cast<std::size_t>(depth), part.size * row_distance(part.size));
  give_matrix(level, part, k, worker);
  if (worker.stopped()) return {End::stopped, 0, kNever};  // the matrix may be half made
  const Descent done = solve_level(part, tol, limit, worker, scratch, depth + 1);
  take_over(level, part, worker);
  return done;
}

}  // namespace

std::vector<Run> runs_of_groups(const std::vector<Size>& lengths, Size& size) {
  std::vector<Run> runs;
  size = 0;
  for (std::size_t g = 0; g < lengths.size(); ++g) {
    if (lengths[g] == 0) continue;
    runs.push_back({size, size, lengths[g], static_cast<int>(g)});
    size += round_up(lengths[g], kPad);
  }
  return runs;
}

template <class Entry>
void gather_square(const DescentState<Entry>& to, Entry* k, Size ld, const Entry* const* rows,
                   const std::int32_t* columns, const Worker& worker) {
  std::vector<Size> places;
  to.each([&](Size t) { places.push_back(t); });
  const auto gather = table<Passes<Entry>>().gather;
  const Size tasks = round_up(to.count, kRowsAtOnce) / kRowsAtOnce;
  worker.share(tasks, to.count * to.count > kWorthTwo, [&](Size task) {
    const Size last = std::min(to.count, (task + 1) * kRowsAtOnce);
    for (Size r = task * kRowsAtOnce; r < last; ++r) {
      Entry* row = k + places[static_cast<std::size_t>(r)] * ld;
      Size done = 0;
      for (const Run& run : to.runs) {
        gather(rows[r], columns + done, run.length, row + run.local);
        const Size end = run.local + run.length;
        std::fill(row + end, row + round_up(end, kPad), Entry(0));
        done += run.length;
      }
    }
  });
}

template <class Entry>
Entry* Scratch<Entry>::at(std::size_t depth, Size entries) {
  if (held_.size() <= depth) held_.resize(depth + 1);
  if (held_[depth].size() < entries) {
    held_[depth] = Buffer<Entry>();
    // few different sizes, so that the next fit finds pages of this one again
    Size size = 1 << 16;
    while (size < entries) size += size / 4;
    held_[depth] = Buffer<Entry>(size);
  }
  return held_[depth].data();
}

template <class Entry>
Descent solve_level(DescentState<Entry>& level, double tol, std::int64_t limit, const Worker& worker,
                    Scratch<Entry>& scratch, int depth, std::int64_t since) {
  if (depth == 0) scratch.finish.begin(tol);
  bool compact = depth < kMostDepth && level.count >= kLeastVariables;
  std::int64_t steps = 0;  // all; `since` are those on this level since the last part
  for (;;) {
    const std::int64_t round = std::max<std::int64_t>(kLeastSteps, level.count / kLooks);
    Descent done = descend(level, tol, std::min(round, limit - steps), worker);
    steps += done.steps;
    since += done.steps;
    scratch.finish.note(done.steps, level.count, sizeof(Entry));
    done.steps = steps;
    if (done.end != End::limit || steps >= limit || worker.stopped()) return done;
    if (scratch.finish.attempt(level, done.gap, worker) || !compact) continue;
    const Active active = choose_active(level, since);
    if (active.places.empty()) continue;
    const double goal = std::max(kBelow * tol, active.rel * done.gap);
    const Descent part = solve_part(level, active, goal, limit - steps, worker, scratch, depth);
    steps += part.steps;
    since = 0;
    if (part.end == End::stuck || part.end == End::broken) compact = false;
  }
}

template class Scratch<float>;
template class Scratch<double>;
#define MERCER_INSTANTIATE(Entry)                                                               \
  template void gather_square(const DescentState<Entry>&, Entry*, Size, const Entry* const*,           \
                              const std::int32_t*, const Worker&);                              \
  template Descent solve_level(DescentState<Entry>&, double, std::int64_t, const Worker&,              \
                               Scratch<Entry>&, int, std::int64_t);
MERCER_INSTANTIATE(float)
MERCER_INSTANTIATE(double)
#undef MERCER_INSTANTIATE

}  // namespace mercer::svm
