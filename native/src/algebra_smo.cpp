// Two passes over n numbers per step of the solver, nothing else touches memory.
//
// With F = linear - K b, a pair (i, j) improves the objective when b_i may rise, b_j may fall and
// F_i > F_j. Pass one runs along row i of K and finds the j of the largest second-order gain
// (F_i - F_j)^2 / curvature, together with the smallest falling F; pass two subtracts the step from
// F and finds the next i on the way. What may move is kept as offsets 0 or infinity on F.
#include "mercer/algebra_smo.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "mercer/algebra_memory.hpp"
#include "mercer/algebra_simd.hpp"
#include "mercer/pool.hpp"

namespace mercer::algebra {
namespace {

constexpr Size kLanes = 8;   // of one vector of doubles
constexpr Size kChains = 2;  // independent maxima: one alone would wait for its own comparisons
constexpr Size kStep = kLanes * kChains;
constexpr Size kGradientColumns = 1024;  // columns of one task of the first gradient
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Doubles = Vector<kLanes>::type;
using LooseDoubles = Vector<kLanes>::loose;
typedef long long Indices __attribute__((vector_size(64)));
typedef float LooseFloats __attribute__((vector_size(32), aligned(4), may_alias));

// Below it a curvature is rounding noise of K.
template <class Entry>
constexpr double kLeastCurvature = sizeof(Entry) == sizeof(float) ? 1e-7 : 1e-12;

// All arrays are padded to a multiple of kStep: diag and f with 0, rise with -inf, fall with +inf.
struct State {
  Size n;
  double* f;
  double* rise;  // 0 where b may rise, else -inf
  double* fall;  // 0 where b may fall, else +inf
  double* diag;
};

struct Highest {
  Size index;    // -1: nothing may rise
  double value;  // F there; NaN when some F is not finite
};

struct Partner {
  Size index;     // -1: no pair improves
  double lowest;  // the smallest F that may fall
};

template <class V, class Lane>
MERCER_INLINE void fill(V& v, Lane value) {
  for (Size lane = 0; lane < kLanes; ++lane) v[lane] = value;
}

MERCER_INLINE void load(const double* from, Doubles& to) {
  to = *reinterpret_cast<const LooseDoubles*>(from);
}

MERCER_INLINE void load(const float* from, Doubles& to) {
  to = __builtin_convertvector(*reinterpret_cast<const LooseFloats*>(from), Doubles);
}

// Rows of K are not padded: the last entries go through a buffer.
template <class Entry>
MERCER_INLINE const Entry* tail(const Entry* row, Size at, Size n, Entry* buffer) {
  for (Size k = 0; k < kStep; ++k) buffer[k] = at + k < n ? row[at + k] : Entry{0};
  return buffer;
}

// --- pass one -------------------------------------------------------------------------------

struct GainLanes {
  Doubles lowest[kChains], gain[kChains], curvature[kChains];
  Indices index[kChains];
};

// Gains are compared as gain_1 curvature_2 > gain_2 curvature_1: a division costs more than all
// the rest.
template <class Entry>
MERCER_INLINE void gain_step(const State& s, Size at, const Entry* ki, const Doubles& high,
                             const Doubles& kii, const Doubles& least, GainLanes& lanes) {
  const Doubles zero = {};
  for (Size c = 0; c < kChains; ++c) {
    Doubles f, fall, diag, k;
    load(s.f + at + c * kLanes, f);
    load(s.fall + at + c * kLanes, fall);
    load(s.diag + at + c * kLanes, diag);
    load(ki + c * kLanes, k);
    const Doubles low = f + fall;
    lanes.lowest[c] = low < lanes.lowest[c] ? low : lanes.lowest[c];
    Doubles d = high - low;
    d = d > zero ? d : zero;
    Doubles curvature = (kii + diag) - (k + k);
    curvature = curvature > least ? curvature : least;
    const Doubles gain = d * d;
    const Indices better = gain * lanes.curvature[c] > lanes.gain[c] * curvature;
    lanes.gain[c] = better ? gain : lanes.gain[c];
    lanes.curvature[c] = better ? curvature : lanes.curvature[c];
    lanes.index[c] = better ? lanes.index[c] * 0 + static_cast<long long>(at) : lanes.index[c];
  }
}

MERCER_INLINE Partner best_gain(const GainLanes& lanes) {
  Partner out{-1, kInfinity};
  double gain = 0.0, curvature = 1.0;
  for (Size c = 0; c < kChains; ++c) {
    for (Size lane = 0; lane < kLanes; ++lane) {
      out.lowest = std::min(out.lowest, lanes.lowest[c][lane]);
      const double mine = lanes.gain[c][lane] * curvature, best = gain * lanes.curvature[c][lane];
      const Size index = static_cast<Size>(lanes.index[c][lane]) + c * kLanes + lane;
      if (mine > best || (mine == best && index < out.index)) {
        gain = lanes.gain[c][lane];
        curvature = lanes.curvature[c][lane];
        out.index = index;
      }
    }
  }
  return out;
}

template <class Entry>
MERCER_INLINE Partner find_partner_body(const State& s, const Entry* ki, double high, double kii) {
  GainLanes lanes;
  Doubles high_v, kii_v, least;
  fill(high_v, high);
  fill(kii_v, kii);
  fill(least, kLeastCurvature<Entry>);
  for (Size c = 0; c < kChains; ++c) {
    fill(lanes.lowest[c], kInfinity);
    fill(lanes.gain[c], 0.0);
    fill(lanes.curvature[c], 1.0);
    fill(lanes.index[c], 0LL);
  }
  Size at = 0;
  for (; at + kStep <= s.n; at += kStep)
    gain_step(s, at, ki + at, high_v, kii_v, least, lanes);
  if (at < s.n) {
    Entry buffer[kStep];
    gain_step(s, at, tail(ki, at, s.n, buffer), high_v, kii_v, least, lanes);
  }
  return best_gain(lanes);
}

// --- pass two -------------------------------------------------------------------------------

struct HighLanes {
  Doubles value[kChains], poison[kChains];  // poison: 0, or NaN once an F is not finite
  Indices index[kChains];
};

template <bool update, class Entry>
MERCER_INLINE void high_step(const State& s, Size at, const Entry* ki, const Entry* kj,
                             const Doubles& step, HighLanes& lanes) {
  for (Size c = 0; c < kChains; ++c) {
    Doubles f, rise;
    load(s.f + at + c * kLanes, f);
    load(s.rise + at + c * kLanes, rise);
    if constexpr (update) {
      Doubles a, b;
      load(ki + c * kLanes, a);
      load(kj + c * kLanes, b);
      f -= step * (a - b);
      *reinterpret_cast<LooseDoubles*>(s.f + at + c * kLanes) = f;
    }
    lanes.poison[c] += f * 0.0;
    const Doubles value = f + rise;
    const Indices better = value > lanes.value[c];
    lanes.value[c] = better ? value : lanes.value[c];
    lanes.index[c] = better ? lanes.index[c] * 0 + static_cast<long long>(at) : lanes.index[c];
  }
}

MERCER_INLINE Highest best_high(const HighLanes& lanes) {
  Highest out{-1, -kInfinity};
  double poison = 0.0;
  for (Size c = 0; c < kChains; ++c) {
    for (Size lane = 0; lane < kLanes; ++lane) {
      poison += lanes.poison[c][lane];
      const double value = lanes.value[c][lane];
      const Size index = static_cast<Size>(lanes.index[c][lane]) + c * kLanes + lane;
      if (value > out.value || (value == out.value && index < out.index)) out = {index, value};
    }
  }
  if (poison != 0.0) out.value = kNaN;  // true for NaN
  return out;
}

template <bool update, class Entry>
MERCER_INLINE Highest next_highest_body(const State& s, const Entry* ki, const Entry* kj,
                                        double step) {
  HighLanes lanes;
  Doubles step_v;
  fill(step_v, step);
  for (Size c = 0; c < kChains; ++c) {
    fill(lanes.value[c], -kInfinity);
    fill(lanes.poison[c], 0.0);
    fill(lanes.index[c], 0LL);
  }
  Size at = 0;
  for (; at + kStep <= s.n; at += kStep)
    high_step<update>(s, at, ki + at, kj + at, step_v, lanes);
  if (at < s.n) {
    Entry first[kStep] = {}, second[kStep] = {};
    if constexpr (update) {
      tail(ki, at, s.n, first);
      tail(kj, at, s.n, second);
    }
    high_step<update>(s, at, first, second, step_v, lanes);
  }
  return best_high(lanes);
}

// --- the passes for each processor ------------------------------------------------------------

template <class Entry>
struct Passes {
  Partner (*find_partner)(const State&, const Entry* ki, double high, double kii);
  Highest (*next_highest)(const State&, const Entry* ki, const Entry* kj, double step);
};

#define MERCER_PASSES(name, target)                                                          \
  template <class Entry>                                                                     \
  target Partner find_partner_##name(const State& s, const Entry* ki, double high,           \
                                     double kii) {                                           \
    return find_partner_body(s, ki, high, kii);                                              \
  }                                                                                          \
  template <class Entry>                                                                     \
  target Highest next_highest_##name(const State& s, const Entry* ki, const Entry* kj,       \
                                     double step) {                                          \
    return next_highest_body<true>(s, ki, kj, step);                                         \
  }

