#include "planner/ir/basics/parallel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace pfeife {
namespace {

/// Which of the pieces run; a piece takes longer the more it takes from the budget.
std::vector<char> pieces_that_run(const std::vector<double>& takes, double budget,
                                  std::size_t ahead, std::size_t threads) {
  std::vector<char> ran(takes.size(), 0);
  parallel_while(budget, takes.size(), ahead, threads, [&](std::size_t i) {
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(20 * takes[i])));
    ran[i] = 1;
    return takes[i];
  });
  return ran;
}

TEST(ParallelWhile, RunsTheSamePiecesForAnyNumberOfThreads) {
  for (std::uint32_t round = 0; round < 60; ++round) {
    std::vector<double> takes;
    for (std::uint32_t i = 0; i < 30; ++i) takes.push_back((i * 37 + round * 11) % 13);
    const double budget = 10.0 * (round % 8);
    const std::size_t ahead = 1 + round % 5;
    // By the rule: piece i runs if something is left when all up to i - ahead are paid.
    std::vector<char> expected;
    for (std::size_t i = 0; i < takes.size(); ++i) {
      double left = budget;
      for (std::size_t k = 0; k + ahead <= i; ++k) left -= takes[k];
      expected.push_back(left > 0);
    }
    for (const std::size_t threads : {1, 2, 4, 9})
      ASSERT_EQ(pieces_that_run(takes, budget, ahead, threads), expected)
          << round << " " << threads;
  }
}

TEST(ParallelFor, PassesOnTheFailureOfTheSmallestPieceWhateverTheThreads) {
  for (int round = 0; round < 60; ++round)
    for (const std::size_t threads : {1, 2, 4}) {
      std::string failure;
      try {
        parallel_for(20, threads, [&](std::size_t i) {
          // It has begun when the next one fails, which is now before it and now after it.
          const bool late = i == 5 + static_cast<std::size_t>(round) % 2;
          if (i == 5 || i == 6)
            std::this_thread::sleep_for(std::chrono::microseconds(late ? 600 : 200));
          if (i >= 5) throw std::runtime_error(std::to_string(i));
        });
      } catch (const std::runtime_error& error) {
        failure = error.what();
      }
      ASSERT_EQ(failure, "5") << threads;
    }
}

TEST(ParallelWhile, StopsAtAFailureAndPassesItOn) {
  for (const std::size_t threads : {1, 3})
    EXPECT_THROW(parallel_while(1e9, 40, 3, threads,
                                [](std::size_t i) {
                                  if (i == 7) throw std::runtime_error("seven");
                                  return 1.0;
                                }),
                 std::runtime_error);
}

}  // namespace
}  // namespace pfeife
