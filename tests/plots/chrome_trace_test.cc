
#include "planner/io/results/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "plots/figure/theme.h"
#include "tests/plots/example_traces.h"

namespace pfeife {
namespace {

using nlohmann::json;

json written(std::span<const Trace> traces, const std::string& title = "t") {
  std::ostringstream out;
  write_chrome_trace(out, traces, title);
  return json::parse(out.str());
}
json written(const Trace& trace, const std::string& title = "t") {
  return written(std::span(&trace, 1), title);
}
std::vector<json> phase(const json& file, const std::string& ph) {
  std::vector<json> found;
  for (const json& event : file["traceEvents"])
    if (event["ph"] == ph) found.push_back(event);
  return found;
}

TEST(ChromeTrace, EveryEventIsOneSliceWithItsTimesInMicroseconds) {
  Example example;
  example.forward = Nanoseconds{1'000'001};
  const Trace trace = example_trace(example);
  const auto slices = phase(written(trace), "X");
  ASSERT_EQ(slices.size(), trace.events.size());
  const json& first = slices[0];
  EXPECT_EQ(first["name"], "0F0");
  EXPECT_EQ(first["ts"], 0);
  EXPECT_EQ(first["dur"], 1000.001);
  EXPECT_EQ(first["args"],
            json::parse(R"({"action":"0F0","stage":0,"microbatch":0,"posted":0.0})"));
  EXPECT_EQ(slices[1]["args"]["waited_for"], "0F0");
}

TEST(ChromeTrace, RanksAreProcessesWithNamedThreads) {
  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, std::string> processes;
  for (const json& event : phase(written(example_trace({})), "M")) {
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
    if (event["name"] == "thread_name")
      threads[{event["pid"], event["tid"]}] = event["args"]["name"];
  }
  EXPECT_EQ(processes,
            (std::map<int, std::string>{
                {1, "estimated: rank 0"}, {2, "estimated: rank 1"}, {3, "estimated: links"}}));
  EXPECT_EQ(
      threads,
      (std::map<std::pair<int, int>, std::string>{
          {{1, 1}, "compute"}, {{1, 2}, "transfer"}, {{2, 1}, "compute"}, {{2, 2}, "transfer"}}));
}

TEST(ChromeTrace, SlicesOfAThreadNeverOverlap) {
  Example busy{.ranks = 3, .microbatches = 6, .stages_per_rank = 2};
  busy.transfer = Nanoseconds{5'000'000};  // longer than the computations: several at a time
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
  for (const json& slice : phase(written(example_trace(busy)), "X"))
    threads[{slice["pid"], slice["tid"]}].push_back(
        {slice["ts"], slice["ts"].get<double>() + slice["dur"].get<double>()});
  EXPECT_GT(threads.size(), 6u);
  for (auto& [thread, spans] : threads) {
    std::ranges::sort(spans);
    for (std::size_t i = 1; i < spans.size(); ++i)
      EXPECT_GE(spans[i].first, spans[i - 1].second - 1e-6);
  }
}

TEST(ChromeTrace, FlowsLeadFromTheMakerOverTheTransferToTheUser) {
  const Trace trace = example_trace({.ranks = 4, .microbatches = 8, .stages_per_rank = 2});
  const json file = written(trace);
  const auto slices = phase(file, "X");
  const auto enclosing = [&](const json& bound) -> std::string {
    for (const json& slice : slices) {
      const double ts = bound["ts"], start = slice["ts"], length = slice["dur"];
      if (slice["pid"] == bound["pid"] && slice["tid"] == bound["tid"] && start <= ts &&
          ts < start + length)
        return slice["name"];
    }
    return "";
  };
  std::map<int, std::string> chains;
  for (const char* ph : {"s", "t", "f"})
    for (const json& bound : phase(file, ph)) chains[bound["id"]] += enclosing(bound) + " ";
  std::vector<std::string> texts;
  for (const auto& [id, chain] : chains) texts.push_back(chain);
  const auto transfers = std::ranges::count_if(
      trace.events, [](const Event& e) { return e.kind == TaskKind::Transfer; });
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(transfers));
  EXPECT_THAT(texts, testing::Contains("0F0 0SEND_F0 1F0 "));
  EXPECT_THAT(texts, testing::Contains("3F5 3SEND_F5 4F5 "));
  EXPECT_THAT(texts, testing::Contains("7B2 7SEND_B2 6B2 "));
}

TEST(ChromeTrace, SplitBackwardSendsItsGradientAfterTheInputPart) {
  const json file = written(example_trace({.split = true}));
  std::map<int, std::string> starts;
  for (const json& bound : phase(file, "s"))
    for (const json& slice : phase(file, "X"))
      if (slice["pid"] == bound["pid"] && slice["tid"] == bound["tid"] &&
          slice["ts"] <= bound["ts"] &&
          bound["ts"].get<double>() < slice["ts"].get<double>() + slice["dur"].get<double>())
        starts[bound["id"]] = slice["name"];
  EXPECT_EQ(starts.size(), 8u);
  for (const auto& [id, name] : starts) EXPECT_TRUE(name[1] == 'F' || name[1] == 'I') << name;
}

TEST(ChromeTrace, MemoryIsACounterOfEachRank) {
  const Trace trace = example_trace({});
  std::vector<std::int64_t> bytes;
  for (const json& counter : phase(written(trace), "C"))
    if (counter["pid"] == 2 && counter["name"] == "memory")
      bytes.push_back(counter["args"]["bytes"]);
  std::vector<std::int64_t> expected;
  for (const MemorySample& sample : trace.memory[1]) expected.push_back(sample.bytes.value);
  EXPECT_EQ(bytes, expected);
}

// Perfetto takes thread 0 for the idle one, and before August 2025 merged processes 0 and 1.
TEST(ChromeTrace, ProcessesAndThreadsCountFromOne) {
  const std::vector<Trace> traces{example_trace({.ranks = 3}), example_trace({})};
  const json file = written(traces);
  ASSERT_FALSE(file["traceEvents"].empty());
  for (const json& event : file["traceEvents"]) {
    const bool named = event["ph"] == "M", slice = event["ph"] == "X";
    EXPECT_GE(event["pid"].get<int>(), 1) << event;
    EXPECT_GE(event.value("tid", 1), 1) << event;
    EXPECT_TRUE(event.contains("name")) << event;
    EXPECT_TRUE(named || event["ts"] >= 0) << event;
    EXPECT_TRUE(!slice || event["dur"] >= 0) << event;
  }
}

// 1F1B on two ranks: rank 0 has two microbatches in flight from the second forward on, rank 1 one.
TEST(ChromeTrace, MicrobatchesInFlightAreACounterThatEndsAtNothing) {
  std::map<int, std::pair<int, int>> most_and_last;  // by process
  for (const json& counter : phase(written(example_trace({})), "C")) {
    if (counter["name"] != "microbatches in flight") continue;
    auto& [most, last] = most_and_last[counter["pid"]];
    last = counter["args"]["microbatches"];
    most = std::max(most, last);
  }
  EXPECT_EQ(most_and_last, (std::map<int, std::pair<int, int>>{{1, {2, 0}}, {2, {1, 0}}}));
}

// Each of the four values takes 0.1 ms from rank 0 to rank 1, and each gradient back.
TEST(ChromeTrace, TransfersUnderWayAreACounterOfEachLink) {
  std::map<std::string, double> busy, since;  // us, by link
  for (const json& counter : phase(written(example_trace({})), "C")) {
    if (!counter["args"].contains("transfers")) continue;
    const std::string link = counter["name"];
    if (counter["args"]["transfers"] == 1)
      since[link] = counter["ts"];
    else
      busy[link] += counter["ts"].get<double>() - since[link];
  }
  ASSERT_EQ(busy.size(), 2U);
  EXPECT_NEAR(busy["rank 0 to 1"], 400, 1e-6);
  EXPECT_NEAR(busy["rank 1 to 0"], 400, 1e-6);
}

// Where the trace knows how full links are, that is the counter, in percent, at the end nothing.
TEST(ChromeTrace, TheLoadOfEachLinkIsACounterWhereItIsKnown) {
  Trace trace = example_trace({.source = TraceSource::Simulated});
  trace.links = {{.link = "nic[0].up",
                  .capacity = {3.125e9},
                  .samples = {{Nanoseconds{1000}, 0.5}, {Nanoseconds{3000}, 0}}}};
  std::vector<std::pair<double, double>> loads;
  for (const json& counter : phase(written(trace), "C")) {
    EXPECT_FALSE(counter["args"].contains("transfers"));
    if (!counter["args"].contains("load")) continue;
    EXPECT_EQ(counter["name"], "nic[0].up, % of 3.13 GB/s");
    loads.emplace_back(counter["ts"], counter["args"]["load"]);
  }
  EXPECT_EQ(loads, (std::vector<std::pair<double, double>>{{1, 50}, {3, 0}}));
}

// The reserved colours of chrome://tracing (catapult, color_scheme.html) that are not for warnings.
TEST(ChromeTrace, ColoursAreTheReservedOnesNearestToThePalette) {
  const std::map<std::string, plots::Color> reserved{{"rail_response", {67, 135, 253}},
                                                     {"rail_animation", {244, 74, 63}},
                                                     {"rail_idle", {238, 142, 0}},
                                                     {"rail_load", {13, 168, 97}},
                                                     {"good", {0, 125, 0}},
                                                     {"black", {0, 0, 0}},
                                                     {"grey", {221, 221, 221}},
                                                     {"olive", {100, 100, 0}},
                                                     {"generic_work", {125, 125, 125}},
                                                     {"vsync_highlight_color", {0, 0, 255}}};
  const auto nearest = [&](plots::Paint paint) {
    const plots::Color wanted = plots::fill(paint);
    const auto distance = [&](const auto& one) {
      const auto square = [](int a, int b) { return (a - b) * (a - b); };
      return square(one.second.red, wanted.red) + square(one.second.green, wanted.green) +
             square(one.second.blue, wanted.blue);
    };
    return std::ranges::min_element(reserved, {}, distance)->first;
  };
  std::map<std::string, std::string> found;
  for (const bool split : {false, true})
    for (const json& slice : phase(written(example_trace({.split = split})), "X"))
      if (slice.contains("cname"))
        found[slice["name"].get<std::string>().substr(1, 1)] = slice["cname"];
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"F", nearest(plots::Paint::Forward)},
                                                       {"B", nearest(plots::Paint::Backward)},
                                                       {"I", nearest(plots::Paint::BackwardInput)},
                                                       {"W", nearest(plots::Paint::BackwardWeight)},
                                                       {"O", "black"}}));
}

