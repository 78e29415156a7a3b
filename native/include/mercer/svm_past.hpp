// Directions a descent has gone lately, and pair steps bent so as not to spoil what those gained.
//
// A pair step minimises along one pair, and the next one undoes part of it: where the box lets most
// variables move freely, descents zigzag. Here the direction d = e_i - e_j of a pair is made
// conjugate to the last few directions p_k, p = d + sum gamma_k p_k with p' K p_k = 0. F stays
// orthogonal to the p_k, so that the slope along p is that of the pair, while the curvature
// p' K p = d' K d - sum gamma_k^2 p_k' K p_k is smaller: a longer step, and several times fewer of
// them at large C. What is remembered of p_k is K p_k, on all variables, and p_k on the few that it
// moves. It ends where a variable reaches a bound, and after some steps, so that these stay few.
#pragma once

#include <cstdint>

#include "mercer/svm_level.hpp"

namespace mercer::svm {

// A pair that improves: b_i may rise up to `ceiling`, b_j fall down to `floor`.
struct Pair {
  Size i, j;
  double difference;  // slope of the objective along the pair
  double curvature;
  double ceiling, floor;
};

template <class Entry>
class Past {
 public:
  explicit Past(Level<Entry>& level) : level_(level) {}

  // Makes a step along the bent direction of a pair: moves b, and says what it gained. False, and
  // nothing is moved, where there is no such direction or `gain` is more than it would bring.
  bool bend(const Pair& pair, double* b, double& gain);
  // After `forget`: begins with the step along a pair that was made instead, b being moved.
  void begin(const Pair& pair, const double* b);
  void forget() { count_ = used_ = steps_ = at_ = 0, worth_ = false; }

  double step() const { return step_; }
  // What `advance` is to do for the step; then `keep` remembers it.
  Along<Entry> along() const;
  void keep();

 private:
  static constexpr int kLongest = 32;         // steps until it begins anew
  static constexpr int kMost = 2 * kLongest;  // variables that these can move
  static constexpr double kLeastCurvature = 1e-4;  // of that of the pair: what rounding leaves

  int place_of(Size t, double b, bool rises);
  void direct(const Pair& pair, const double* b);
  bool stays(double step);
  double shorten(double step);
  void go(double* b);

  Level<Entry>& level_;
  int count_ = 0, used_ = 0, steps_ = 0;  // directions, variables that they move, steps made
  int at_ = 0;                            // where the next direction goes
  bool worth_ = false;                    // the last step is to be remembered
  Size i_ = 0, j_ = 0;
  double step_ = 0.0, curve_ = 0.0;
  double gamma_[kPast], curvature_[kPast];
  std::int32_t variable_[kMost];
  double value_[kMost], next_[kMost];  // b, before and after the step
  double low_[kMost], high_[kMost];    // the piece of the box that a variable is in
  double p_[kMost], past_[kPast][kMost];
};

}  // namespace mercer::svm
