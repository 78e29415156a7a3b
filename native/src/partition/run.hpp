// The way of one start, whatever holds the points: an engine proposes, applies and sweeps.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "partition/partition.hpp"

namespace mercer::partition {

constexpr double kFew = 0.02;     // changes of labels, of all points, from which single moves begin
constexpr double kGain = 1e-6;    // a move must lower its part of the objective by more than this

// Weights and sizes of clusters.
struct Sizes {
  std::vector<double> weight;
  std::vector<Size> members;

  void count(const Task& task, const Label* labels) {
    weight.assign(task.count, 0.0);
    members.assign(task.count, 0);
    for (Size i = 0; i < task.n; ++i) {
      weight[labels[i]] += task.weight[i];
      ++members[labels[i]];
    }
  }

  void move(Label from, Label to, double w) {
    weight[from] -= w;
    weight[to] += w;
    --members[from];
    ++members[to];
  }
};

// Gives every empty cluster of `next` the point that is farthest from its mean, by weight, among
// clusters that keep another one. `distance` fills an array with w_i d_i, and is asked only if
// there is an empty cluster.
template <class Distances>
void repair(const Task& task, std::vector<Label>& next, std::vector<Size>& members,
            Distances&& distances) {
  std::vector<double> far;
  for (Size c = 0; c < task.count; ++c) {
    if (members[c] > 0) continue;
    if (far.empty()) {
      far.resize(task.n);
      distances(far.data());
    }
    Size best = -1;
    for (Size i = 0; i < task.n; ++i)
      if (members[next[i]] > 1 && (best < 0 || far[i] > far[best])) best = i;
    if (best < 0) return;  // fewer points than clusters: refused before
    --members[next[best]];
    members[c] = 1;
    next[best] = static_cast<Label>(c);
    far[best] = -1.0;  // its distance is zero now
  }
}

// Engine: begin() makes all sums from the labels; propose() gives the number of labels that a step
// would change; apply() and undo() make and take back that step, drop() forgets it; sweep() moves single points and
// gives their number; value() is the objective.
template <class Engine>
class Run {
 public:
  Run(Engine& engine, const Task& task, Answer& answer, const Place& place, Board& board)
      : engine_(engine), task_(task), answer_(answer), place_(place), board_(board) {}

  void operator()() {
    engine_.begin();
    if (place_.stopped() || !note(engine_.value(), true)) return;
    if (lloyd() && task_.refine) moves();
  }

 private:
  // Returns whether single moves should follow.
  bool lloyd() {
    while (left()) {
      const Size changes = engine_.propose();
      if (place_.stopped()) return false;
      if (changes == 0) return settle();
      if (task_.refine && static_cast<double>(changes) <= kFew * static_cast<double>(task_.n)) {
        engine_.drop();
        return true;
      }
      engine_.apply();
      if (place_.stopped()) return false;
      if (!note(engine_.value(), false)) {  // rounding is all that is left
        engine_.undo();
        return settle();
      }
    }
    return false;
  }

  void moves() {
    answer_.settled = false;
    while (left()) {
      const Size moved = engine_.sweep();
      if (place_.stopped()) return;
      if (moved == 0 || !note(engine_.value(), false)) {
        settle();
        return;
      }
    }
  }

  bool left() const {
    return static_cast<Size>(answer_.steps.size()) <= task_.max_iter && !place_.stopped();
  }

  bool settle() {
    answer_.settled = true;
    return true;
  }

  // Writes an objective down; false if it is no lower than the last.
  bool note(double objective, bool first) {
    if (!first && !(objective < answer_.steps.back().objective)) return false;
    answer_.steps.push_back({objective, board_.seconds()});
    board_.note(objective);
    return true;
  }

  Engine& engine_;
  const Task& task_;
  Answer& answer_;
  const Place& place_;
  Board& board_;
};

// Each start on one thread when there are several, else one on all threads.
template <class Start>
void share(Size starts, int threads, Poll& poll, Start&& start) {
  if (starts < 2 || threads < 2) {
    for (Size s = 0; s < starts && !poll.stopped(); ++s) start(s, Place{threads, true, &poll});
    return;
  }
  parallel_for(
      starts, [&](Size s, int worker) { start(s, Place{1, worker == 0, &poll}); }, threads, poll);
}

}  // namespace mercer::partition
