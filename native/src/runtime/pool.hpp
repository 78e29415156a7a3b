// Our own threads: persistent, shared by all native calls, safe to fork.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/poll.hpp"

namespace mercer {

using TaskFunction = void (*)(void* context, std::int64_t task, int worker);

// Runs task 0 .. tasks-1, each once, on at most `threads` threads; see `parallel_for`.
void run_tasks(std::int64_t tasks, TaskFunction function, void* context, int threads, Poll& poll);

// Calls fn(task, worker) for every task, in no order; worker is in [0, threads) and no two calls
// with the same worker overlap. The caller takes part as worker 0 and polls between its tasks.
// The first exception stops the rest and is thrown here. Once `poll.stopped()` no further task
// starts and the call returns; long tasks should look at `poll.stopped()` themselves. A call made
// while the pool is busy (from a task, or from another Python thread) runs in the caller alone.
// Call with the interpreter lock released.
template <class F>
void parallel_for(std::int64_t tasks, F&& fn, int threads, Poll& poll) {
  using Function = std::remove_reference_t<F>;
  const TaskFunction call = [](void* context, std::int64_t task, int worker) {
    (*static_cast<Function*>(context))(task, worker);
  };
  void* context = const_cast<void*>(static_cast<const void*>(&fn));
  run_tasks(tasks, call, context, threads, poll);
}

// The limit that threadpoolctl sets for this process; Python takes it into account when it says
// how many threads a call may use.
int thread_cap() noexcept;
void set_thread_cap(int threads) noexcept;

}  // namespace mercer
