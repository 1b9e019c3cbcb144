// Loops over independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace pfeife {

/// Runs `work(i)` for i < count on `threads` threads. A failure keeps what has not begun from
/// beginning; of several, that of the smallest i is thrown on: it is the same for any number of
/// threads.
template <class Work>
void parallel_for(std::size_t count, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::mutex failure_mutex;
  std::exception_ptr failure;
  std::size_t failed = count;
  const auto loop = [&] {
    for (std::size_t i; (i = next++) < count;) try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (i < failed) failed = i, failure = std::current_exception();
        next = count;
      }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t t = 1; t < std::min(threads, count); ++t) helpers.emplace_back(loop);
    loop();
  }
  if (failure) std::rethrow_exception(failure);
}

/// The same in order while something is left of a budget, from which a piece takes what `work(i)`
/// returns (>= 0). Piece i runs if the budget is above 0 without the pieces up to i - ahead, at
/// most `ahead` pieces at once: which ones run does not depend on the number of threads.
template <class Work>
void parallel_while(double budget, std::size_t count, std::size_t ahead, std::size_t threads,
                    const Work& work) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<double> took(count, -1.0);
  std::size_t finished = 0;  // all before it are
  std::size_t allowed = budget > 0 ? ahead : 0;
  bool over = budget <= 0;
  parallel_for(count, threads, [&](std::size_t i) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return over || i < allowed; });
      if (i >= allowed) return;
    }
    double spent = 0;
    std::exception_ptr failure;
    try {
      spent = work(i);
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex);
      took[i] = spent;
      over = over || failure;
      while (finished < count && took[finished] >= 0) {
        budget -= took[finished++];
        if (budget > 0) allowed = finished + ahead;
        over = over || budget <= 0;
      }
    }
    changed.notify_all();
    if (failure) std::rethrow_exception(failure);
  });
}

}  // namespace pfeife
