// The two sweeps of a pair step, and the row loops around them, for each instruction set.
//
// With F = p - K b, moving b_i up and b_j down by the same amount improves the objective when
// F_i + up_i > F_j + low_j. The offsets carry the kink of |b| and, as infinities, the box. Sweep
// one runs along row i of K and finds the j of the largest second-order gain together with the
// smallest F + low; sweep two subtracts the step from F and finds the next i on the way. Nothing
// else touches memory.
#pragma once

#include <cstdint>

#include "runtime/size.hpp"

namespace mercer::svm {

constexpr Size kPad = 16;  // entries; every run of variables starts at a multiple of it
constexpr int kPast = 3;   // earlier directions that a step is made conjugate to

// Variables next to each other in the state whose columns of K are next to each other, too.
struct Run {
  Size column;  // of K, of the first
  Size local;   // place of the first in the state; a multiple of kPad
  Size length;
  int group;
};

// The largest F + up of a group.
template <class Entry>
struct Top {
  Entry value;
  std::int32_t index;  // -1: nothing in the group may rise
};

// The partner of the largest gain.
template <class Entry>
struct Partner {
  Entry gain;
  std::int32_t index;  // -1: no pair improves
};

// What one thread sweeps: some runs, sorted by group, of the state of a level. Places between the
// runs hold f = 0, diag = 0, up = -inf, low = +inf.
template <class Entry>
struct Share {
  const Entry* k;
  Size ld;
  const std::int64_t* row_of;  // row of K of each variable; null: its place
  const Run* runs;
  Size run_count;
  bool padded;  // rows of K have zeros where the state has gaps
  bool even;    // all diagonal entries are equal
  Entry* f;
  Entry* up;
  Entry* low;
  const Entry* diag;

  const Entry* row(Size i) const { return k + (row_of == nullptr ? i : row_of[i]) * ld; }
};

// The direction of a step beyond its pair: `count` earlier ones, times factors. K times the whole
// goes to `to`, which may be one of them, and F as it was before to `mark`; null where nobody asks
// for it.
template <class Entry>
struct Along {
  const Entry* past[kPast];
  Entry factor[kPast];
  int count;
  Entry* to;
  Entry* mark;
};

// Below this part of K_ii + K_jj a curvature is rounding noise of K.
template <class Entry>
constexpr Entry kFlat = sizeof(Entry) == sizeof(float) ? Entry(1e-7) : Entry(1e-12);
template <class Entry>
constexpr Entry kTiny = sizeof(Entry) == sizeof(float) ? Entry(1e-37) : Entry(1e-300);

// Ties go to the smallest index, so that results do not depend on how runs are shared out.
template <class Entry>
struct Passes {
  // Fills `tops` of the groups that have runs in the share.
  void (*find_tops)(const Share<Entry>&, Top<Entry>* tops);
  // Fills `lows`, the smallest F + low, of groups that have runs in the share and a top.
  Partner<Entry> (*find_partner)(const Share<Entry>&, const Top<Entry>* tops, Entry* lows);
  // F -= step (K_i - K_j + what the step goes along), and then as find_tops.
  void (*advance)(const Share<Entry>&, Size i, Size j, const Along<Entry>&, Entry step,
                  Top<Entry>* tops);
  // With q = mark - F, which goes to `to`: F -= step q, mark = F, and then as find_tops.
  void (*leap)(const Share<Entry>&, Entry* mark, Entry* to, Entry step, Top<Entry>* tops);
  // p = the sum over k of factor[k] past[k]; gives p' p
  double (*combine)(const double* const* past, const double* factor, int count, Size n, double* p);
  // sum += step p
  void (*add)(double* sum, double step, const double* p, Size n);
  // next = b + step p; whether all of it is between low and high
  bool (*stays)(const double* b, const double* p, double step, const double* low,
                const double* high, Size n, double* next);
  // to[t] = from[index[t]]
  void (*gather)(const Entry* from, const std::int32_t* index, Size count, Entry* to);
  // The sum of row[t] x[t].
  double (*project)(const Entry* row, const double* x, Size n);
  // x[t] -= factor row[t]
  void (*subtract)(double* x, double factor, const Entry* row, Size n);
  // sum[t] += the sum over r of weights[r] rows[r][t], for four rows
  void (*accumulate)(const Entry* const* rows, const double* weights, Size count, double* sum);
};

}  // namespace mercer::svm
