// The thread pool: one job at a time, tasks handed out by an atomic counter.
#include "runtime/pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace mercer {
namespace {

// After a job a worker looks for the next one for about this many pauses (some ten microseconds)
// before it sleeps: solvers issue many short jobs in a row. Longer would steal from BLAS threads.
constexpr int kSpin = 2000;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

struct Job {
  Job(std::int64_t tasks, TaskFunction function, void* context, Poll& poll, int helpers)
      : tasks(tasks), function(function), context(context), poll(&poll), helpers(helpers) {}

  std::int64_t tasks;
  TaskFunction function;
  void* context;
  Poll* poll;
  int helpers;  // threads besides the caller
  std::atomic<std::int64_t> next{0};
  std::atomic<int> entered{0};
  std::atomic<int> running{0};
  std::mutex failure_lock;
  std::exception_ptr failure;

  void fail() {
    const std::lock_guard<std::mutex> guard(failure_lock);
    if (!failure) failure = std::current_exception();
    poll->stop();
  }

  void work(int worker, bool may_poll) {
    try {
      while (!poll->stopped()) {
        const std::int64_t task = next.fetch_add(1, std::memory_order_relaxed);
        if (task >= tasks) return;
        function(context, task, worker);
        if (may_poll) poll->check();
      }
    } catch (...) {
      fail();
    }
  }
};

class Pool {
 public:
  void run(Job& job) {
    {
      const std::lock_guard<std::mutex> guard(lock_);
      grow(job.helpers);
      job_ = &job;
      round_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    job.work(0, true);
    finish(job);
  }

  std::atomic<bool> busy{false};

 private:
  // A system that refuses more threads only makes the job slower.
  void grow(int wanted) {
    try {
      for (; workers_ < wanted; ++workers_) std::thread([this] { serve(); }).detach();
    } catch (const std::exception&) {
    }
  }

  // After `job_` is cleared under the lock no worker can enter the job any more.
  void finish(Job& job) {
    {
      const std::lock_guard<std::mutex> guard(lock_);
      job_ = nullptr;
    }
    for (int i = 0; i < kSpin; ++i) {
      if (job.running.load(std::memory_order_acquire) == 0) return;
      pause_cpu();
    }
    std::unique_lock<std::mutex> guard(lock_);
    while (job.running.load(std::memory_order_acquire) != 0) {
      done_.wait_for(guard, std::chrono::milliseconds(20));
      guard.unlock();
      try {
        job.poll->check();
      } catch (...) {
        job.fail();
      }
      guard.lock();
    }
  }

  void serve() {
    std::uint64_t seen = 0;
    for (;;) {
      seen = await(seen);
      Job* job = nullptr;
      int worker = 0;
      {
        const std::lock_guard<std::mutex> guard(lock_);
        job = job_;
        if (job == nullptr || job->entered >= job->helpers) continue;
        worker = ++job->entered;
        ++job->running;
      }
      job->work(worker, false);
      const std::lock_guard<std::mutex> guard(lock_);
      const int left = --job->running;  // at zero the caller may return: the job is gone
      if (left == 0) done_.notify_all();
    }
  }

  std::uint64_t await(std::uint64_t seen) {
    for (int i = 0; i < kSpin; ++i) {
      const std::uint64_t now = round_.load(std::memory_order_acquire);
      if (now != seen) return now;
      pause_cpu();
    }
    std::unique_lock<std::mutex> guard(lock_);
    wake_.wait(guard, [&] { return round_.load(std::memory_order_acquire) != seen; });
    return round_.load(std::memory_order_acquire);
  }

  std::mutex lock_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::atomic<std::uint64_t> round_{0};
  Job* job_ = nullptr;
  int workers_ = 0;
};

std::atomic<Pool*> g_pool{nullptr};

// Threads do not survive a fork: the child forgets the parent's pool (and leaks it: its locks may
// be held by threads that no longer exist) and makes its own at its first call.
void forget_pool() { g_pool.store(nullptr); }

// When the library is loaded: a fork in the middle of a first use would leave it half done.
[[maybe_unused]] const int g_registered = pthread_atfork(nullptr, nullptr, forget_pool);

Pool& pool() {
  Pool* current = g_pool.load(std::memory_order_acquire);
  if (current != nullptr) return *current;
  Pool* fresh = new Pool;  // never destroyed: detached workers may outlive static destructors
  if (g_pool.compare_exchange_strong(current, fresh)) return *fresh;
  delete fresh;
  return *current;
}

// One job at a time; false when another one has the pool.
bool run_shared(Job& job) {
  Pool& shared = pool();
  bool idle = false;
  if (!shared.busy.compare_exchange_strong(idle, true)) return false;
  shared.run(job);
  shared.busy.store(false);
  return true;
}

std::atomic<int> g_cap{0};

}  // namespace

void run_tasks(std::int64_t tasks, TaskFunction function, void* context, int threads, Poll& poll) {
  const int helpers = static_cast<int>(std::min<std::int64_t>(threads, tasks)) - 1;
  Job job(tasks, function, context, poll, helpers);
  if (helpers < 1 || !run_shared(job)) job.work(0, true);
  if (job.failure) std::rethrow_exception(job.failure);
}

int thread_cap() noexcept {
  const int cap = g_cap.load();
  return cap > 0 ? cap : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void set_thread_cap(int threads) noexcept { g_cap.store(std::max(1, threads)); }

}  // namespace mercer

// For threadpoolctl, which finds these by name in the loaded library.
extern "C" {
__attribute__((visibility("default"))) int mercer_get_num_threads() { return mercer::thread_cap(); }
__attribute__((visibility("default"))) void mercer_set_num_threads(int threads) {
  mercer::set_thread_cap(threads);
}
}
