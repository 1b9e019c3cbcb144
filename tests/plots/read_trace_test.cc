// A trace that was written is read as it was, up to the order of its events.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "planner/cost/estimate/estimator.h"
#include "planner/io/results/chrome_trace.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/plots/example_traces.h"

namespace pfeife {
namespace {

/// Events by their text, with what each waited for as text.
std::map<std::string, std::pair<Event, std::string>> by_text(const Trace& trace) {
  std::map<std::string, std::pair<Event, std::string>> events;
  for (Event event : trace.events) {
    const std::string cause =
        event.waited_for ? to_string(trace.events[*event.waited_for].cell) : "";
    event.waited_for.reset();
    const std::string text = to_string(event.cell);
    events[text] = {std::move(event), cause};
  }
  return events;
}

class ReadTrace : public ::testing::Test {
 protected:
  ReadTrace() : file_(::testing::TempDir() + "read_" + std::to_string(getpid()) + ".json") {}
  ~ReadTrace() override { std::filesystem::remove(file_); }
  void write(std::span<const Trace> traces, std::size_t most = kMostEvents) const {
    std::ofstream out(file_);
    write_chrome_trace(out, traces, "t", most);
  }
  std::filesystem::path file_;
};

TEST_F(ReadTrace, IsWhatWasWritten) {
  for (const Example& example :
       {Example{}, Example{.ranks = 4, .microbatches = 8, .stages_per_rank = 2},
        Example{.ranks = 3, .microbatches = 5, .split = true}}) {
    Example slower = example;
    slower.transfer *= 3;
    slower.source = TraceSource::Simulated;
    const std::vector<Trace> traces{example_trace(example), example_trace(slower)};
    write(traces);
    for (const Trace& trace : traces) {
      const Trace found = read_trace(file_, trace.source);
      EXPECT_EQ(found.ranks, trace.ranks);
      EXPECT_EQ(found.memory, trace.memory);
      EXPECT_EQ(by_text(found), by_text(trace));
    }
    EXPECT_THROW(read_trace(file_, TraceSource::Measured), ConfigError);
  }
}

// S and T of all ranks, and the collectives between them, whose parties are all ranks.
TEST_F(ReadTrace, SharesOfTheOutputLayerAndTheirCollectivesComeBack) {
  for (const char* family : {"vocab_1", "vocab_2"}) {
    const ScheduleSpec spec{.family = family, .ranks = 3, .microbatches = 4};
    StageCosts costs =
        uniform_costs(3, Nanoseconds{900}, Nanoseconds{800}, Nanoseconds{700}, Nanoseconds{50});
    costs.head = SharedHead{pfeife::family(family).head_barriers, Nanoseconds{40}, Nanoseconds{60},
                            Nanoseconds{70}};
    for (StageCost& stage : costs.stages)
      stage.head_share = Nanoseconds{200}, stage.head_rest = Nanoseconds{300};
    const Placement placement = placement_for(spec);
    const Schedule lowered = lower(generate(spec), costs, placement);
    const std::vector<Trace> traces{
        std::get<Trace>(estimate(dependencies(lowered, stage_graph(costs), placement, {}), costs))};
    write(traces);
    EXPECT_EQ(by_text(read_trace(file_, TraceSource::Estimated)), by_text(traces.front()));
    EXPECT_EQ(by_text(traces.front()).at("0REDUCE_S2").first.parties.size(), 3u);
  }
}

TEST_F(ReadTrace, ATraceWhoseMiddleIsLeftOutIsRefused) {
  const Trace trace = example_trace({.ranks = 3, .microbatches = 20});
  write(std::span(&trace, 1), 40);
  EXPECT_THROW(read_trace(file_, trace.source), ConfigError);
}

}  // namespace
}  // namespace pfeife
