// What the page's script reads, against other ways to say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "plots/report/packed.h"
#include "plots/report/parts.h"
#include "tests/plots/example_report.h"
#include "tests/plots/example_traces.h"
#include "tests/support/mixed_engines.h"

namespace pfeife {
namespace {

using nlohmann::json;

std::int64_t digit_of(char c) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return static_cast<std::int64_t>(digits.find(c));
}
std::int64_t read_digits(const std::string& text, std::size_t& at) {
  std::int64_t value = 0;
  for (int shift = 0;; shift += 5) {
    const std::int64_t digit = digit_of(text.at(at++));
    value |= (digit & 31) << shift;
    if (digit < 32) return value;
  }
}
std::vector<std::int64_t> unpacked(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '!') {
      plain += text[at++];
      continue;
    }
    const auto distance = static_cast<std::size_t>(read_digits(text, ++at));
    for (auto length = read_digits(text, at); length > 0; --length)
      plain += plain.at(plain.size() - distance);
  }
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at < plain.size();) {
    const std::int64_t value = read_digits(plain, at);
    numbers.push_back(value % 2 == 0 ? value / 2 : -(value + 1) / 2);
  }
  return numbers;
}

// 0, 1, -1 and 16 are 0, 2, 1 and 32: A, C, B and (0 with more behind it, 1) gB. Of 100 zeros the
// first stands for the other 99, which are 3 x 32 + 3.
TEST(Packed, NumbersAreDigitsOfFiveBitsAndRepeatsAreNamed) {
  EXPECT_EQ(plots::packed(std::vector<std::int64_t>{0, 1, -1, 16}), "ACBgB");
  EXPECT_EQ(plots::packed(std::vector<std::int64_t>{}), "");
  const std::string zeros = plots::packed(std::vector<std::int64_t>(100, 0));
  EXPECT_LT(zeros.size(), 16u);
  EXPECT_EQ(unpacked(zeros), std::vector<std::int64_t>(100, 0));
}

TEST(Packed, WhatIsReadIsWhatWasWritten) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> numbers;
    const auto values = 1 + random() % 40;
    const std::int64_t most = std::int64_t{1} << (random() % 53);
    for (std::size_t i = random() % 300; i > 0; --i)
      numbers.push_back(static_cast<std::int64_t>(random() % values) * most / 40 *
                        (random() % 2 == 0 ? 1 : -1));
    EXPECT_EQ(unpacked(plots::packed(numbers)), numbers) << round;
  }
}

// Each number of an event is the sum of the changes of its class; an event begins when the one that
// it waited for ends, and later by `start`.
TEST(Packed, ATraceIsThereInFull) {
  const Trace trace = example_trace({.ranks = 4, .microbatches = 8, .stages_per_rank = 2});
  const json packed = json::parse(plots::packed_trace(trace, {}));
  const auto column = [&](const char* name) { return unpacked(packed.at(name)); };
  const auto event = column("event"), micro = column("micro"), time = column("time"),
             waits = column("waits"), which = column("which"), start = column("start");
  ASSERT_EQ(event.size(), trace.events.size());
  struct State {
    std::int64_t micro = -1, time = 0, waits = 0, which = 0;
    std::vector<std::size_t> events;
  };
  std::vector<State> classes(packed.at("classes").size());
  std::int64_t number = 0;
  for (std::size_t i = 0; i < event.size(); ++i)
    classes.at(static_cast<std::size_t>(number += event[i])).events.push_back(i);
  std::vector<std::size_t> seen(classes.size());
  std::size_t m = 0, w = 0;
  number = 0;
  for (std::size_t i = 0; i < event.size(); ++i) {
    const auto own = static_cast<std::size_t>(number += event[i]);
    State& state = classes[own];
    std::string text = packed["classes"][own][0];
    if (const auto mark = text.find('#'); mark != std::string::npos)
      text.replace(mark, 1, std::to_string(state.micro += micro[m++] + 1));
    EXPECT_EQ(text, to_string(trace.events[i].cell));
    EXPECT_EQ(state.time += time[i], (trace.events[i].end - trace.events[i].start).count());
    const auto place = static_cast<std::int64_t>(seen[own]++);
    state.waits += waits[i];
    ASSERT_EQ(state.waits > 0, trace.events[i].waited_for.has_value()) << text;
    Nanoseconds before{0};
    if (state.waits > 0) {
      const State& cause = classes.at(static_cast<std::size_t>(state.waits - 1));
      state.which += which[w++];
      const std::size_t found = cause.events.at(static_cast<std::size_t>(place + state.which));
      EXPECT_EQ(found, *trace.events[i].waited_for) << text;
      before = trace.events[found].end;
    }
    EXPECT_EQ(before.count() + start[i], trace.events[i].start.count()) << text;
  }
}

