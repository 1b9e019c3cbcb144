// States that stand for others are nowhere worse.
#include "planner/search/bound/round_states.h"

#include <gtest/gtest.h>

#include <random>

namespace pfeife {
namespace {

struct Placed {
  RoundLevel level;
  RoundState state;
};

bool stands_for(const Placed& a, const Placed& b) {
  return a.level.delay <= b.level.delay && a.level.after <= b.level.after &&
         a.level.passed <= b.level.passed && a.state.x >= b.state.x && a.state.y >= b.state.y;
}

TEST(RoundStates, KeepsOnlyTheFarthestWhichAreNowhereWorseThanThoseTheyStandFor) {
  std::mt19937 random(71);
  std::size_t kept = 0, all = 0;
  RoundStates states;
  for (int round = 0; round < 400; ++round) {
    const RoundLevel levels{1 + random() % 4, 1 + random() % 4, 1 + random() % 4};
    states.reset(levels);
    std::vector<Placed> added;
    for (std::size_t k = random() % 40; k-- > 0;) {
      Placed p;
      const auto time = [&](std::size_t& level, std::size_t count) {
        level = random() % count;  // a time of level k lies in [k, k + 1)
        return static_cast<double>(level) + static_cast<double>(random() % 100) / 100;
      };
      p.state = {static_cast<std::int32_t>(random() % 12), static_cast<std::int32_t>(random() % 12),
                 time(p.level.delay, levels.delay), time(p.level.after, levels.after),
                 time(p.level.passed, levels.passed)};
      states.add(p.level, p.state), added.push_back(p);
    }
    states.keep_best();
    std::vector<Placed> left;
    states.each([&](const RoundLevel& level, const RoundState& state) {
      left.push_back({level, state});
    });
    for (const Placed& p : added)
      ASSERT_TRUE(std::ranges::any_of(left, [&](const Placed& l) {
        return stands_for(l, p) && l.state.delay <= p.state.delay &&
               l.state.after <= p.state.after && l.state.passed <= p.state.passed;
      })) << round;
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t j = 0; j < left.size(); ++j)
        ASSERT_TRUE(i == j || !stands_for(left[i], left[j])) << round;
    kept += left.size(), all += added.size();
  }
  EXPECT_LT(kept, all);
  EXPECT_GT(kept, 1000u);
}

}  // namespace
}  // namespace pfeife
