// From the lowest point of one face to that of another, at once.
#include <algorithm>

#include "svm/newton/face.hpp"

namespace mercer::svm {
namespace {

constexpr int kRounds = 12;
constexpr double kMany = 0.65;     // of the free variables: so many changes lead nowhere
constexpr double kFewer = 0.9;     // of the changes of the last round: more is no progress
constexpr double kJoining = 0.45;  // of the tolerance: by how much what joins violates at least

}  // namespace

template <class Entry, class Real>
bool Face<Entry, Real>::jump() {
  if (!factor()) return false;
  const double known = gap();  // what the outside is told: on the way b may be out of the box
  double most = kMany * static_cast<double>(system_.order());
  for (int round = 0; round < kRounds; ++round) {
    worker_.tick(0, known);
    if (worker_.stopped() || !solve() || !move()) return false;
    const Size changes = change();
    if (changes == 0 && gap() <= tol_) {
      keep();
      return true;
    }
    if (static_cast<double>(changes) > most) return false;
    most = kFewer * static_cast<double>(std::max<Size>(changes, 2));
    if (!move()) return false;
    settle();
    if (!renew()) return false;
  }
  return false;
}

// Who is free from now on. What leaves, gets a d back to its bound. Returns how many changed.
template <class Entry, class Real>
Size Face<Entry, Real>::change() {
  find_offsets();
  Size changes = 0;
  level_.each([&](Size t) {
    d_[t] = 0.0;
    if (is_free(t)) {
      d_[t] = std::clamp(b_[t], low_end(t), high_end(t)) - b_[t];
      if (d_[t] == 0.0) return;
      leave(t);
    } else {
      if (!(pull(t) > kJoining * tol_)) return;
      join(t);
    }
    ++changes;
  });
  return changes;
}

// What left is on its bound exactly; the others have to make up for it.
template <class Entry, class Real>
void Face<Entry, Real>::settle() {
  std::fill(missing_.begin(), missing_.end(), 0.0);
  level_.each([&](Size t) {
    if (d_[t] == 0.0) return;
    missing_[group(t)] -= d_[t];
    b_[t] = std::clamp(b_[t], low_end(t), high_end(t));
  });
}

template bool Face<float, float>::jump();
template bool Face<float, double>::jump();
template bool Face<double, double>::jump();

}  // namespace mercer::svm