MERCER_PASSES(plain, )
#ifdef MERCER_X86
MERCER_PASSES(256, MERCER_TARGET_256)
MERCER_PASSES(512, MERCER_TARGET_512)
#endif
#undef MERCER_PASSES

template <class Entry>
Passes<Entry> passes() {
#ifdef MERCER_X86
  if (level() == Level::widest) return {find_partner_512<Entry>, next_highest_512<Entry>};
  if (level() == Level::wide) return {find_partner_256<Entry>, next_highest_256<Entry>};
#endif
  return {find_partner_plain<Entry>, next_highest_plain<Entry>};
}

// --- the solver -------------------------------------------------------------------------------

// Distance between the arrays of the state: entries of two arrays with the same index must not
// agree in the low 12 bits of their addresses, or each load waits for an unrelated store.
constexpr Size spacing(Size n) { return round_up(n, 512) + 128; }

template <class Entry>
class Solver {
 public:
  Solver(const BoxProblem<Entry>& problem, double* b)
      : p_(problem), b_(b), memory_(4 * spacing(problem.n)) {
    const Size padded = spacing(p_.n);
    double* data = memory_.data();
    s_ = {p_.n, data, data + padded, data + 2 * padded, data + 3 * padded};
    std::fill_n(s_.f, padded, 0.0);
    std::fill_n(s_.rise, padded, -kInfinity);
    std::fill_n(s_.fall, padded, kInfinity);
    std::fill_n(s_.diag, padded, 0.0);
    for (Size t = 0; t < p_.n; ++t) {
      s_.diag[t] = static_cast<double>(row(t)[t]);
      offer(t);
    }
  }

