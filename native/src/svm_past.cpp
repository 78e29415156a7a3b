// Conjugate pair steps: the state of a few directions on the variables that they move.
#include "mercer/svm_past.hpp"

#include <algorithm>
#include <cmath>

namespace mercer::svm {

// The number of a variable among those that are moved, which may be new.
template <class Entry>
int Past<Entry>::place_of(Size t, double b, bool rises) {
  int found = -1;
  for (int u = 0; u < used_; ++u) found = variable_[u] == t ? u : found;
  if (found >= 0) return found;
  variable_[used_] = static_cast<std::int32_t>(t);
  value_[used_] = b;
  low_[used_] = level_.lower[t], high_[used_] = level_.upper[t];
  if (level_.kink[t] > 0.0) {
    const bool above = rises ? b >= 0.0 : b > 0.0;
    double& end = above ? low_[used_] : high_[used_];
    end = above ? std::max(end, 0.0) : std::min(end, 0.0);
  }
  for (auto& direction : past_) direction[used_] = 0.0;
  return used_++;
}

// p = e_i - e_j + sum gamma_k p_k
template <class Entry>
void Past<Entry>::direct(const Pair& pair, const double* b) {
  i_ = pair.i, j_ = pair.j;
  const int i = place_of(i_, b[i_], true), j = place_of(j_, b[j_], false);
  std::fill_n(p_, used_, 0.0);
  for (int k = 0; k < count_; ++k)
    for (int u = 0; u < used_; ++u) p_[u] += gamma_[k] * past_[k][u];
  p_[i] += 1.0;
  p_[j] -= 1.0;
}

// Tells whether all variables stay inside the box, and where they would go.
template <class Entry>
bool Past<Entry>::stays(double step) {
  bool inside = true;
  for (int u = 0; u < used_; ++u) {
    next_[u] = value_[u] + step * p_[u];
    inside &= (next_[u] > low_[u]) & (next_[u] < high_[u]);
  }
  return inside;
}

// The longest step up to `step` in the box, where it ends at a bound.
template <class Entry>
double Past<Entry>::shorten(double step) {
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
void Past<Entry>::go(double* b) {
  for (int u = 0; u < used_; ++u) b[variable_[u]] = value_[u] = next_[u];
  if (worth_) {  // the others were free, and are
    level_.refresh(i_, b[i_]);
    level_.refresh(j_, b[j_]);
    return;
  }
  for (int u = 0; u < used_; ++u) level_.refresh(variable_[u], next_[u]);
}

template <class Entry>
bool Past<Entry>::bend(const Pair& pair, double* b, double& gain) {
  if (steps_ >= kLongest) forget();
  if (count_ == 0) return false;
  curve_ = pair.curvature;
  for (int k = 0; k < count_; ++k) {
    const Entry* q = level_.past[k];
    gamma_[k] = -(static_cast<double>(q[pair.i]) - static_cast<double>(q[pair.j])) / curvature_[k];
    curve_ -= gamma_[k] * gamma_[k] * curvature_[k];
  }
  if (!(curve_ > kLeastCurvature * pair.curvature)) return false;
  direct(pair, b);
  step_ = pair.difference / curve_;
  worth_ = stays(step_);
  if (!worth_) step_ = shorten(step_);
  const double gained = step_ * (pair.difference - 0.5 * step_ * curve_);
  if (!(gained > gain) || !std::isfinite(step_)) return false;
  gain = gained;
  go(b);
  return true;
}

template <class Entry>
void Past<Entry>::begin(const Pair& pair, const double* b) {
  direct(pair, b);
  curve_ = pair.curvature;
  worth_ = true;
}

template <class Entry>
Along<Entry> Past<Entry>::along() const {
  Along<Entry> out{};
  out.count = count_;
  for (int k = 0; k < count_; ++k) {
    out.past[k] = level_.past[k];
    out.factor[k] = static_cast<Entry>(gamma_[k]);
  }
  if (count_ > 0 || worth_) out.to = level_.past[at_];
  return out;
}

template <class Entry>
void Past<Entry>::keep() {
  if (!worth_) {
    forget();
    return;
  }
  Entry* q = level_.past[at_];
  q[i_] += static_cast<Entry>(level_.shift[i_]);
  q[j_] -= static_cast<Entry>(level_.shift[j_]);
  curvature_[at_] = curve_;
  std::copy_n(p_, used_, past_[at_]);
  at_ = (at_ + 1) % kPast;
  count_ = std::min(count_ + 1, kPast);
  ++steps_;
}

template class Past<float>;
template class Past<double>;

}  // namespace mercer::svm
