// Conjugate pair steps: the state of a few directions on the variables that they move.
#include "svm/descent/conjugate_directions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/dispatch.hpp"

namespace mercer::svm {

template <class Entry>
ConjugateDirections<Entry>::ConjugateDirections(DescentState<Entry>& level)
    : level_(level),
      pass_(table<Passes<Entry>>()),
      value_(held_[0]),
      next_(held_[1]),
      low_(held_[2]),
      high_(held_[3]),
      gone_(held_[4]),
      p_(held_[5]) {
  for (int k = 0; k < kPast; ++k) past_[k] = held_[6 + k];
}

template <class Entry>
void ConjugateDirections<Entry>::forget() {
  for (int u = 0; u < used_; ++u) {
    level_.b[variable_[u]] = value_[u];
    level_.place[variable_[u]] = -1;
  }
  count_ = at_ = used_ = steps_ = leaps_ = 0;
  gained_ = noise_ = 0.0;
  lasting_ = worth_ = false;
}

// The number of a variable among those that are moved, which may be new.
template <class Entry>
int ConjugateDirections<Entry>::place_of(Size t, bool rises) {
  if (level_.place[t] >= 0) return level_.place[t];
  const int u = used_++;
  level_.place[t] = static_cast<std::int16_t>(u);
  variable_[u] = static_cast<std::int32_t>(t);
  value_[u] = level_.b[t];
  gone_[u] = 0.0;
  low_[u] = level_.lower[t], high_[u] = level_.upper[t];
  if (level_.kink[t] > 0.0) {
    const bool above = rises ? value_[u] >= 0.0 : value_[u] > 0.0;
    double& end = above ? low_[u] : high_[u];
    end = above ? std::max(end, 0.0) : std::min(end, 0.0);
  }
  for (double* direction : past_) direction[u] = 0.0;
  return u;
}

// p = e_i - e_j + sum gamma_k p_k; gives p' p.
template <class Entry>
double ConjugateDirections<Entry>::direct(const Pair& pair) {
  i_ = pair.i, j_ = pair.j;
  const int i = place_of(i_, true), j = place_of(j_, false);
  const double* past[kPast];
  for (int k = 0; k < number(); ++k) past[k] = past_[slot(k)];
  const double squares = pass_.combine(past, gamma_, number(), used_, p_);
  const double added = 2.0 * (p_[i] - p_[j] + 1.0);
  p_[i] += 1.0;
  p_[j] -= 1.0;
  return squares + added;
}

// The longest step up to `step` in the box, where it ends at a bound.
template <class Entry>
double ConjugateDirections<Entry>::shorten(double step) {
  const auto reach = [&](int u) {
    return p_[u] == 0.0 ? kNever : ((p_[u] > 0.0 ? high_[u] : low_[u]) - value_[u]) / p_[u];
  };
  for (int u = 0; u < used_; ++u) step = std::min(step, reach(u));
  for (int u = 0; u < used_; ++u) {
    const double end = p_[u] > 0.0 ? high_[u] : low_[u];
    next_[u] = reach(u) <= step ? end : std::clamp(value_[u] + step * p_[u], low_[u], high_[u]);
  }
  return step;
}

template <class Entry>
void ConjugateDirections<Entry>::go() {
  std::swap(value_, next_);
  pass_.add(gone_, step_, p_, used_);  // not differences of b: rounded, these have a sum of their own
  if (worth_) {  // the others were free, and are
    level_.refresh(i_, value(i_));
    level_.refresh(j_, value(j_));
    return;
  }
  for (int u = 0; u < used_; ++u) level_.refresh(variable_[u], value_[u]);
}

// Tells whether F is still orthogonal to the earlier directions, as far as p has of them. It is not
// where rounding has spoilt what is remembered, or where K is positive semidefinite but for
// rounding: then a descent would not descend.
template <class Entry>
bool ConjugateDirections<Entry>::agrees(double difference) {
  double slope = 0.0;
  for (int u = 0; u < used_; ++u) {
    const Size t = variable_[u];
    const Entry side = t == j_ ? level_.low[t] : level_.up[t];
    slope += p_[u] * (static_cast<double>(level_.f[t]) + static_cast<double>(side));
  }
  if (std::abs(slope - difference) <= kDoubt * difference) return true;
  rest_ = kRest;
  return false;
}

template <class Entry>
bool ConjugateDirections<Entry>::bend(const Pair& pair, double& gain) {
  if (number() == 0 || is_noise(pair.difference)) return false;
  curve_ = pair.curvature;
  for (int k = 0; k < number(); ++k) {
    const Entry* q = level_.past[slot(k)];
    const double curvature = curvature_[slot(k)];
    gamma_[k] = -(static_cast<double>(q[pair.i]) - static_cast<double>(q[pair.j])) / curvature;
    curve_ -= gamma_[k] * gamma_[k] * curvature;
  }
  if (!(curve_ > kLeastCurvature * pair.curvature)) return false;
  // a curvature that rounding of K could make up might as well be negative
  const double length = direct(pair);
  if (!(curve_ > kSteep * kRounding * pair.size * length)) return false;
  if (steps_ % kLooks == kLooks - 1 && !agrees(pair.difference)) return false;
  step_ = pair.difference / curve_;
  worth_ = pass_.stays(value_, p_, step_, low_, high_, used_, next_);
  if (!worth_) step_ = shorten(step_);
  const double gained = step_ * (pair.difference - 0.5 * step_ * curve_);
  if (!(gained > gain) || !std::isfinite(step_)) return false;
  gain = gained;
  gained_ += gained;
  size_ = pair.size;
  const double rounded = kRounding * step_ * pair.size;
  noise_ += rounded * rounded * length;
  all_noise_ += rounded * rounded * length;
  go();
  return true;
}

template <class Entry>
void ConjugateDirections<Entry>::begin(const Pair& pair) {
  if (rest_ > 0) {
    --rest_;
    return;
  }
  direct(pair);
  curve_ = pair.curvature;
  worth_ = true;
}

template <class Entry>
Along<Entry> ConjugateDirections<Entry>::along() const {
  Along<Entry> out{};
  out.count = number();
  for (int k = 0; k < out.count; ++k) {
    out.past[k] = level_.past[slot(k)];
    out.factor[k] = static_cast<Entry>(gamma_[k]);
  }
  if (out.count > 0 || worth_) out.to = level_.past[at_];
  if (marks()) out.mark = level_.mark;
  return out;
}

template <class Entry>
void ConjugateDirections<Entry>::keep() {
  if (!worth_) {
    forget();
    return;
  }
  if (marks()) {  // what the shift does to F was done before the sweep
    level_.mark[i_] += static_cast<Entry>(step_ * level_.shift[i_]);
    level_.mark[j_] -= static_cast<Entry>(step_ * level_.shift[j_]);
  }
  Entry* q = level_.past[at_];
  q[i_] += static_cast<Entry>(level_.shift[i_]);
  q[j_] -= static_cast<Entry>(level_.shift[j_]);
  curvature_[at_] = curve_;
  std::swap(p_, past_[at_]);
  at_ = (at_ + 1) % kRecent;
  count_ = std::min(count_ + 1, kRecent);
  ++steps_;
}

template <class Entry>
double ConjugateDirections<Entry>::leap() {
  if (steps_ < kChain) return 0.0;
  double slope = 0.0, curvature = 0.0, length = 0.0;
  for (int u = 0; u < used_; ++u) {
    const Size t = variable_[u];
    const double f = static_cast<double>(level_.f[t]);
    length += gone_[u] * gone_[u];
    slope += gone_[u] * (f + static_cast<double>(level_.up[t]));
    curvature += gone_[u] * (static_cast<double>(level_.mark[t]) - f);
  }
  const double step = slope / curvature;
  // less than rounding could make of F, or more than the whole chain gained, is noise
  const bool likely = curvature * curvature > kSeen * kSeen * noise_ * length &&
                      curvature > kSteep * kRounding * size_ * length &&
                      0.5 * step * slope < gained_ && std::isfinite(step) && step != 0.0;
  const bool room = used_ + kAdded <= kMost && ++leaps_ <= kLeaps;
  if (!room || !likely || !pass_.stays(value_, gone_, step, low_, high_, used_, next_)) {
    forget();
    return 0.0;
  }
  std::swap(value_, next_);
  std::swap(gone_, past_[kRecent]);
  std::fill_n(gone_, used_, 0.0);
  curvature_[kRecent] = curvature;
  for (int k = 0; k < kRecent; ++k) std::fill_n(past_[k], used_, 0.0);
  lasting_ = true;
  count_ = at_ = steps_ = 0;
  gained_ = noise_ = 0.0;
  return step;
}

template class ConjugateDirections<float>;
template class ConjugateDirections<double>;

}  // namespace mercer::svm
