// Loads of links, told from a trace, against figures worked out by hand.
#include "planner/cost/estimate/link_load.h"

#include <gmock/gmock.h>

namespace pfeife {
namespace {

using ::testing::ElementsAre;

/// 0 -> 1 over slot (2 GB/s) and wire (1 GB/s), 10 ns.
Cluster one_wire() {
  Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, Nanoseconds{10});
  cluster.links = {{"slot", {2e9}}, {"wire", {1e9}}, {"idle", {1e9}}};
  cluster.paths[1].links = {0, 1};
  cluster.paths[2].links = {2};
  return cluster;
}

StageCosts one_message(Bytes bytes, Nanoseconds alone) {
  StageCosts costs;
  costs.stages.resize(2);
  costs.pairs.push_back(
      {.from = StageId{0}, .to = StageId{1}, .bytes = bytes, .forward_time = alone});
  return costs;
}

Event transfer(std::size_t microbatch, Nanoseconds start, Nanoseconds end) {
  return {.kind = TaskKind::Transfer,
          .rank = RankId{0},
          .peer = RankId{1},
          .cell = send(StageId{0}, StageId{1}, MicrobatchId{microbatch}, Direction::Forward),
          .start = start,
          .end = end};
}

// Two messages of 1000 bytes, the second 500 ns later. Alone each takes 10 + 1000 ns. The first has
// the wire until 510 and has sent 500 bytes; they share it until 1510, when the first is done; the
// second then has 500 bytes to go, until 2010. So each lasts 500 ns longer.
class TwoMessages : public ::testing::Test {
 protected:
  TwoMessages() {
    trace.source = TraceSource::Simulated;
    trace.ranks = 2;
    trace.events = {transfer(0, Nanoseconds{0}, Nanoseconds{1510}),
                    transfer(1, Nanoseconds{500}, Nanoseconds{2010})};
    add_link_loads(trace, costs, round_robin(2, 2), one_wire());
  }
  StageCosts costs = one_message(Bytes{1000}, Nanoseconds{1010});
  Trace trace;
};

TEST_F(TwoMessages, FillTheNarrowLinkAndHalfOfTheWideOne) {
  ASSERT_EQ(trace.links.size(), 2u) << "not the one that nothing goes over";
  EXPECT_EQ(trace.links[0].link, "slot");
  EXPECT_EQ(trace.links[0].bytes, Bytes{2000});
  EXPECT_THAT(trace.links[0].samples,
              ElementsAre(LoadSample{Nanoseconds{10}, 0.5}, LoadSample{Nanoseconds{2010}, 0}));
  EXPECT_EQ(trace.links[0].slowed, Nanoseconds{0});
  EXPECT_EQ(trace.links[1].link, "wire");
  EXPECT_THAT(trace.links[1].samples,
              ElementsAre(LoadSample{Nanoseconds{10}, 1}, LoadSample{Nanoseconds{2010}, 0}));
  EXPECT_EQ(trace.links[1].slowed, Nanoseconds{1000});
}

TEST_F(TwoMessages, AreFiguresWithTheFullestLinkFirst) {
  EXPECT_THAT(link_uses(trace),
              ElementsAre(LinkUse{"wire", 1e9, Bytes{2000}, 2000.0 / 2010, Nanoseconds{1000}},
                          LinkUse{"slot", 2e9, Bytes{2000}, 1000.0 / 2010, Nanoseconds{0}}));
}

TEST_F(TwoMessages, AreOnePairOfStagesThatWaits) {
  EXPECT_THAT(slowed_messages(trace, costs),
              ElementsAre(SlowedMessages{0, 1, 2, Nanoseconds{1010}, Nanoseconds{1510},
                                         Nanoseconds{1510}}));
  trace.events.pop_back();
  trace.events[0].end = Nanoseconds{1010};
  EXPECT_THAT(slowed_messages(trace, costs), ElementsAre());
}

// A path whose messages reach half of the wire's rate takes all of it while it is alone.
TEST(LinkLoad, OfASlowMessageIsTheWholeLink) {
  Trace trace;
  trace.ranks = 2;
  trace.events = {transfer(0, Nanoseconds{0}, Nanoseconds{2010})};
  add_link_loads(trace, one_message(Bytes{1000}, Nanoseconds{2010}), round_robin(2, 2), one_wire());
  EXPECT_THAT(trace.links[1].samples,
              ElementsAre(LoadSample{Nanoseconds{10}, 1}, LoadSample{Nanoseconds{2010}, 0}));
  EXPECT_EQ(trace.links[1].slowed, Nanoseconds{0});
}

TEST(FasterLinks, HalveTheBytesTimeAndLeaveTheLatency) {
  const Cluster twice = with_faster_links(one_wire(), 2);
  EXPECT_EQ(transfer_time(twice.paths[1], Bytes{1000}), Nanoseconds{510});
  EXPECT_EQ(twice.links[1].bandwidth.value, 2e9);
}

}  // namespace
}  // namespace pfeife
