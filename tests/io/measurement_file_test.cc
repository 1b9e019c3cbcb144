#include "planner/io/results/measurement_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

constexpr StageId kFirst{0}, kSecond{1};
constexpr MicrobatchId kOnly{0};

/// Two stages on two ranks, one microbatch.
DependencyGraph small_graph() {
  Schedule schedule{
      {{forward(kFirst, kOnly), send(kFirst, kSecond, kOnly, Direction::Forward),
        recv(kFirst, kSecond, kOnly, Direction::Backward), backward(kFirst, kOnly)},
       {recv(kSecond, kFirst, kOnly, Direction::Forward), forward(kSecond, kOnly),
        backward(kSecond, kOnly), send(kSecond, kFirst, kOnly, Direction::Backward)}}};
  return dependencies(schedule, {2, {{kFirst, kSecond, true}}, {}}, round_robin(2, 2), Semantics{});
}

/// Steps of 9, 5, 7 and 6 ms, of which the first warms up: the median of 5, 7, 6 is 6.
Measurement small_measurement(const DependencyGraph& graph) {
  Measurement measurement;
  measurement.steps = {{false, Nanoseconds{9'000'000}, 0.5},
                       {true, Nanoseconds{5'000'000}, -0.25},
                       {true, Nanoseconds{7'000'000}, 1e-300},
                       {true, Nanoseconds{6'000'000}, std::numeric_limits<double>::infinity()}};
  measurement.peak_memory = {Bytes{123}, Bytes{456}};
  measurement.trace = {TraceSource::Measured, 2, {}, {}};
  for (const Task& task : graph.tasks) {
    const Nanoseconds start{1000 * static_cast<std::int64_t>(measurement.trace.events.size())};
    measurement.trace.events.push_back({.kind = task.kind,
                                        .rank = task.rank,
                                        .peer = task.peer,
                                        .cell = task.cell,
                                        .start = start,
                                        .end = start + Nanoseconds{999}});
    measurement.durations.push_back(Nanoseconds{7});
  }
  return measurement;
}

class MeasurementFile : public ::testing::Test {
 protected:
  ~MeasurementFile() override { std::filesystem::remove(file_); }
  Measurement read(const std::string& text) const {
    std::ofstream(file_) << text;
    return read_measurement(file_, graph_);
  }
  std::string error(const std::string& text) const {
    try {
      read(text);
    } catch (const ConfigError& mistake) {
      return mistake.what();
    }
    return "";
  }
  std::string replaced(const std::string& from, const std::string& to) const {
    std::string text = measurement_text(small_measurement(graph_));
    return text.replace(text.find(from), from.size(), to);
  }

  const DependencyGraph graph_ = small_graph();
  const std::filesystem::path file_ = std::filesystem::path(::testing::TempDir()) /
                                      ("measurement_" + std::to_string(getpid()) + ".csv");
};

TEST_F(MeasurementFile, ReadsWhatItWrites) {
  const std::string text = measurement_text(small_measurement(graph_));
  const Measurement back = read(text);
  EXPECT_EQ(measurement_text(back), text);
  EXPECT_EQ(back.quantile(0.5), Nanoseconds{6'000'000});
  EXPECT_EQ(back.quantile(0), Nanoseconds{5'000'000});
  EXPECT_EQ(back.quantile(0.95), Nanoseconds{7'000'000});
  EXPECT_EQ(median_step(back.steps), 3u);
  // The second stage's forward has waited for the transfer.
  for (const Event& event : back.trace.events)
    if (event.kind == TaskKind::Compute && event.cell == Cell{forward(kSecond, kOnly)}) {
      ASSERT_TRUE(event.waited_for);
      EXPECT_EQ(back.trace.events[*event.waited_for].kind, TaskKind::Transfer);
      EXPECT_EQ(event.posted, back.trace.events[*event.waited_for].end);
    }
}

/// The small measurement with its counting steps at these times.
Measurement round_of(const DependencyGraph& graph, std::vector<std::int64_t> ms, int peak) {
  Measurement round = small_measurement(graph);
  for (std::size_t i = 0; i < ms.size(); ++i)
    round.steps[i + 1].time = Nanoseconds{ms[i] * 1'000'000};
  round.peak_memory[1] = Bytes{peak};
  round.trace.events.front().end += Nanoseconds{ms[1]};
  round.durations.front() = Nanoseconds{ms[1]};
  return round;
}

