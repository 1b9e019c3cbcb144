#include "planner/ir/trace/trace_lanes.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

Event event(TaskKind kind, int rank, int start, int end, std::vector<RankId> parties = {}) {
  Event e;
  e.kind = kind;
  e.rank = e.peer = RankId{rank};
  e.parties = std::move(parties);
  e.start = e.posted = Nanoseconds{start};
  e.end = Nanoseconds{end};
  return e;
}

TEST(TraceLanes, TransfersAtTheSameTimeGetLanesOfTheirOwn) {
  Trace trace;
  trace.ranks = 1;
  trace.events = {event(TaskKind::Transfer, 0, 0, 5), event(TaskKind::Transfer, 0, 3, 8),
                  event(TaskKind::Transfer, 0, 5, 6), event(TaskKind::Compute, 0, 0, 9)};
  const auto rows = lanes(trace);
  EXPECT_EQ(rows[0].communication,
            (std::vector<LaneItem>{{0, 0, false}, {1, 1, false}, {2, 0, false}}));
  EXPECT_EQ(rows[0].communication_lanes, 2u);
  EXPECT_EQ(rows[0].compute, (std::vector<LaneItem>{{3, 0, false}}));
  EXPECT_EQ(rows[0].compute_lanes, 1u);
}

TEST(TraceLanes, ReductionsVisitTheirOtherParties) {
  Trace trace;
  trace.ranks = 3;
  trace.events = {event(TaskKind::Reduction, 0, 0, 5, {RankId{0}, RankId{2}})};
  const auto rows = lanes(trace);
  EXPECT_EQ(rows[0].communication, (std::vector<LaneItem>{{0, 0, false}}));
  EXPECT_TRUE(rows[1].communication.empty());
  EXPECT_EQ(rows[2].communication, (std::vector<LaneItem>{{0, 0, true}}));
}

TEST(TraceLanes, EventsOfUnknownRanksAreRefused) {
  Trace trace;
  trace.ranks = 1;
  trace.events = {event(TaskKind::Compute, 1, 0, 5)};
  EXPECT_THROW(lanes(trace), InternalError);
}

TEST(TraceLanes, NoTwoEventsOfALaneOverlapAndEveryEventIsThereOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Trace trace;
    trace.ranks = 3;
    for (int i = 0; i < 40; ++i) {
      const int start = static_cast<int>(random() % 50);
      trace.events.push_back(event(static_cast<TaskKind>(random() % 4),
                                   static_cast<int>(random() % 3), start,
                                   start + static_cast<int>(random() % 9), {RankId{1}}));
    }
    std::vector<int> seen(trace.events.size(), 0);
    for (const RankLanes& row : lanes(trace))
      for (const auto* items : {&row.compute, &row.communication}) {
        std::map<std::size_t, Nanoseconds> busy_until;
        for (const LaneItem& item : *items) {
          const Event& e = trace.events[item.event];
          EXPECT_GE(e.start, busy_until[item.lane]);
          busy_until[item.lane] = e.end;
          seen[item.event] += item.guest ? 0 : 1;
        }
      }
    EXPECT_EQ(seen, std::vector<int>(trace.events.size(), 1));
  }
}

}  // namespace
}  // namespace pfeife
