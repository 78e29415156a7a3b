// The sweeps of one instruction set. CMake compiles this file once per MERCER_VARIANT.
#include "mercer/svm_simd.hpp"

namespace mercer::svm::MERCER_VARIANT {
namespace {

// Calls step(chain, place, k) for every vector of a run, with k from `load_full(offset)` or, where
// only `count` entries are left, from `load_rest(offset, count)`. Two chains: one alone would wait
// for its own comparisons.
template <class Entry, class LoadFull, class LoadRest, class Step>
MERCER_INLINE void sweep(const Run& run, bool padded, LoadFull&& load_full, LoadRest&& load_rest,
                         Step&& step) {
  constexpr Size lanes = kLanes<Entry>;
  const Size length = padded ? (run.length + lanes - 1) / lanes * lanes : run.length;
  Size t = 0;
  for (; t + 2 * lanes <= length; t += 2 * lanes) {
    step(0, run.local + t, load_full(t));
    step(1, run.local + t + lanes, load_full(t + lanes));
  }
  if (t + lanes <= length) {
    step(0, run.local + t, load_full(t));
    t += lanes;
  }
  if (t < length) step(0, run.local + t, load_rest(t, length - t));
}

// Rows of K come from afar: the processor itself begins too late with each of them.
template <class Entry>
MERCER_INLINE Vector<Entry> load_ahead(const Entry* from) {
  __builtin_prefetch(reinterpret_cast<const char*>(from) + 2048);
  return load(from);
}

template <class Entry>
MERCER_INLINE Places<Entry> places_from(Size at) {
  Places<Entry> lane;
  for (Size l = 0; l < kLanes<Entry>; ++l) lane[l] = l;
  return lane + static_cast<std::remove_reference_t<decltype(lane[0])>>(at);
}

template <class Entry>
struct Two {
  Vector<Entry> i, j;
};

// Sweep two over the runs of one group, from run `first` on; returns the run after the last.
template <bool update, class Entry>
MERCER_INLINE Size top_of_group(const Share<Entry>& s, Size first, const Entry* ki,
                                const Entry* kj, Entry step, Top<Entry>* tops) {
  const int group = s.runs[first].group;
  Largest<Entry> best[2] = {Largest<Entry>(-kInfinity<Entry>), Largest<Entry>(-kInfinity<Entry>)};
  const Vector<Entry> steps = filled<Entry>(step);
  Entry* const F = s.f;
  const Entry* const up = s.up;
  Size r = first;
  for (; r < s.run_count && s.runs[r].group == group; ++r) {
    const Run run = s.runs[r];
    const Entry *a = ki + run.column, *b = kj + run.column;
    sweep<Entry>(
        run, update ? s.padded : true,
        [&](Size t) {
          if constexpr (update) return Two<Entry>{load(a + t), load_ahead(b + t)};
          return Two<Entry>{};
        },
        [&](Size t, Size count) {
          if constexpr (update) return Two<Entry>{load_some(a + t, count), load_some(b + t, count)};
          return Two<Entry>{};
        },
        [&](int chain, Size at, const Two<Entry>& k) {
          Vector<Entry> f = load(F + at);
          if constexpr (update) {
            f -= steps * (k.i - k.j);
            store(F + at, f);
          }
          best[chain].offer(f + load(up + at), places_from<Entry>(at));
        });
  }
  tops[group].index = first_largest(best[0], best[1], -kInfinity<Entry>, tops[group].value);
  return r;
}

template <class Entry>
void find_tops(const Share<Entry>& s, Top<Entry>* tops) {
  for (Size r = 0; r < s.run_count;) r = top_of_group<false>(s, r, s.k, s.k, Entry(0), tops);
}

template <class Entry>
void advance(const Share<Entry>& s, Size i, Size j, Entry step, Top<Entry>* tops) {
  const Entry *ki = s.row(i), *kj = s.row(j);
  for (Size r = 0; r < s.run_count;) r = top_of_group<true>(s, r, ki, kj, step, tops);
}

// Sweep one over the runs of one group.
template <class Entry>
MERCER_INLINE Size partner_in_group(const Share<Entry>& s, Size first, const Top<Entry>& top,
                                    Largest<Entry>* best, Entry* lows) {
  const int group = s.runs[first].group;
  const Entry* row = s.row(top.index);
  const Entry *F = s.f, *fall = s.low, *diag = s.diag;
  const Vector<Entry> high = filled<Entry>(top.value), kii = filled<Entry>(diag[top.index]);
  const Vector<Entry> zero = {}, flat = filled<Entry>(kFlat<Entry>);
  const Vector<Entry> tiny = filled<Entry>(kTiny<Entry>);
  Vector<Entry> lowest[2] = {filled<Entry>(kInfinity<Entry>), filled<Entry>(kInfinity<Entry>)};
  Size r = first;
  for (; r < s.run_count && s.runs[r].group == group; ++r) {
    const Run run = s.runs[r];
    const Entry* ki = row + run.column;
    sweep<Entry>(
        run, s.padded, [&](Size t) { return load_ahead(ki + t); },
        [&](Size t, Size count) { return load_some(ki + t, count); },
        [&](int chain, Size at, const Vector<Entry>& k) {
          const Vector<Entry> low = load(F + at) + load(fall + at);
          lowest[chain] = smaller<Entry>(low, lowest[chain]);
          const Vector<Entry> d = larger<Entry>(high - low, zero);
          const Vector<Entry> level = kii + load(diag + at);
          const Vector<Entry> least = larger<Entry>(level * flat, tiny);
          const Vector<Entry> curvature = larger<Entry>(level - (k + k), least);
          best[chain].offer(d * (d * reciprocal<Entry>(curvature)), places_from<Entry>(at));
        });
  }
  lows[group] = smallest_lane<Entry>(smaller<Entry>(lowest[0], lowest[1]));
  return r;
}

template <class Entry>
Partner<Entry> find_partner(const Share<Entry>& s, const Top<Entry>* tops, Entry* lows) {
  Largest<Entry> best[2] = {Largest<Entry>(0), Largest<Entry>(0)};
  for (Size r = 0; r < s.run_count;) {
    const Top<Entry>& top = tops[s.runs[r].group];
    if (top.index < 0)
      ++r;
    else
      r = partner_in_group(s, r, top, best, lows);
  }
  Partner<Entry> found;
  found.index = first_largest(best[0], best[1], Entry(0), found.gain);
  return found;
}

template <class Entry>
void gather(const Entry* from, const std::int32_t* index, Size count, Entry* to) {
  for (Size t = 0; t < count; ++t) to[t] = from[index[t]];
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

constexpr Size kBlockRows = 64, kBlockColumns = 256;  // of K: what is copied to one place at a time

// `vectors` registers of columns for some stages at once: sums do not leave the registers.
template <Size vectors, class Entry>
MERCER_INLINE void expand_columns(const Entry* block, Size rows, const Entry* weights, Size stages,
                                  double* sums, Size apart) {
  Vector<Entry> total[kStagesAtOnce][vectors] = {};
  for (Size r = 0; r < rows; ++r) {
    Vector<Entry> k[vectors];
    for (Size c = 0; c < vectors; ++c) k[c] = load(block + r * kBlockColumns + c * kLanes<Entry>);
    for (Size s = 0; s < kStagesAtOnce; ++s)
      for (Size c = 0; c < vectors; ++c) total[s][c] += weights[r * stages + s] * k[c];
  }
  for (Size s = 0; s < kStagesAtOnce; ++s)
    for (Size c = 0; c < vectors; ++c)
      for (Size lane = 0; lane < kLanes<Entry>; ++lane)
        sums[s * apart + c * kLanes<Entry> + lane] += static_cast<double>(total[s][c][lane]);
}

template <class Entry>
void expand_block(const Entry* block, Size rows, Size columns, const Entry* weights, Size stages,
                  double* sums, Size apart) {
  constexpr Size wide = 4;  // registers
  Size t = 0;
  for (; t + wide * kLanes<Entry> <= columns; t += wide * kLanes<Entry>)
    expand_columns<wide>(block + t, rows, weights, stages, sums + t, apart);
  for (; t + kLanes<Entry> <= columns; t += kLanes<Entry>)
    expand_columns<1>(block + t, rows, weights, stages, sums + t, apart);
  for (; t < columns; ++t)
    for (Size r = 0; r < rows; ++r)
      for (Size s = 0; s < kStagesAtOnce; ++s)
        sums[s * apart + t] += static_cast<double>(weights[r * stages + s]) *
                               static_cast<double>(block[r * kBlockColumns + t]);
}

template <class Entry>
void expand(const Entry* const* rows, Size row_count, Size column, Size length,
            const Entry* weights, Size stages, double* sums, Size apart) {
  alignas(64) Entry block[kBlockRows * kBlockColumns];
  for (Size t = 0; t < length; t += kBlockColumns) {
    const Size columns = length - t < kBlockColumns ? length - t : kBlockColumns;
    for (Size r = 0; r < row_count; r += kBlockRows) {
      const Size count = row_count - r < kBlockRows ? row_count - r : kBlockRows;
      for (Size i = 0; i < count; ++i)
        __builtin_memcpy(block + i * kBlockColumns, rows[r + i] + column + t,
                         static_cast<std::size_t>(columns) * sizeof(Entry));
      for (Size s = 0; s < stages; s += kStagesAtOnce)
        expand_block(block, count, columns, weights + r * stages + s, stages,
                     sums + s * apart + t, apart);
    }
  }
}

template <class Entry>
constexpr Passes<Entry> kTable = {find_tops<Entry>, find_partner<Entry>, advance<Entry>,
                                  gather<Entry>,    accumulate<Entry>,   expand<Entry>};

}  // namespace

const Passes<float>& passes_float() { return kTable<float>; }
const Passes<double>& passes_double() { return kTable<double>; }

}  // namespace mercer::svm::MERCER_VARIANT
