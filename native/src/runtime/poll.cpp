// Looking at signals and at the clock: the only place where a computation takes the interpreter
// lock back.
#include "runtime/poll.hpp"

#include <nanobind/nanobind.h>

#include <atomic>
#include <utility>

namespace mercer {
namespace {

// Far below what a person notices, far above the cost of taking the lock.
constexpr double kEvery = 0.05;  // seconds
constexpr double kLongest = 86400.0;  // seconds: any clock can add a day

std::atomic<double> every{kEvery};
PyObject* outside = nullptr;  // called at looks nobody else is asked at; needs the lock, never freed

std::chrono::steady_clock::time_point later() {
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> wait(every.load(std::memory_order_relaxed));
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
}

}  // namespace

Poll::Poll(std::function<bool()> ask) : ask_(std::move(ask)), next_(later()) {}

void Poll::check() {
  if (stopped()) return;
  if (Clock::now() < next_) return;
  look();
  next_ = later();
}

void Poll::look() {
  nanobind::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) {
    stop();
    throw nanobind::python_error();
  }
  try {
    if (ask_) {
      if (ask_()) stop();
    } else if (outside != nullptr) {
      nanobind::borrow<nanobind::callable>(outside)();
    }
  } catch (...) {
    stop();
    throw;
  }
}

}  // namespace mercer

void bind_poll(nanobind::module_& m) {
  m.def(
      "watch_polls",
      [](nanobind::object function, double seconds) {
        if (!function.is_none() && !PyCallable_Check(function.ptr()))
          throw nanobind::type_error("watch_polls: function is neither callable nor None");
        if (!(seconds >= 0 && seconds <= mercer::kLongest))  // NaN too
          throw nanobind::value_error("watch_polls: seconds is not between 0 and a day");
        PyObject* before = mercer::outside;
        mercer::outside = function.is_none() ? nullptr : function.release().ptr();
        mercer::every.store(seconds, std::memory_order_relaxed);
        Py_XDECREF(before);  // last: what it runs may come back here
      },
      nanobind::arg("function").none(), nanobind::arg("seconds") = mercer::kEvery,
      "Call a function at every look at the signals, `seconds` apart, of calls without a poll of "
      "their own; what it raises ends the call.");
}