TEST(ChromeTrace, SeveralTracesHaveProcessesAndFlowsOfTheirOwn) {
  const std::vector<Trace> traces{example_trace({}),
                                  example_trace({.source = TraceSource::Simulated})};
  const json file = written(traces);
  std::map<int, int> uses;
  for (const json& bound : phase(file, "s")) ++uses[bound["id"]];
  EXPECT_EQ(uses.size(), 16u);  // 2 x (4 forwards + 4 gradients), each number once
  int last = 0;
  for (const json& slice : phase(file, "X")) last = std::max(last, slice["pid"].get<int>());
  EXPECT_EQ(last, 5);  // ranks 1, 2, links 3; ranks 4, 5
}

TEST(ChromeTrace, OfTooManyEventsTheFirstAndTheLastAreWritten) {
  const Trace trace = example_trace({.ranks = 3, .microbatches = 20});
  const std::size_t most = 40;
  ASSERT_GT(trace.events.size(), 2 * most);
  std::ostringstream out;
  write_chrome_trace(out, trace, "t", most);
  const json file = json::parse(out.str());
  std::vector<double> whole, kept;
  for (const json& slice : phase(written(trace), "X")) whole.push_back(slice["ts"]);
  for (const json& slice : phase(file, "X")) kept.push_back(slice["ts"]);
  std::ranges::sort(whole), std::ranges::sort(kept);
  // What starts together is in or out together.
  const double from = whole[most / 2], to = whole[whole.size() - most / 2];
  std::erase_if(whole, [&](double start) { return from <= start && start < to; });
  EXPECT_EQ(kept, whole);
  EXPECT_NEAR(static_cast<double>(kept.size()), most, 3);
  const auto said = phase(file, "i");
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0]["ts"], from);
  EXPECT_THAT(said[0]["name"].get<std::string>(),
              ::testing::StartsWith(
                  "left out: " + std::to_string(trace.events.size() - kept.size()) + " events"));
  for (const char* ph : {"s", "t", "f", "C"})
    for (const json& event : phase(file, ph)) {
      const double at = event["ts"];
      EXPECT_TRUE(at < from || at >= to || std::string(ph) == "s") << event;
    }
  EXPECT_EQ(phase(file, "s").size(), phase(file, "f").size());
  EXPECT_TRUE(phase(written(trace), "i").empty());
}

TEST(ChromeTrace, IsValidForAnyNameAndForNothing) {
  EXPECT_EQ(written(Trace{}, "\"\\\x01 </script>")["otherData"]["title"], "\"\\\x01 </script>");
  EXPECT_EQ(written(Trace{}, "\xff")["otherData"]["title"], "\xef\xbf\xbd");
  EXPECT_TRUE(written(std::span<const Trace>{})["traceEvents"].empty());
}

}  // namespace
}  // namespace pfeife
