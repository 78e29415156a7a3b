// One thread's part of a descent; the only thread's whole, where there is no team.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <vector>

#include "svm/descent/state.hpp"
#include "svm/descent/conjugate_directions.hpp"
#include "svm/descent/team.hpp"

namespace mercer::svm {

constexpr Size kTeamColumns = 4000;  // below, messages cost more than a second core saves

// Why a member's loop ended, beyond the ends of a descent.
struct Outcome {
  Descent descent;
  bool joined = false;  // a follower waits at the door: go on with it
  bool slow = false;    // the team is slower than one thread would be
};

template <class Entry>
class TeamMember {
 public:
  // Alone: sweeps everything. `door`: where followers may come.
  TeamMember(DescentState<Entry>& level, const Worker& worker, const Team<Entry>* door);

  // Goes on as number `id` of a team, with its own copy of b. Takes no memory: from the start of a
  // team on the others wait for messages, and nothing may fail.
  void take_part(Team<Entry>& team, int id, int members, double* b);

  Outcome run(double tol, std::int64_t limit);

 private:
  void forget_tops();
  Pick<Entry> pick_partner();
  double gap() const;
  Pair pair_of(const Pick<Entry>& pick) const;
  bool move(const Pick<Entry>& pick);
  void leap();
  void look_outside(double gap, Outcome& outcome);
  std::optional<End> verdict(const Pick<Entry>& pick, double gap, double tol, bool at_limit,
                             bool leaving);
  bool someone_waits() const { return door_ != nullptr && door_->waiting() > 0; }
  double value(Size t) const { return remembers_ ? past_.value(t) : b_[t]; }
  bool owns(Size t) const { return t >= begin_ && t < end_; }
  bool too_slow(std::int64_t steps);

  using Clock = std::chrono::steady_clock;

  DescentState<Entry>& level_;
  const Worker& worker_;
  const Passes<Entry>& pass_;
  const Team<Entry>* door_ = nullptr;
  Team<Entry>* team_ = nullptr;
  int id_ = 0;
  std::vector<Run> runs_;  // of a member of a team; has room for all
  Share<Entry> share_;
  double* b_;
  Size begin_, end_;
  std::uint64_t number_ = 0;
  std::vector<Top<Entry>> tops_;
  std::vector<Entry> lows_;
  Trail trail_;
  bool remembers_;  // only where there is never a team, so that its size changes no bit
  ConjugateDirections<Entry> past_;
  std::int64_t window_steps_;
  bool leave_ = false;
  std::int64_t told_ = 0;  // steps the outside knows of
  std::exception_ptr failure_;
  Clock::time_point window_;
  int slow_windows_ = 0;
};

}  // namespace mercer::svm
