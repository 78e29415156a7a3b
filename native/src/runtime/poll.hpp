// Staying interruptible: long calls release the interpreter lock and look at signals now and then.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

namespace mercer {

// One per native call, made by the thread that Python called. That thread alone calls `check`;
// every other thread only reads `stopped`. Include no Python header here: compute code uses this.
class Poll {
 public:
  // `ask`, when given, is called with the interpreter lock held at every look at the signals;
  // true asks the computation to stop at once and return what it has. Without it, the function
  // given to `watch_polls` is called there (the deadline of a fit), whose exception ends the call.
  explicit Poll(std::function<bool()> ask = {});
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;

  // Cheap enough for inner loops (one clock reading); does something at most every 50 ms.
  // Works with or without the interpreter lock. Throws the Python exception of a signal handler
  // (KeyboardInterrupt) after marking `stopped`.
  void check();

  // True once work should end: after a signal, an exception in another worker, or `ask`.
  bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  void look();

  std::function<bool()> ask_;
  Clock::time_point next_;
  std::atomic<bool> stopped_{false};
};

}  // namespace mercer
