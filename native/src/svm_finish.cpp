// What Newton's steps would cost, against what pair steps have cost.
#include "mercer/svm_finish.hpp"

#include "mercer/svm_face.hpp"

namespace mercer::svm {
namespace {

// In nanoseconds, about: of a step, and of a byte that it sweeps; then, for each byte of an entry, of
// Newton's steps by the cube of the free variables, by their square, and by them times the columns.
constexpr double kStep = 250.0, kSwept = 0.125;
constexpr double kFactored = 0.001, kSolved = 1.5, kMoved = 0.375;
constexpr double kShare = 0.7;      // of what pair steps have cost
constexpr double kFar = 3.0;        // times the tolerance: nearer, a few pair steps do
constexpr double kBelow = 0.9;      // of the tolerance: the rest is for rounding
constexpr double kMostFree = 4000;  // a factor of more takes longer than users wait for Ctrl-C
constexpr double kNearer = 1.0 / 3.0, kAgain = 4.0;  // times the gap of an attempt

}  // namespace

void Finish::note(std::int64_t steps, Size columns, Size entry_bytes) {
  const double bytes = static_cast<double>(columns * entry_bytes);
  spent_ += static_cast<double>(steps) * (kStep + kSwept * bytes);
}

template <class Entry>
bool Finish::attempt(Level<Entry>& level, double gap, const Worker& worker) {
  if (!(gap > kFar * tol_) || !(gap < below_)) return false;
  const double free = static_cast<double>(face_size(level));
  if (free == 0.0 || free > kMostFree) return false;
  const double solving = free * free * (kFactored * free + kSolved);
  const double cost = solving + kMoved * free * static_cast<double>(level.count);
  if (!(cost * sizeof(Entry) < kShare * spent_)) return false;
  const bool found = finish_on_face(level, kBelow * tol_, worker);
  below_ = kNearer * gap;
  next_ = (found ? kAgain : kNearer) * gap;
  spent_ = 0.0;
  return found;
}

template bool Finish::attempt(Level<float>&, double, const Worker&);
template bool Finish::attempt(Level<double>&, double, const Worker&);

}  // namespace mercer::svm
