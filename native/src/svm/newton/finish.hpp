// When a descent looks for the solution by Newton's steps.
#pragma once

#include <cstdint>
#include <limits>

#include "svm/passes.hpp"

namespace mercer::svm {

template <class Entry>
struct DescentState;
struct Worker;

// These cost as much as thousands of pair steps, and may lead nowhere from far away: they are tried
// once pair steps have cost more, since a descent that took long is likely to take as long again.
// Costs are counted, not measured, so that answers repeat.
class Finish {
 public:
  // A programme, or the next one of a chain.
  void begin(double tol) { tol_ = tol, spent_ = 0.0, in_vain_ = 0.0, below_ = next_; }
  void note(std::int64_t steps, Size columns, Size entry_bytes);
  // True when the level is at its solution, as far as its own variables can tell.
  template <class Entry>
  bool attempt(DescentState<Entry>& level, double gap, const Worker& worker);

 private:
  template <class Entry>
  bool jump(DescentState<Entry>& level, double gap, const Worker& worker);
  template <class Entry>
  bool walk(DescentState<Entry>& level, const Worker& worker);

  double tol_ = 0.0;
  double spent_ = 0.0;                                      // since the last jump
  double in_vain_ = 0.0;                                    // since the last walk
  double below_ = std::numeric_limits<double>::infinity();  // gaps that are small enough for a jump
  double next_ = below_;                                    // the same in the next programme
};

}  // namespace mercer::svm
