// Several threads on one descent: each owns some columns, and after every sweep all tell each other
// what they found. Every thread then computes the same step; only the owner of a variable changes
// its state. Two messages per step and thread, no shared counters, no barrier.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "svm/passes.hpp"

namespace mercer::svm {

constexpr int kMostThreads = 8;
constexpr int kMostGroups = 4;
constexpr int kSpins = 4000;  // then yield: the others may wait for this very core

inline void relax(int turn) {
  if (turn >= kSpins) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Entry>
struct alignas(64) Message {
  std::atomic<std::uint64_t> number{0};
  Entry value[kMostGroups];  // tops, or lows
  std::int32_t index[kMostGroups];
  Entry gain;
  Entry low;  // F + low of the partner
  bool leave; // only of thread 0: all go after this exchange
};

// Best pair and gap of one sweep, over all threads.
template <class Entry>
struct Pick {
  Partner<Entry> partner;
  Entry low;
};

template <class Entry>
class Team {
 public:
  explicit Team(int groups) : groups_(groups) {}

  // A follower's number, or 0 when the team is complete without it.
  int join();
  // Waits for the start; false when there is none.
  bool wait_for_start() const;
  int waiting() const { return door_.load(std::memory_order_acquire) & ~kClosed; }
  // Closes the door; returns how many followers there are.
  int close() { return door_.fetch_or(kClosed, std::memory_order_acq_rel) & ~kClosed; }
  void start(int members);
  void send_home() { go_.store(-1, std::memory_order_release); }

  // Merges what all members found; returns whether all leave.
  bool exchange(int id, std::uint64_t number, Top<Entry>* tops, bool leave);
  void exchange(int id, std::uint64_t number, Pick<Entry>& pick, Entry* lows);

  int members() const { return members_; }

 private:
  static constexpr int kClosed = 1 << 20;

  Message<Entry>& slot(int id, std::uint64_t number) { return slots_[id][number & 1]; }
  const Message<Entry>& await(int id, std::uint64_t number);

  int groups_;
  int members_ = 1;
  std::atomic<int> door_{0};
  std::atomic<int> go_{0};
  // Two each: no thread can write message n + 2 before all have answered n + 1, so read n.
  Message<Entry> slots_[kMostThreads][2];
};

template <class Entry>
int Team<Entry>::join() {
  int seen = door_.load(std::memory_order_acquire);
  while (seen < kMostThreads - 1) {  // closed is larger
    if (door_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return seen + 1;
  }
  return 0;
}

template <class Entry>
bool Team<Entry>::wait_for_start() const {
  for (int turn = 0;; ++turn) {
    const int go = go_.load(std::memory_order_acquire);
    if (go != 0) return go > 0;
    relax(turn);
  }
}

template <class Entry>
void Team<Entry>::start(int members) {
  members_ = members;
  go_.store(1, std::memory_order_release);
}

template <class Entry>
const Message<Entry>& Team<Entry>::await(int id, std::uint64_t number) {
  const Message<Entry>& message = slot(id, number);
  for (int turn = 0; message.number.load(std::memory_order_acquire) != number; ++turn)
    relax(turn);
  return message;
}

template <class Entry>
bool Team<Entry>::exchange(int id, std::uint64_t number, Top<Entry>* tops, bool leave) {
  Message<Entry>& mine = slot(id, number);
  for (int g = 0; g < groups_; ++g) {
    mine.value[g] = tops[g].value;
    mine.index[g] = tops[g].index;
  }
  mine.leave = leave;
  mine.number.store(number, std::memory_order_release);
  for (int other = 0; other < members_; ++other) {
    if (other == id) continue;
    const Message<Entry>& heard = await(other, number);
    for (int g = 0; g < groups_; ++g) {
      const bool better = heard.value[g] > tops[g].value ||
                          (heard.value[g] == tops[g].value && heard.index[g] >= 0 &&
                           (tops[g].index < 0 || heard.index[g] < tops[g].index));
      if (better) tops[g] = {heard.value[g], heard.index[g]};
    }
    if (other == 0) leave = heard.leave;
  }
  return leave;
}

template <class Entry>
void Team<Entry>::exchange(int id, std::uint64_t number, Pick<Entry>& pick, Entry* lows) {
  Message<Entry>& mine = slot(id, number);
  for (int g = 0; g < groups_; ++g) mine.value[g] = lows[g];
  mine.index[0] = pick.partner.index;
  mine.gain = pick.partner.gain;
  mine.low = pick.low;
  mine.number.store(number, std::memory_order_release);
  for (int other = 0; other < members_; ++other) {
    if (other == id) continue;
    const Message<Entry>& heard = await(other, number);
    for (int g = 0; g < groups_; ++g) lows[g] = heard.value[g] < lows[g] ? heard.value[g] : lows[g];
    const std::int32_t index = heard.index[0];
    const bool better = index >= 0 && (pick.partner.index < 0 || heard.gain > pick.partner.gain ||
                                       (heard.gain == pick.partner.gain &&
                                        index < pick.partner.index));
    if (better) pick = {{heard.gain, index}, heard.low};
  }
}

}  // namespace mercer::svm
