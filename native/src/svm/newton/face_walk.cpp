// From face to face inside the box, one bound at a time.
#include <algorithm>
#include <cmath>

#include "svm/newton/face.hpp"

namespace mercer::svm {
namespace {

constexpr Size kTogether = 16;   // variables that join at once
constexpr double kStrong = 0.5;  // of the strongest pull: what joins with it
constexpr double kWeak = 0.25;   // of the tolerance: what need not join
constexpr int kIdle = 3;         // rounds that change nothing but rounding
constexpr double kRounding = 1e-12;

}  // namespace

template <class Entry, class Real>
bool Face<Entry, Real>::walk(Size rounds) {
  if (!factor()) return false;
  bool found = false, sound = true;
  int idle = 0;
  for (Size round = 0; round < rounds && sound && !found && idle < kIdle; ++round) {
    worker_.tick(0, gap());
    if (worker_.stopped() || !solve()) break;
    if (refuse()) {
      sound = renew();
      continue;
    }
    const double step = part();
    level_.each([&](Size t) { d_[t] *= step; });
    if (!move()) return false;
    if (step < 1.0) {
      stop();
    } else {
      found = gap() <= tol_;
      idle = found || join_some() ? 0 : idle + 1;
    }
    sound = renew();
  }
  keep();
  return found;
}

// Variables at a bound that would leave the box do not take part.
template <class Entry, class Real>
bool Face<Entry, Real>::refuse() {
  bool any = false;
  level_.each([&](Size t) {
    const bool out = is_free(t) && d_[t] != 0.0 && b_[t] == end(t);
    if (!out) return;
    leave(t);
    any = true;
  });
  return any;
}

// Of the way d, as far as the box allows.
template <class Entry, class Real>
double Face<Entry, Real>::part() const {
  double most = 1.0;
  level_.each([&](Size t) {
    if (is_free(t) && d_[t] != 0.0) most = std::min(most, (end(t) - b_[t]) / d_[t]);
  });
  return most;
}

// What arrived at a bound leaves the face there.
template <class Entry, class Real>
void Face<Entry, Real>::stop() {
  std::fill(missing_.begin(), missing_.end(), 0.0);
  level_.each([&](Size t) {
    if (!is_free(t) || d_[t] == 0.0) return;
    const double left = end(t) - b_[t];
    const bool there = d_[t] > 0.0 ? left <= kRounding * d_[t] : left >= kRounding * d_[t];
    if (!there) return;
    missing_[group(t)] -= left;
    b_[t] = end(t);
    leave(t);
  });
}

// The variables with the strongest pull.
template <class Entry, class Real>
bool Face<Entry, Real>::join_some() {
  find_offsets();
  std::fill(missing_.begin(), missing_.end(), 0.0);
  double strongest = 0.0;
  level_.each([&](Size t) {
    if (!is_free(t)) strongest = std::max(strongest, pull(t));
  });
  Size joined = 0;
  level_.each([&](Size t) {
    if (is_free(t) || joined == kTogether) return;
    if (!(pull(t) > kWeak * tol_) || pull(t) < kStrong * strongest) return;
    join(t);
    ++joined;
  });
  return joined > 0;
}

template bool Face<float, float>::walk(Size);
template bool Face<float, double>::walk(Size);
template bool Face<double, double>::walk(Size);

}  // namespace mercer::svm
