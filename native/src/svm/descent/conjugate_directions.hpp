// Directions a descent has gone lately, and pair steps bent so as not to spoil what those gained.
//
// A pair step minimises along one pair, and the next one undoes part of it: where the box lets most
// variables move freely, descents zigzag. Here the direction d = e_i - e_j of a pair is made
// conjugate to a few earlier directions p_k, p = d + sum gamma_k p_k with p' K p_k = 0. F stays
// orthogonal to the p_k, so that the slope along p is that of the pair, while the curvature
// p' K p = d' K d - sum gamma_k^2 p_k' K p_k is smaller: a longer step, and several times fewer of
// them at large C. Two of the p_k are the last two directions. The third is where a whole chain of
// steps went: what F changed by is K times it, so it costs nothing, and it sees further. What is
// remembered of p_k is K p_k, on all variables, and p_k on those that it moves. Everything is
// forgotten where a variable reaches a bound.
#pragma once

#include <cstdint>
#include <limits>

#include "svm/descent/state.hpp"

namespace mercer::svm {

// A pair that improves: b_i may rise up to `ceiling`, b_j fall down to `floor`.
struct Pair {
  Size i, j;
  double difference;  // slope of the objective along the pair
  double curvature;
  double size;  // K_ii + K_jj
  double ceiling, floor;
};

template <class Entry>
class ConjugateDirections {
 public:
  explicit ConjugateDirections(DescentState<Entry>& level);
  ~ConjugateDirections() { forget(); }
  ConjugateDirections(const ConjugateDirections&) = delete;
  ConjugateDirections& operator=(const ConjugateDirections&) = delete;

  // b of a variable; the level learns of it in `forget`.
  double value(Size t) const { return level_.place[t] < 0 ? level_.b[t] : value_[level_.place[t]]; }

  // Makes a step along the bent direction of a pair and says what it gained. False, and nothing is
  // moved, where there is no such direction or `gain` is more than it would bring.
  bool bend(const Pair& pair, double& gain);
  // After `forget`: begins with the step along a pair that was made instead, b being moved.
  void begin(const Pair& pair);
  // After a chain of steps: goes on to the lowest point along all of it, which is remembered from
  // then on; the step, or 0 where there is none.
  double leap();
  void forget();

  double step() const { return step_; }
  // What `advance` is to do for the step; then `keep` remembers it.
  Along<Entry> along() const;
  void keep();

 private:
  static constexpr int kRecent = kPast - 1;   // and the last chain
  static constexpr int kChain = 48;           // steps of one
  static constexpr int kLeaps = 20;           // then all begins anew, and rounding with it
  static constexpr int kMost = 512;           // variables that are moved, of which chains add
  static constexpr int kAdded = 2 * kChain;
  static constexpr double kLeastCurvature = 1e-2;  // of that of the pair: less is noise
  static constexpr int kLooks = 8;                 // steps between two looks at the slope
  static constexpr double kDoubt = 0.1;            // of the slope: what it may be wrong by
  static constexpr int kRest = 1000;               // steps that nothing is remembered of, then
  // times rounding of K, of a curvature per length: flatter ways lead far, on the word of rounding
  static constexpr double kSteep = 1e4;
  static constexpr double kRounding = std::numeric_limits<Entry>::epsilon();
  static constexpr double kSeen = 10.0;            // times rounding: what is surely more

  // What rounding of F alone could have made: steps along many variables would only add to it.
  bool is_noise(double difference) const {
    return difference * difference < kSeen * kSeen * all_noise_;
  }
  int number() const { return count_ + (lasting_ ? 1 : 0); }
  bool marks() const { return count_ == 1 && steps_ == 1 && !lasting_; }  // a chain begins
  int slot(int k) const { return k < count_ ? k : kRecent; }  // of the k-th that is remembered
  int place_of(Size t, bool rises);
  double direct(const Pair& pair);
  double shorten(double step);
  bool agrees(double difference);
  void go();

  DescentState<Entry>& level_;
  const Passes<Entry>& pass_;
  int count_ = 0, at_ = 0;  // recent directions, and where the next one goes
  bool lasting_ = false;    // there is the direction of a chain
  int used_ = 0, steps_ = 0;  // variables that are moved, steps of this chain
  int leaps_ = 0;
  int rest_ = 0;
  bool worth_ = false;        // the last step is to be remembered
  Size i_ = 0, j_ = 0;
  double step_ = 0.0, curve_ = 0.0;
  double size_ = 0.0;                     // of K
  double gained_ = 0.0;                   // by the chain
  double noise_ = 0.0, all_noise_ = 0.0;  // of F by rounding, squared: of the chain, of all
  double gamma_[kPast], curvature_[kPast];
  std::int32_t variable_[kMost];
  double *value_, *next_;      // b, before and after the step
  double *low_, *high_;        // the piece of the box that a variable is in
  double* gone_;               // along the chain, since F was marked
  double *p_, *past_[kPast];   // directions
  alignas(64) double held_[6 + kPast][kMost];  // all of these; where they are changes
};

}  // namespace mercer::svm
