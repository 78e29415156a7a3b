// Who takes part in a descent: one thread, or a team when there are columns enough.
#include <atomic>
#include <chrono>

#include "svm/descent/team_member.hpp"

namespace mercer::svm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Size kColumnsPerThread = 2000;
constexpr Size kPatience = 50;  // sweeps to wait for more followers after the first

// After a slow team everybody works alone for a while.
std::atomic<Clock::rep> g_alone_until{0};
constexpr auto kAlone = std::chrono::seconds(1);

bool teams_wanted() {
  return Clock::now().time_since_epoch().count() >= g_alone_until.load(std::memory_order_relaxed);
}

void work_alone() {
  g_alone_until.store((Clock::now() + kAlone).time_since_epoch().count(),
                      std::memory_order_relaxed);
}

template <class Entry>
class TeamDescent {
 public:
  TeamDescent(DescentState<Entry>& level, double tol, std::int64_t limit, const Worker& worker)
      : level_(level), tol_(tol), limit_(limit), worker_(worker), team_(level.groups) {}

  Descent run() {
    const Size wanted = std::min<Size>(level_.count / kColumnsPerThread, worker_.threads);
    members_ = static_cast<int>(std::min<Size>(wanted, kMostThreads));
    parallel_for(
        members_,
        [&](std::int64_t, int id) {
          if (id == 0)
            lead();
          else
            follow();
        },
        members_, worker_.poll);
    if (!led_) lead();  // the poll had stopped already: nothing to do but to look
    return result_;
  }

 private:
  // Thread 0 begins alone and takes followers in when they come, which may be never: the pool may
  // be busy. Nobody ever waits for a thread that has not said that it is there.
  void lead() {
    if (led_.exchange(true)) return;
    try {
      alone(&team_);
      if (result_.joined) together();
    } catch (...) {
      send_home();
      throw;
    }
    send_home();
  }

  void send_home() {
    team_.close();
    if (!started_) team_.send_home();
  }

  void alone(const Team<Entry>* door) {
    add(TeamMember<Entry>(level_, worker_, door).run(tol_, limit_ - result_.steps));
  }

  void together() {
    for (Size turn = 0; turn < kPatience && team_.waiting() + 1 < members_; ++turn)
      relax(static_cast<int>(turn));
    TeamMember<Entry> first(level_, worker_, nullptr);
    const int members = team_.close() + 1;
    first.take_part(team_, 0, members, level_.b);
    started_ = true;
    team_.start(members);  // from here on nothing may fail: the others wait for messages
    const Outcome outcome = first.run(tol_, limit_ - result_.steps);
    add(outcome);
    if (!outcome.slow || outcome.descent.end != End::stopped || worker_.stopped()) return;
    work_alone();
    alone(nullptr);
  }

  // Who joins has all its memory already. Without memory a follower leaves once thread 0 has begun:
  // before, it could take the task of thread 0 next, for whom the other followers wait.
  void follow() {
    try {
      Buffer<double> b(level_.size);
      TeamMember<Entry> member(level_, worker_, nullptr);
      const int id = team_.join();
      if (id == 0 || !team_.wait_for_start()) return;
      std::copy_n(level_.b, level_.size, b.data());
      member.take_part(team_, id, team_.members(), b.data());
      member.run(tol_, limit_ - result_.steps);
    } catch (const std::bad_alloc&) {
      for (int turn = 0; !led_.load(); ++turn) relax(turn);
    }
  }

  void add(const Outcome& outcome) {
    result_.steps += outcome.descent.steps;
    result_.gap = outcome.descent.gap;
    result_.end = outcome.descent.end;
    result_.joined = outcome.joined;
  }

  struct Result : Descent {
    bool joined = false;
  };

  DescentState<Entry>& level_;
  double tol_;
  std::int64_t limit_;
  const Worker& worker_;
  Team<Entry> team_;
  int members_ = 1;
  std::atomic<bool> led_{false};
  bool started_ = false;
  Result result_{{End::limit, 0, kNever}};
};

}  // namespace

template <class Entry>
Descent descend(DescentState<Entry>& level, double tol, std::int64_t limit, const Worker& worker) {
  const bool team = worker.caller() && worker.threads > 1 && level.count > kTeamColumns &&
                    level.groups <= kMostGroups && limit > 0 && teams_wanted();
  Descent done = team ? TeamDescent<Entry>(level, tol, limit, worker).run()
                      : TeamMember<Entry>(level, worker, nullptr).run(tol, limit).descent;
  if (!level.finite()) done.end = End::broken;
  if (done.end == End::broken) done.gap = std::numeric_limits<double>::quiet_NaN();
  return done;
}

template Descent descend(DescentState<float>&, double, std::int64_t, const Worker&);
template Descent descend(DescentState<double>&, double, std::int64_t, const Worker&);

}  // namespace mercer::svm
