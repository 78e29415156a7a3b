// The sweeps of one instruction set. CMake compiles this file once per MERCER_VARIANT.
#include "svm/passes.hpp"

#include <limits>
#include <type_traits>

#include "svm/largest.hpp"

namespace mercer::svm {
namespace {

template <class Entry>
constexpr Entry kInfinity = std::numeric_limits<Entry>::infinity();

// The largest value of a sweep, known by the block it is in: to keep its place all along would take
// more instructions than to look for it in one block at the end.
template <class Entry>
struct Spot {
  Vec<Entry> value;
  Size run = -1, begin = 0, end = 0;

  MERCER_INLINE explicit Spot(Entry start) : value(splat<Entry>(start)) {}
};

constexpr Size kBlock = 8;  // vectors

// Calls step(t, place, k) for every vector of a run from t = `begin` to `end`, with k from
// `load_full(t)` or, where only `count` entries are left, from `load_rest(t, count)`.
template <class Entry, class LoadFull, class LoadRest, class Step>
MERCER_INLINE void sweep(const Run& run, Size begin, Size end, LoadFull&& load_full,
                         LoadRest&& load_rest, Step&& step) {
  constexpr Size lanes = kLanes<Entry>;
  Size t = begin;
  for (; t + 2 * lanes <= end; t += 2 * lanes) {  // two: one alone would wait for itself
    step(0, run.local + t, load_full(t));
    step(1, run.local + t + lanes, load_full(t + lanes));
  }
  if (t + lanes <= end) {
    step(0, run.local + t, load_full(t));
    t += lanes;
  }
  if (t < end) step(0, run.local + t, load_rest(t, end - t));
}

// Puts the block with the largest value(place, k) into `best`, if it is larger; of equal ones the
// first stays.
template <class Entry, class LoadFull, class LoadRest, class Value>
MERCER_INLINE void sweep_blocks(const Run& run, Size number, bool padded, LoadFull&& load_full,
                                LoadRest&& load_rest, Value&& value, Spot<Entry>& best) {
  constexpr Size lanes = kLanes<Entry>;
  const Size length = padded ? (run.length + lanes - 1) / lanes * lanes : run.length;
  for (Size begin = 0; begin < length; begin += kBlock * lanes) {
    const Size end = begin + kBlock * lanes < length ? begin + kBlock * lanes : length;
    Vec<Entry> top[2] = {best.value, best.value};
    sweep<Entry>(run, begin, end, load_full, load_rest, [&](int chain, Size at, const auto& k) {
      top[chain] = larger<Entry>(value(chain, at, k), top[chain]);
    });
    const Vec<Entry> most = larger<Entry>(top[0], top[1]);
    if (!any_above<Entry>(most, best.value)) continue;
    best.value = splat<Entry>(largest_lane<Entry>(most));
    best.run = number;
    best.begin = begin, best.end = end;
  }
}

// Rows of K come from afar: the processor itself begins too late with each of them.
template <class Entry>
MERCER_INLINE Vec<Entry> load_ahead(const Entry* from) {
  __builtin_prefetch(reinterpret_cast<const char*>(from) + 2048);
  return load(from);
}

template <class Entry>
MERCER_INLINE Ints<Entry> places_from(Size at) {
  Ints<Entry> lane;
  for (Size l = 0; l < kLanes<Entry>; ++l) lane[l] = l;
  return lane + static_cast<std::remove_reference_t<decltype(lane[0])>>(at);
}

template <class Entry>
struct Two {
  Vec<Entry> i, j;
};

// What a sweep two does beside looking for the largest: nothing; subtract a pair; subtract a pair
// and `past` earlier directions, and remember their sum; besides remember F before.
enum class Update { none, pair, direction, marked };

// The place of the largest F + up in a block.
template <class Entry>
MERCER_INLINE std::int32_t top_in_block(const Share<Entry>& s, const Spot<Entry>& spot,
                                        Entry& value) {
  Largest<Entry> best[2] = {Largest<Entry>(-kInfinity<Entry>), Largest<Entry>(-kInfinity<Entry>)};
  const Run run = s.runs[spot.run];
  const auto none = [](Size, Size = 0) { return 0; };
  sweep<Entry>(run, spot.begin, spot.end, none, none, [&](int chain, Size at, int) {
    best[chain].offer(load(s.f + at) + load(s.up + at), places_from<Entry>(at));
  });
  return first_largest(best[0], best[1], -kInfinity<Entry>, value);
}

// Sweep two over the runs of one group, from run `first` on; returns the run after the last.
template <Update update, int past, class Entry>
MERCER_INLINE Size top_of_group(const Share<Entry>& s, Size first, const Entry* ki,
                                const Entry* kj, const Along<Entry>& along, Entry step,
                                Top<Entry>* tops) {
  const int group = s.runs[first].group;
  Spot<Entry> best(-kInfinity<Entry>);
  const Vec<Entry> steps = splat<Entry>(step);
  Vec<Entry> factor[kPast];
  const Entry* directions[kPast];
  for (int p = 0; p < past; ++p) {
    factor[p] = splat<Entry>(along.factor[p]);
    directions[p] = along.past[p];
  }
  Entry *const F = s.f, *const to = along.to, *const mark = along.mark;
  const Entry* const up = s.up;
  Size r = first;
  for (; r < s.run_count && s.runs[r].group == group; ++r) {
    const Run run = s.runs[r];
    const Entry *a = ki + run.column, *b = kj + run.column;
    sweep_blocks<Entry>(
        run, r, update == Update::none ? true : s.padded,
        [&](Size t) {
          if constexpr (update != Update::none)
            return Two<Entry>{load(a + t), load_ahead(b + t)};
          return Two<Entry>{};
        },
        [&](Size t, Size count) {
          if constexpr (update != Update::none)
            return Two<Entry>{load_some(a + t, count), load_some(b + t, count)};
          return Two<Entry>{};
        },
        [&](int, Size at, const Two<Entry>& k) {
          Vec<Entry> f = load(F + at);
          if constexpr (update != Update::none) {
            Vec<Entry> q = k.i - k.j;
            for (int p = 0; p < past; ++p)
              q = plus_product<Entry>(q, factor[p], load(directions[p] + at));
            if constexpr (update != Update::pair) store(to + at, q);
            if constexpr (update == Update::marked) store(mark + at, f);
            f = minus_product<Entry>(f, steps, q);
            store(F + at, f);
          }
          return f + load(up + at);
        },
        best);
  }
  tops[group].index = best.run < 0 ? -1 : top_in_block(s, best, tops[group].value);
  return r;
}

template <class Entry>
void find_tops(const Share<Entry>& s, Top<Entry>* tops) {
  for (Size r = 0; r < s.run_count;)
    r = top_of_group<Update::none, 0>(s, r, s.k, s.k, Along<Entry>{}, Entry(0), tops);
}

template <Update update, int past, class Entry>
void advance_by(const Share<Entry>& s, Size i, Size j, const Along<Entry>& along, Entry step,
                Top<Entry>* tops) {
  const Entry *ki = s.row(i), *kj = s.row(j);
  for (Size r = 0; r < s.run_count;)
    r = top_of_group<update, past>(s, r, ki, kj, along, step, tops);
}

template <class Entry>
void advance(const Share<Entry>& s, Size i, Size j, const Along<Entry>& along, Entry step,
             Top<Entry>* tops) {
  if (along.to == nullptr) return advance_by<Update::pair, 0>(s, i, j, along, step, tops);
  static_assert(kPast == 3);
  if (along.mark != nullptr)
    return advance_by<Update::marked, 1>(s, i, j, along, step, tops);
  switch (along.count) {
    case 0: return advance_by<Update::direction, 0>(s, i, j, along, step, tops);
    case 1: return advance_by<Update::direction, 1>(s, i, j, along, step, tops);
    case 2: return advance_by<Update::direction, 2>(s, i, j, along, step, tops);
    default: return advance_by<Update::direction, 3>(s, i, j, along, step, tops);
  }
}

template <class Entry>
void leap(const Share<Entry>& s, Entry* mark, Entry* to, Entry step, Top<Entry>* tops) {
  for (Size r = 0; r < s.run_count; ++r) {
    const Run run = s.runs[r];
    for (Size t = run.local; t < run.local + run.length; ++t) {
      to[t] = mark[t] - s.f[t];
      mark[t] = s.f[t] -= step * to[t];
    }
    for (Size t = run.local + run.length; t % kPad != 0; ++t) to[t] = mark[t] = Entry(0);
  }
  find_tops(s, tops);
}

double combine(const double* const* past, const double* factor, int count, Size n, double* p) {
  static_assert(kPast == 3);
  const double *a = past[0], *b = past[count > 1 ? 1 : 0], *c = past[count > 2 ? 2 : 0];
  const double fa = factor[0], fb = count > 1 ? factor[1] : 0.0, fc = count > 2 ? factor[2] : 0.0;
  constexpr Size lanes = kLanes<double>;
  Vec<double> squares = {};
  Size u = 0;
  for (; u + lanes <= n && count > 0; u += lanes) {
    const Vec<double> sum = fa * load(a + u) + fb * load(b + u) + fc * load(c + u);
    store(p + u, sum);
    squares += sum * sum;
  }
  double length = 0.0;
  for (Size lane = 0; lane < lanes; ++lane) length += squares[lane];
  for (; u < n; ++u) {
    p[u] = count > 0 ? fa * a[u] + fb * b[u] + fc * c[u] : 0.0;
    length += p[u] * p[u];
  }
  return length;
}

void add(double* sum, double step, const double* p, Size n) {
  for (Size u = 0; u < n; ++u) sum[u] += step * p[u];
}

bool stays(const double* b, const double* p, double step, const double* low, const double* high,
           Size n, double* next) {
  std::int64_t outside = 0;
  for (Size u = 0; u < n; ++u) {
    const double to = b[u] + step * p[u];
    next[u] = to;
    outside += !((to > low[u]) & (to < high[u]));
  }
  return outside == 0;
}

// What a partner of `top` would gain, to second order.
template <bool even, class Entry>
struct Gain {
  const Share<Entry>& s;
  const Entry* row;
  Vec<Entry> high, kii, least;