// Medians of the rounds: 6, 20, 8, 7; of these the lower of the middle two is 7, of the last round.
// All steps together would have their median at 8.
TEST_F(MeasurementFile, RoundsAreJoinedByTheirMedians) {
  const std::vector<Measurement> rounds{
      round_of(graph_, {5, 6, 7}, 10), round_of(graph_, {20, 20, 20}, 30),
      round_of(graph_, {8, 8, 9}, 20), round_of(graph_, {7, 7, 90}, 20)};
  const Measurement all = joined(rounds);
  EXPECT_EQ(all.steps.size(), 16u);
  EXPECT_THAT(all.round_medians(),
              ::testing::ElementsAre(Nanoseconds{6'000'000}, Nanoseconds{20'000'000},
                                     Nanoseconds{8'000'000}, Nanoseconds{7'000'000}));
  EXPECT_EQ(all.step(), Nanoseconds{7'000'000});
  EXPECT_EQ(all.quantile(0.5), Nanoseconds{8'000'000});
  EXPECT_EQ(all.trace, rounds[3].trace);
  EXPECT_THAT(all.peak_memory, ::testing::ElementsAre(Bytes{123}, Bytes{30}));
  EXPECT_EQ(all.durations.front(), Nanoseconds{7}) << "of 6, 20, 8 and 7";
  EXPECT_EQ(measurement_text(read(measurement_text(all))), measurement_text(all));
  EXPECT_EQ(measurement_text(joined(std::span(rounds).first(1))), measurement_text(rounds[0]));
}

TEST_F(MeasurementFile, RoundsAreNumberedInTheirOrder) {
  EXPECT_MESSAGE(error(replaced("-0.25,0", "-0.25,2")));
  EXPECT_MESSAGE(error(replaced("0,0,9000000,0.5,0", "0,0,9000000,0.5,1")));
}

// Saved again by a spreadsheet or an editor.
TEST_F(MeasurementFile, MoreEmptyLinesBetweenTablesAndAtTheEndMeanNothing) {
  const std::string text = measurement_text(small_measurement(graph_));
  EXPECT_EQ(measurement_text(read(replaced("\n\n", "\n\n\n\n") + "\n\n")), text);
}

TEST_F(MeasurementFile, OfAnotherPlanIsRefused) {
  EXPECT_MESSAGE(error(replaced("0F0", "0F1")));
  const std::string text = measurement_text(small_measurement(graph_));
  const std::size_t end = text.find("\n\nformat_version");  // of the last action
  const std::size_t begin = text.rfind('\n', end - 1);
  EXPECT_MESSAGE(error(text.substr(0, begin) + text.substr(end)));
}

TEST_F(MeasurementFile, MistakesHaveTheirPlace) {
  EXPECT_MESSAGE(error(replaced("time_ns", "time")));
  EXPECT_MESSAGE(error(replaced(",9000000,", ",x,")));
  EXPECT_MESSAGE(error(replaced("peak_memory_bytes", "peak")));
  EXPECT_MESSAGE(error("step,counts,time_ns,loss,round\n0,1,5,0,0\n"));
  EXPECT_MESSAGE(error(replaced(",-0.25", ",low")));
  EXPECT_MESSAGE(error(replaced(",-0.25", ",-0.25x")));
  EXPECT_MESSAGE(error(replaced(",-0.25", ",1e999")));
  Measurement warm = small_measurement(graph_);
  for (MeasuredStep& step : warm.steps) step.counts = false;
  EXPECT_MESSAGE(error(measurement_text(warm)));
}

TEST_F(MeasurementFile, OfAnotherVersionIsRefusedWithTheRemedy) {
  EXPECT_MESSAGE(error(replaced("format_version\n2", "format_version\n1")));
  EXPECT_MESSAGE(error(replaced("\nformat_version\n2\n", "")));
}

TEST_F(MeasurementFile, PeaksAreOfEveryRankOrOfNone) {
  Measurement measurement = small_measurement(graph_);
  measurement.peak_memory.pop_back();
  EXPECT_MESSAGE(error(measurement_text(measurement)));
  measurement.peak_memory.clear();
  EXPECT_TRUE(read(measurement_text(measurement)).peak_memory.empty());
}

TEST_F(MeasurementFile, AFirstStepThatCountsIsOneOfThem) {
  const Measurement measurement{.steps = {{true, Nanoseconds{5}, 0}, {true, Nanoseconds{7}, 0}}};
  EXPECT_EQ(measurement.quantile(0), Nanoseconds{5});
  EXPECT_EQ(median_step(measurement.steps), 0u);
}

}  // namespace
}  // namespace pfeife
