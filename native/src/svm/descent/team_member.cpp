// The loop of pair steps.
#include "svm/descent/team_member.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/dispatch.hpp"

namespace mercer::svm {
namespace {

constexpr std::int64_t kTickEvery = 64;  // steps
// Steps over which a descent must gain something.
constexpr std::int64_t kStaleSteps = 500'000;
constexpr std::int64_t kStalePerVariable = 50;
// A team is slow when some windows of steps in a row take longer than this per step: another
// program has one of the cores, and everybody waits for the thread that does not run.
constexpr double kSlowPerColumn = 2.5e-9, kSlowPerStep = 8e-6;  // seconds
constexpr int kSlowWindows = 3;

}  // namespace

template <class Entry>
TeamMember<Entry>::TeamMember(DescentState<Entry>& level, const Worker& worker, const Team<Entry>* door)
    : level_(level),
      worker_(worker),
      pass_(table<Passes<Entry>>()),
      door_(door),
      share_(level.all()),
      b_(level.b),
      begin_(0),
      end_(level.size),
      tops_(static_cast<std::size_t>(level.groups)),  // level.tops may be written meanwhile: by
      lows_(static_cast<std::size_t>(level.groups)),  // thread 0, which works while others come
      remembers_(level.count <= kTeamColumns),
      past_(level),
      window_steps_(std::max<std::int64_t>(kStaleSteps, kStalePerVariable * level.count)) {
  if (level.count > kTeamColumns) runs_.reserve(level.runs.size());
}

// Runs of whole vectors, as many for each member.
template <class Entry>
void TeamMember<Entry>::take_part(Team<Entry>& team, int id, int members, double* b) {
  team_ = &team;
  id_ = id;
  door_ = nullptr;
  Size blocks = 0, at = 0;
  for (const Run& run : level_.runs) blocks += round_up(run.length, kPad) / kPad;
  const Size first = blocks * id / members, last = blocks * (id + 1) / members;
  for (const Run& run : level_.runs) {
    const Size own = round_up(run.length, kPad) / kPad;
    const Size begin = std::max(first, at) - at, end = std::min(last, at + own) - at;
    if (begin < end) {
      const Size from = begin * kPad, to = std::min(end * kPad, run.length);
      runs_.push_back({run.column + from, run.local + from, to - from, run.group});
    }
    at += own;
  }
  share_.runs = runs_.data();
  share_.run_count = static_cast<Size>(runs_.size());
  b_ = b;
  begin_ = runs_.empty() ? 0 : runs_.front().local;
  end_ = runs_.empty() ? 0 : runs_.back().local + runs_.back().length;
}

template <class Entry>
void TeamMember<Entry>::forget_tops() {
  std::fill(tops_.begin(), tops_.end(), Top<Entry>{-std::numeric_limits<Entry>::infinity(), -1});
}

template <class Entry>
Pick<Entry> TeamMember<Entry>::pick_partner() {
  std::fill(lows_.begin(), lows_.end(), std::numeric_limits<Entry>::infinity());
  Pick<Entry> pick{pass_.find_partner(share_, tops_.data(), lows_.data()), Entry(0)};
  const Size j = pick.partner.index;
  if (j >= 0) pick.low = level_.f[j] + level_.low[j];
  if (team_ != nullptr) team_->exchange(id_, ++number_, pick, lows_.data());
  return pick;
}

// -inf when no pair can move.
template <class Entry>
double TeamMember<Entry>::gap() const {
  double widest = -kNever;
  for (std::size_t g = 0; g < tops_.size(); ++g) {
    const double high = static_cast<double>(tops_[g].value), low = static_cast<double>(lows_[g]);
    if (tops_[g].index >= 0 && low < kNever) widest = std::max(widest, high - low);
  }
  return widest;
}

template <class Entry>
Pair TeamMember<Entry>::pair_of(const Pick<Entry>& pick) const {
  const Size j = pick.partner.index;
  const Top<Entry>& top = tops_[static_cast<std::size_t>(level_.group_of(j))];
  const Size i = top.index;
  const double level = static_cast<double>(level_.diag[i]) + static_cast<double>(level_.diag[j]);
  const Entry kij = level_.row(i)[level_.column_of(j)];
  const double least = std::max(static_cast<double>(kFlat<Entry>) * level,
                                static_cast<double>(kTiny<Entry>));
  const bool below = value(i) < 0.0 && level_.kink[i] > 0.0;
  const bool above = value(j) > 0.0 && level_.kink[j] > 0.0;
  return {i,
          j,
          static_cast<double>(top.value) - static_cast<double>(pick.low),
          std::max(level - 2.0 * static_cast<double>(kij), least),
          level,
          below ? std::min(0.0, level_.upper[i]) : level_.upper[i],
          above ? std::max(0.0, level_.lower[j]) : level_.lower[j]};
}

// Moves the best pair, or along with it what the last steps moved; false when the step is not
// finite.
template <class Entry>
bool TeamMember<Entry>::move(const Pick<Entry>& pick) {
  const Pair pair = pair_of(pick);
  const auto [i, j, difference, curvature, size, ceiling, floor] = pair;
  // A pair that comes again although nothing bounded its step: K is flat there, or F too coarse to
  // show the step. Ever longer steps reach the end of the box, or a change of F.
  const bool again =
      i == trail_.i && j == trail_.j && !(difference < 0.999 * trail_.difference);
  trail_.boost = again ? 2.0 * trail_.boost : 1.0;
  trail_.i = i, trail_.j = j, trail_.difference = difference;

  const double up = ceiling - value(i), down = value(j) - floor;
  const double free = trail_.boost * difference / curvature;
  double step = std::min(free, std::min(up, down));
  if (!std::isfinite(step)) return false;
  double gain = step * (difference - 0.5 * step * curvature);
  trail_.note(gain, window_steps_);  // of the pair: of a bent one, rounding may promise too much
  if (remembers_ && !again && past_.bend(pair, gain)) {
    step = past_.step();
  } else {
    past_.forget();
    b_[i] = step == up ? ceiling : b_[i] + step;
    b_[j] = step == down ? floor : b_[j] - step;
    if (owns(i)) level_.refresh(i, b_[i]);
    if (owns(j)) level_.refresh(j, b_[j]);
    // what is remembered is free: a step may end at a bound and be the one without bounds as well
    // (a team remembers nothing: the state that is asked belongs to thread 0, which writes it now)
    const bool whole = remembers_ && !again && step == free;
    if (whole && level_.is_free(i) && level_.is_free(j)) past_.begin(pair);
  }
  if (owns(i)) level_.f[i] -= static_cast<Entry>(step * level_.shift[i]);
  if (owns(j)) level_.f[j] += static_cast<Entry>(step * level_.shift[j]);
  forget_tops();
  pass_.advance(share_, i, j, past_.along(), static_cast<Entry>(step), tops_.data());
  past_.keep();
  leap();
  return true;
}

// After a chain of steps, one along all of it.
template <class Entry>
void TeamMember<Entry>::leap() {
  const double step = past_.leap();
  if (step == 0.0) return;
  forget_tops();
  pass_.leap(share_, level_.mark, level_.past[kPast - 1], static_cast<Entry>(step), tops_.data());
}

// What thread 0 does now and then: looks at the clock and at what the outside wants. In a team it
// only announces that it leaves, so that all leave after the same step.
template <class Entry>
void TeamMember<Entry>::look_outside(double gap, Outcome& outcome) {
  told_ += kTickEvery;
  if (team_ == nullptr) {
    worker_.tick(kTickEvery, gap);
    return;
  }
  try {
    worker_.tick(kTickEvery, gap);
  } catch (...) {
    failure_ = std::current_exception();
  }
  outcome.slow = too_slow(kTickEvery);
  leave_ = failure_ != nullptr || worker_.stopped() || outcome.slow;
}

template <class Entry>
bool TeamMember<Entry>::too_slow(std::int64_t steps) {
  const Clock::time_point now = Clock::now();
  const double taken = std::chrono::duration<double>(now - window_).count();
  window_ = now;
  const double fair = kSlowPerColumn * static_cast<double>(level_.count) + kSlowPerStep;
  slow_windows_ = taken > fair * static_cast<double>(steps) ? slow_windows_ + 1 : 0;
  return slow_windows_ >= kSlowWindows;
}

// Why the descent is over, if it is; the same in all threads.
template <class Entry>
std::optional<End> TeamMember<Entry>::verdict(const Pick<Entry>& pick, double gap, double tol,
                                          bool at_limit, bool leaving) {
  if (!(gap > tol)) return End::solved;
  if (leaving) return End::stopped;
  if (at_limit) return End::limit;
  if (trail_.stale) return End::stuck;
  if (pick.partner.index < 0) return End::broken;  // only a K that is not finite leads here
  return std::nullopt;
}

template <class Entry>
Outcome TeamMember<Entry>::run(double tol, std::int64_t limit) {
  Outcome outcome{{End::limit, 0, kNever}};
  std::int64_t& steps = outcome.descent.steps;
  double& left = outcome.descent.gap;
  window_ = Clock::now();
  trail_ = level_.trail;
  forget_tops();
  pass_.find_tops(share_, tops_.data());
  if (team_ != nullptr) team_->exchange(id_, ++number_, tops_.data(), false);
  for (bool leaving = false;; ++steps) {
    const Pick<Entry> pick = pick_partner();
    left = gap();
    const std::optional<End> over = verdict(pick, left, tol, steps >= limit, leaving);
    if (over) {
      outcome.descent.end = *over;
      break;
    }
    if (id_ == 0 && steps - told_ == kTickEvery) look_outside(left, outcome);
    if (team_ == nullptr && (worker_.stopped() || someone_waits())) {
      outcome.descent.end = End::stopped;
      outcome.joined = !worker_.stopped();
      break;
    }
    if (!move(pick)) {
      outcome.descent.end = End::broken;
      break;
    }
    if (team_ != nullptr) leaving = team_->exchange(id_, ++number_, tops_.data(), leave_);
  }
  past_.forget();
  if (id_ == 0) {
    level_.tops = tops_;
    level_.lows = lows_;
    level_.trail = trail_;
    worker_.told(steps - told_, left);
  }
  if (failure_) std::rethrow_exception(failure_);
  return outcome;
}

template class TeamMember<float>;
template class TeamMember<double>;

}  // namespace mercer::svm
