// Looking at signals: the only place where a computation takes the interpreter lock back.
#include "mercer/poll.hpp"

#include <nanobind/nanobind.h>

#include <utility>

namespace mercer {
namespace {

// Far below what a person notices, far above the cost of taking the lock.
constexpr auto kEvery = std::chrono::milliseconds(50);

}  // namespace

Poll::Poll(std::function<bool()> ask) : ask_(std::move(ask)), next_(Clock::now() + kEvery) {}

void Poll::check() {
  if (stopped()) return;
  if (Clock::now() < next_) return;
  look();
  next_ = Clock::now() + kEvery;
}

void Poll::look() {
  nanobind::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) {
    stop();
    throw nanobind::python_error();
  }
  try {
    if (ask_ && ask_()) stop();
  } catch (...) {
    stop();
    throw;
  }
}

}  // namespace mercer