TEST(Packed, AStepOfManyMicrobatchesIsSmall) {
  const Trace few = example_trace({.ranks = 4, .microbatches = 8});
  const Trace many = example_trace({.ranks = 4, .microbatches = 256});
  ASSERT_GT(many.events.size(), 25 * few.events.size());
  EXPECT_LT(plots::packed_trace(many, {}).size(), 5 * plots::packed_trace(few, {}).size())
      << "the steady state repeats";
}

TEST(PageData, TextsAreJsonAndNoHtml) {
  const std::string text = "a\"\\</script>&\n\x01 é";
  const std::string written = plots::json_text(text);
  EXPECT_EQ(json::parse(written), text);
  EXPECT_EQ(written.find_first_of("<>&/\n\x01"), std::string::npos);
  EXPECT_EQ(json::parse(plots::json_text("a\xff")), "a\xEF\xBF\xBD");
}

// By hand in mixed_engines.h: the simulation compares, the measured time stands beside it.
TEST(PageData, PlansHaveTheirFiguresOfOneEngine) {
  ReportInput input;
  input.cases = {mixed_case(), measured_case()};
  input.cases[1].plans[3].reason = "no cuts fit";
  const json data = json::parse(plots::page_data(input));
  const json& mixed = data["cases"][0];
  EXPECT_EQ(mixed["engine"], "simulated");
  EXPECT_EQ(mixed["beside"], "1f1b");
  EXPECT_EQ(mixed["best"], 0);
  EXPECT_EQ(mixed["plans"][0]["simulated"], 250'000'000);
  EXPECT_EQ(mixed["plans"][0]["measured"], 1'000'000'000);
  EXPECT_NEAR(mixed["plans"][0]["error"].get<double>(), -0.75, 1e-9);
  EXPECT_FALSE(mixed["plans"][1].contains("measured"));
  EXPECT_EQ(mixed["plans"][3]["fits"], false);
  EXPECT_EQ(data["cases"][1]["engine"], "measured");
  EXPECT_EQ(data["cases"][1]["best"], 1);
  EXPECT_EQ(data["cases"][1]["plans"][3]["reason"], "no cuts fit");
}

TEST(PageData, PlansHaveWhatTheyOffloadToHosts) {
  ReportInput input;
  input.cases = {mixed_case()};
  input.cases[0].plans[0].need.host = {3 * kGiB, Bytes{0}, kGiB};
  input.cases[0].plans[0].need.host_limit = 2 * kGiB;
  const json data = json::parse(plots::page_data(input));
  EXPECT_EQ(data["cases"][0]["plans"][0]["hosts"], "host 0: 3 GiB, host 2: 1 GiB; limit 2 GiB");
  EXPECT_FALSE(data["cases"][0]["plans"][1].contains("hosts"));
}

// Seven causes of a rank's step add up to it; eight terms of memory to its peak.
TEST(PageData, PartsHaveAsManyNamesAsFigures) {
  const json data = json::parse(plots::page_data(example_report()));
  for (const json& report_case : data["cases"])
    for (const json& plan : report_case["plans"]) {
      for (const json& parts : plan["contents"]) EXPECT_EQ(parts.size(), data["contents"].size());
      for (const json& times : plan["times"]) {
        ASSERT_EQ(times.size(), data["causes"].size());
        std::int64_t sum = 0;
        for (const json& time : times) sum += time.get<std::int64_t>();
        EXPECT_EQ(sum, plan["simulated"].get<std::int64_t>());
      }
    }
  EXPECT_EQ(data["cases"][1]["traces"].size(), 3u) << "of the plans that there are";
}

}  // namespace
}  // namespace pfeife
