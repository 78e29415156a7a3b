// What Newton's steps would cost, against what pair steps have cost.
#include "svm/newton/finish.hpp"

#include "svm/newton/face.hpp"

namespace mercer::svm {
namespace {

// In nanoseconds, about: of a step, and of a byte that it sweeps; of a factor by the cube, of
// rounds by the square of the free variables, and by them times the columns, for each byte of an
// entry.
constexpr double kStep = 250.0, kSwept = 0.125;
constexpr double kFactored = 0.001, kSolved = 0.35, kMoved = 0.1;
constexpr double kJumps = 4.0;        // rounds of a jump
constexpr double kWalks = 1.0;        // rounds of a walk, times the free variables
constexpr double kRound = 3e4;        // of a round of few variables
constexpr double kShare = 0.7;        // of what pair steps have cost
constexpr double kFar = 3.0;          // times the tolerance: nearer, a few pair steps do
constexpr double kBelow = 0.9;        // of the tolerance: the rest is for rounding
constexpr double kMostFree = 4000.0;  // a factor of more takes longer than Ctrl-C may
constexpr double kNearer = 1.0 / 3.0, kAgain = 4.0;  // times the gap of a jump
constexpr Size kNarrow = 600;         // free variables; with fewer, float saves no time
constexpr Size kMostRounds = 6;       // of a walk, times the free variables

template <class Entry>
double round_cost(const DescentState<Entry>& level, double free) {
  const double bytes = sizeof(Entry);
  return bytes * free * (kSolved * free + kMoved * static_cast<double>(level.count));
}

}  // namespace

void Finish::note(std::int64_t steps, Size columns, Size entry_bytes) {
  const double bytes = static_cast<double>(columns * entry_bytes);
  const double cost = static_cast<double>(steps) * (kStep + kSwept * bytes);
  spent_ += cost;
  in_vain_ += cost;
}

template <class Entry>
bool Finish::attempt(DescentState<Entry>& level, double gap, const Worker& worker) {
  return gap > kFar * tol_ && (jump(level, gap, worker) || walk(level, worker));
}

template <class Entry>
bool Finish::jump(DescentState<Entry>& level, double gap, const Worker& worker) {
  if (!(gap < below_)) return false;
  const Size size = face_size(level);
  const double free = static_cast<double>(size);
  const double cost =
      sizeof(Entry) * kFactored * free * free * free + kJumps * round_cost(level, free);
  if (size == 0 || free > kMostFree || !(cost < kShare * spent_)) return false;
  const double tol = kBelow * tol_;
  const bool found = size < kNarrow ? Face<Entry, double>(level, tol, worker).jump()
                                    : Face<Entry, Entry>(level, tol, worker).jump();
  below_ = kNearer * gap;
  next_ = (found ? kAgain : kNearer) * gap;
  spent_ = 0.0;
  return found;
}

template <class Entry>
bool Finish::walk(DescentState<Entry>& level, const Worker& worker) {
  const Size size = face_size(level);
  const double free = static_cast<double>(size);
  const double cost = kWalks * free * (kRound + round_cost(level, free));
  if (size == 0 || free > kMostFree || !(cost < kShare * in_vain_)) return false;
  in_vain_ = 0.0;
  return Face<Entry, double>(level, kBelow * tol_, worker).walk(kMostRounds * size);
}

template bool Finish::attempt(DescentState<float>&, double, const Worker&);
template bool Finish::attempt(DescentState<double>&, double, const Worker&);

}  // namespace mercer::svm