  MERCER_INLINE Gain(const Share<Entry>& share, const Top<Entry>& top)
      : s(share),
        row(share.row(top.index)),
        high(splat<Entry>(top.value)),
        kii(splat<Entry>(share.diag[top.index])),
        // where K_ii + K_jj - 2 K_ij is small, these two are about equal
        least(larger<Entry>(kii * splat<Entry>(2 * kFlat<Entry>), splat<Entry>(kTiny<Entry>))) {}

  MERCER_INLINE Vec<Entry> operator()(Vec<Entry> low, Size at, Vec<Entry> k) const {
    const Vec<Entry> d = larger<Entry>(high - low, Vec<Entry>{});
    const Vec<Entry> level = even ? kii + kii : kii + load(s.diag + at);
    const Vec<Entry> apart = minus_product<Entry>(level, splat<Entry>(Entry(2)), k);
    return d * (d * reciprocal<Entry>(larger<Entry>(apart, least)));
  }
};

// Sweep one over the runs of one group.
template <bool even, class Entry>
MERCER_INLINE Size partner_in_group(const Share<Entry>& s, Size first, const Top<Entry>& top,
                                    Spot<Entry>& best, Entry* lows) {
  const int group = s.runs[first].group;
  const Gain<even, Entry> gain(s, top);
  const Entry *F = s.f, *fall = s.low;
  Vec<Entry> lowest[2] = {splat<Entry>(kInfinity<Entry>), splat<Entry>(kInfinity<Entry>)};
  Size r = first;
  for (; r < s.run_count && s.runs[r].group == group; ++r) {
    const Run run = s.runs[r];
    const Entry* ki = gain.row + run.column;
    sweep_blocks<Entry>(
        run, r, s.padded, [&](Size t) { return load_ahead(ki + t); },
        [&](Size t, Size count) { return load_some(ki + t, count); },
        [&](int chain, Size at, const Vec<Entry>& k) {
          const Vec<Entry> low = load(F + at) + load(fall + at);
          lowest[chain] = smaller<Entry>(low, lowest[chain]);
          return gain(low, at, k);
        },
        best);
  }
  lows[group] = smallest_lane<Entry>(smaller<Entry>(lowest[0], lowest[1]));
  return r;
}

// The partner of the largest gain in a block.
template <bool even, class Entry>
MERCER_INLINE Partner<Entry> partner_in_block(const Share<Entry>& s, const Top<Entry>* tops,
                                              const Spot<Entry>& spot) {
  Largest<Entry> best[2] = {Largest<Entry>(0), Largest<Entry>(0)};
  const Run run = s.runs[spot.run];
  const Gain<even, Entry> gain(s, tops[run.group]);
  const Entry* ki = gain.row + run.column;
  sweep<Entry>(
      run, spot.begin, spot.end, [&](Size t) { return load(ki + t); },
      [&](Size t, Size count) { return load_some(ki + t, count); },
      [&](int chain, Size at, const Vec<Entry>& k) {
        best[chain].offer(gain(load(s.f + at) + load(s.low + at), at, k), places_from<Entry>(at));
      });
  Partner<Entry> found;
  found.index = first_largest(best[0], best[1], Entry(0), found.gain);
  return found;
}

template <bool even, class Entry>
MERCER_INLINE Partner<Entry> partner(const Share<Entry>& s, const Top<Entry>* tops, Entry* lows) {
  Spot<Entry> best(0);
  for (Size r = 0; r < s.run_count;) {
    const Top<Entry>& top = tops[s.runs[r].group];
    if (top.index < 0)
      ++r;
    else
      r = partner_in_group<even>(s, r, top, best, lows);
  }
  return best.run < 0 ? Partner<Entry>{Entry(0), -1} : partner_in_block<even>(s, tops, best);
}

template <class Entry>
Partner<Entry> find_partner(const Share<Entry>& s, const Top<Entry>* tops, Entry* lows) {
  return s.even ? partner<true>(s, tops, lows) : partner<false>(s, tops, lows);
}

template <class Entry>
void gather(const Entry* from, const std::int32_t* index, Size count, Entry* to) {
  for (Size t = 0; t < count; ++t) to[t] = from[index[t]];
}

template <class Entry>
double project(const Entry* row, const double* x, Size n) {
  constexpr Size kSums = 32;  // independent, so that additions need not wait for each other
  double sums[kSums] = {}, rest = 0.0;
  Size t = 0;
  for (; t + kSums <= n; t += kSums)
    for (Size c = 0; c < kSums; ++c) sums[c] += static_cast<double>(row[t + c]) * x[t + c];
  for (; t < n; ++t) rest += static_cast<double>(row[t]) * x[t];
  for (const double sum : sums) rest += sum;
  return rest;
}

template <class Entry>
void subtract(double* x, double factor, const Entry* row, Size n) {
  const Entry* __restrict from = row;
  double* __restrict to = x;
  for (Size t = 0; t < n; ++t) to[t] -= factor * static_cast<double>(from[t]);
}

template <class Entry>
void accumulate(const Entry* const* rows, const double* weights, Size count, double* sum) {
  const Entry *__restrict a = rows[0], *__restrict b = rows[1];
  const Entry *__restrict c = rows[2], *__restrict d = rows[3];
  const double wa = weights[0], wb = weights[1], wc = weights[2], wd = weights[3];
  double* __restrict to = sum;
  for (Size t = 0; t < count; ++t) {
    to[t] += wa * static_cast<double>(a[t]) + wb * static_cast<double>(b[t]) +
             wc * static_cast<double>(c[t]) + wd * static_cast<double>(d[t]);
  }
}

template <class Entry>
constexpr Passes<Entry> kPasses = {find_tops<Entry>, find_partner<Entry>, advance<Entry>,
                                   leap<Entry>,      combine,             add,
                                   stays,            gather<Entry>,       project<Entry>,
                                   subtract<Entry>,  accumulate<Entry>};

}  // namespace
}  // namespace mercer::svm

namespace mercer {

template <>
const svm::Passes<float>& MERCER_VARIANT::table() {
  return svm::kPasses<float>;
}
template <>
const svm::Passes<double>& MERCER_VARIANT::table() {
  return svm::kPasses<double>;
}

}  // namespace mercer