  void run(double tol, std::int64_t max_iter, int threads, Poll& poll, SmoResult& sofar) {
    const Passes<Entry> pass = passes<Entry>();
    form_gradient(threads, poll);
    if (poll.stopped()) return;  // F is half made: nothing is known
    Highest high = next_highest_body<false>(s_, row(0), row(0), 0.0);
    for (std::int64_t iteration = 0;; ++iteration) {
      sofar = {iteration, high.value};
      if (high.index < 0 || std::isnan(high.value)) return;
      const Size i = high.index;
      const Partner partner = pass.find_partner(s_, row(i), high.value, s_.diag[i]);
      sofar.violation = high.value - partner.lowest;
      if (iteration % 64 == 0) poll.check();
      if (!(sofar.violation > tol) || iteration >= max_iter || poll.stopped()) return;
      if (partner.index < 0) {  // only a K that is not finite leads here
        sofar.violation = kNaN;
        return;
      }
      const double step = move(i, partner.index);
      high = pass.next_highest(s_, row(i), row(partner.index), step);
    }
  }

 private:
  const Entry* row(Size i) const { return p_.k + i * p_.ld; }

  void offer(Size t) {
    s_.rise[t] = b_[t] < p_.upper[t] ? 0.0 : -kInfinity;
    s_.fall[t] = b_[t] > p_.lower[t] ? 0.0 : kInfinity;
  }

  void form_gradient(int threads, Poll& poll) {
    parallel_for(
        round_up(p_.n, kGradientColumns) / kGradientColumns,
        [&](Size task, int) {
          const Size begin = task * kGradientColumns;
          const Size count = std::min(kGradientColumns, p_.n - begin);
          double* __restrict f = s_.f + begin;
          std::copy_n(p_.linear + begin, count, f);
          for (Size i = 0; i < p_.n && !poll.stopped(); ++i) {
            if (b_[i] == 0.0) continue;
            const double weight = b_[i];
            const Entry* __restrict k = row(i) + begin;
            for (Size t = 0; t < count; ++t) f[t] -= weight * static_cast<double>(k[t]);
          }
        },
        threads, poll);
  }

  // The step along e_i - e_j inside the box. A bound that is reached is assigned, not computed.
  double move(Size i, Size j) {
    const double kij = static_cast<double>(row(i)[j]);
    const double curvature =
        std::max(s_.diag[i] + s_.diag[j] - 2.0 * kij, kLeastCurvature<Entry>);
    const double up = p_.upper[i] - b_[i], down = b_[j] - p_.lower[j];
    const double step = std::min((s_.f[i] - s_.f[j]) / curvature, std::min(up, down));
    b_[i] = step == up ? p_.upper[i] : b_[i] + step;
    b_[j] = step == down ? p_.lower[j] : b_[j] - step;
    offer(i);
    offer(j);
    return step;
  }

  const BoxProblem<Entry>& p_;
  double* b_;
  Buffer memory_;
  State s_;
};

}  // namespace

template <class Entry>
void smo(const BoxProblem<Entry>& problem, double* b, double tol, std::int64_t max_iter,
         int threads, Poll& poll, SmoResult& sofar) {
  Solver<Entry>(problem, b).run(tol, max_iter, threads, poll, sofar);
}

template void smo(const BoxProblem<float>&, double*, double, std::int64_t, int, Poll&, SmoResult&);
template void smo(const BoxProblem<double>&, double*, double, std::int64_t, int, Poll&, SmoResult&);

}  // namespace mercer::algebra
