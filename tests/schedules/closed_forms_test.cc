// Makespans and peaks that have a formula. p ranks, m microbatches, v stages a rank; f, b =
// forward, backward of a stage; i, w = its halves; c = transfer between ranks. One action at a time
// per rank, links without contention.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/schedules/oracle_csv.h"
#include "tests/schedules/timed.h"

namespace pfeife {
namespace {

/// Times in the files are multiples of 1/8: eight nanoseconds a unit make them whole.
constexpr std::int64_t kUnit = 8;
Nanoseconds units(double value) { return Nanoseconds{std::llround(value * kUnit)}; }

std::string family_of(const std::string& name) {
  if (name == "interleaved") return "interleaved_1f1b";
  if (name == "breadth_first") return "looped_bfs";
  return name == "zb_h2_span" ? "zb_h2" : name;
}
ScheduleSpec point(const std::string& family, std::size_t p, std::size_t m, std::size_t v = 1) {
  return {.family = family, .ranks = p, .microbatches = m, .stages_per_rank = v};
}
/// Microbatches of stages in flight (F done, B or I not), most at a time.
std::size_t peak_live_forwards(const Schedule& schedule, RankId rank) {
  std::size_t live = 0, peak = 0;
  for (const Cell& cell : schedule.rows[rank.index()])
    for_each_action(cell, [&](const Action& action) {
      if (action.op == Op::Forward) peak = std::max(peak, ++live);
      if (makes_input_gradient(action.op)) --live;
    });
  return peak;
}
std::vector<std::size_t> peaks(const ScheduleSpec& spec) {
  const Schedule schedule = generate(spec);
  std::vector<std::size_t> live;
  for (std::size_t r = 0; r < spec.ranks; ++r)
    live.push_back(peak_live_forwards(schedule, RankId{r}));
  return live;
}
Nanoseconds makespan(const ScheduleSpec& spec, Nanoseconds f, Nanoseconds i, Nanoseconds w,
                     Nanoseconds c) {
  return step_time(timed(spec, uniform_costs(spec.stages(), f, i, w, c)));
}

TEST(ClosedForms, EveryExampleOfTheTable) {
  const auto rows = oracle_rows("oracles/closed_forms.csv");
  EXPECT_EQ(rows.size(), 52u);
  for (const OracleRow& row : rows) {
    const auto number = [&](const char* key) { return std::stoul(row.at(key)); };
    const ScheduleSpec spec =
        point(family_of(row.at("family")), number("p"), number("m"), number("v"));
    const auto halves = split(row.at("backward"), '+');  // "2", or "2+1" = I + W
    const Nanoseconds w = halves.size() > 1 ? units(std::stod(halves[1])) : Nanoseconds{0};
    const Trace trace = timed(
        spec, uniform_costs(spec.stages(), units(std::stod(row.at("forward"))),
                            units(std::stod(halves[0])), w, units(std::stod(row.at("comm")))));
    const Nanoseconds time = row.at("family") == "zb_h2_span" ? span(trace) : step_time(trace);
    EXPECT_EQ(time, units(std::stod(row.at("makespan"))))
        << row.at("family") << " " << spec.ranks << " " << spec.microbatches;
    const std::string live = row.at("peak_live_forwards_per_rank");
    if (!live.empty()) {
      EXPECT_EQ(peaks(spec), numbers(live));
    }
  }
}

// Pairs that hide nothing take f + b: the rank of the last stage has m - 1 of them behind p
// forwards and before p backwards, as 1F1B has m of each. With c for a pair, longer than f and than
// b, that is p (f + b) + (m - 1) c. Rank r has 2 (p - 1 - r) + 1 microbatches in flight, and
// another one in a pair.
TEST(ClosedForms, CombinedPairsSaveWhatTheyHideInAllMicrobatchesButOne) {
  const Nanoseconds f{3}, i{4}, w{2};
  for (std::size_t p = 1; p <= 5; ++p)
    for (std::size_t m = 1; m <= 12; ++m)
      for (const Nanoseconds c : {f + i + w, Nanoseconds{7}}) {
        const ScheduleSpec spec = point("combined_1f1b", p, m);
        StageCosts costs = uniform_costs(p, f, i, w, Nanoseconds{0});
        for (std::size_t s = 0; s < p; ++s)
          costs.side_by_side.push_back({StageId{s}, StageId{s}, c, c});
        EXPECT_EQ(step_time(timed(spec, costs)), p * (f + i + w) + (m - 1) * c) << p << " " << m;
        for (std::size_t r = 0; r < p; ++r)
          EXPECT_EQ(peaks(spec)[r], std::min(2 * (p - 1 - r) + 2, m));
      }
  for (std::size_t p = 2; p <= 4; ++p)
    for (std::size_t v = 2; v <= 3; ++v)
      for (std::size_t m = 2 * p; m <= 4 * p; m += p)
        EXPECT_EQ(makespan(point("combined_1f1b", p, m, v), f, i, w, Nanoseconds{0}),
                  makespan(point("interleaved_1f1b", p, m, v), f, i, w, Nanoseconds{0}));
}

// The last microbatch enters rank 0 after m forwards; each further hop costs f + c; backwards
// mirror that.
TEST(ClosedForms, GPipeTakesMPlusPMinusOneOfBothAndTwiceTheTransfersOfTheLine) {
  for (std::size_t p = 1; p <= 6; ++p)
    for (std::size_t m = 1; m <= 9; ++m)
      for (const int c : {0, 1, 7, 40}) {
        const auto steps = static_cast<std::int64_t>(m + p - 1),
                   hops = static_cast<std::int64_t>(p - 1);
        EXPECT_EQ(makespan(point("gpipe", p, m), Nanoseconds{3}, Nanoseconds{4}, Nanoseconds{2},
                           Nanoseconds{c}),
                  Nanoseconds{steps * 9 + 2 * hops * c});
      }
}

// A line of unequal machines: everything passes each once, and the slowest m - 1 times more.
TEST(ClosedForms, GPipeWithUnequalStagesIsGovernedByTheSlowest) {
  std::mt19937 random(7);
  for (int sample = 0; sample < 200; ++sample) {
    const std::size_t p = 1 + random() % 8, m = 1 + random() % 12;
    StageCosts costs = uniform_costs(p, {}, {}, {}, Nanoseconds{random() % 30});
    Nanoseconds sum_f{0}, max_f{0}, sum_b{0}, max_b{0};
    for (StageCost& stage : costs.stages) {
      stage.forward = Nanoseconds{1 + random() % 50};
      stage.backward_input = Nanoseconds{1 + random() % 50};
      stage.backward_weight = Nanoseconds{random() % 50};
      sum_f += stage.forward, max_f = std::max(max_f, stage.forward);
      sum_b += stage.backward(), max_b = std::max(max_b, stage.backward());
    }
    const auto again = static_cast<std::int64_t>(m - 1);
    const Nanoseconds c = p > 1 ? costs.pairs[0].forward_time : Nanoseconds{0};
    EXPECT_EQ(
        step_time(timed(point("gpipe", p, m), costs)),
        sum_f + again * max_f + sum_b + again * max_b + 2 * static_cast<std::int64_t>(p - 1) * c);
  }
}

// Filling and draining as GPipe; in between, of every p microbatches p - 1 expose two transfers.
TEST(ClosedForms, OneForwardOneBackwardExposesTwoTransfersForAllButEveryPthMicrobatch) {
  for (std::size_t p = 1; p <= 7; ++p)
    for (std::size_t m = 1; m <= 20; ++m)
      for (const int c : {0, 1, 3, 12}) {
        const auto P = static_cast<std::int64_t>(p), M = static_cast<std::int64_t>(m);
        const std::int64_t exposed = 2 * (P - 1) + 2 * (M - 1) - 2 * ((M - 1 + P - 1) / P);
        EXPECT_EQ(makespan(point("1f1b", p, m), Nanoseconds{3}, Nanoseconds{4}, Nanoseconds{2},
                           Nanoseconds{c}),
                  Nanoseconds{(M + P - 1) * 9 + c * exposed})
            << p << " " << m << " " << c;
        for (std::size_t r = 0; r < p; ++r)
          EXPECT_EQ(peaks(point("1f1b", p, m))[r], std::min(p - r, m));
      }
}

TEST(ClosedForms, InterleavingDividesTheBubbleByV) {
  for (std::size_t p = 2; p <= 5; ++p)
    for (std::size_t v = 2; v <= 4; ++v)
      for (std::size_t m = p; m <= 3 * p; m += p) {
        const Nanoseconds expected{static_cast<std::int64_t>(m * v + p - 1) * 9};
        EXPECT_EQ(makespan(point("interleaved_1f1b", p, m, v), Nanoseconds{3}, Nanoseconds{4},
                           Nanoseconds{2}, {}),
                  expected);
        const auto live = peaks(point("interleaved_1f1b", p, m, v));
        for (std::size_t r = 0; r < p; ++r)
          EXPECT_EQ(live[r], std::min((v - 1) * p + 2 * (p - 1 - r) + 1, m * v));
      }
}

// With m < p the loop itself is the limit: a microbatch is back at rank 0 only after p steps.
TEST(ClosedForms, BreadthFirstWithAnyNumberOfMicrobatches) {
  for (std::size_t p = 1; p <= 5; ++p)
    for (std::size_t v = 2; v <= 4; ++v)
      for (std::size_t m = 1; m <= 11; ++m) {
        const std::size_t steps = m >= p ? m * v + p - 1 : m + p - 1 + (v - 1) * p;
        EXPECT_EQ(makespan(point("looped_bfs", p, m, v), Nanoseconds{3}, Nanoseconds{4},
                           Nanoseconds{2}, {}),
                  Nanoseconds{static_cast<std::int64_t>(steps) * 9});
      }
}

// H1 fills w of every hop's wait with W; H2 starts early enough that only the last hop's w is
// missing, both ways.
TEST(ClosedForms, ZeroBubbleByHand) {
  for (std::int64_t p = 1; p <= 6; ++p)
    for (std::int64_t m = 2 * p - 1; m <= 2 * p + 6; ++m)
      for (const auto& [f, i, w] : {std::tuple{3, 4, 2}, {5, 5, 5}, {2, 7, 1}}) {
        const Nanoseconds F{f}, I{i}, W{w};
        const auto P = static_cast<std::size_t>(p), M = static_cast<std::size_t>(m);
        EXPECT_EQ(makespan(point("zb_h1", P, M), F, I, W, {}),
                  Nanoseconds{m * (f + i + w) + (p - 1) * (f + i - w)});
        const Trace h2 = timed(point("zb_h2", P, M), uniform_costs(P, F, I, W, Nanoseconds{0}));
        EXPECT_EQ(span(h2), Nanoseconds{m * (f + i + w) + (p - 1) * (f + i - 2 * w)})
            << p << " " << m;
      }
}

TEST(ClosedForms, WithoutTransfersGPipeAndOneForwardOneBackwardTakeEquallyLong) {
  for (std::size_t p = 1; p <= 6; ++p)
    for (std::size_t m = 1; m <= 12; ++m)
      EXPECT_EQ(makespan(point("gpipe", p, m), Nanoseconds{3}, Nanoseconds{4}, Nanoseconds{2}, {}),
                makespan(point("1f1b", p, m), Nanoseconds{3}, Nanoseconds{4}, Nanoseconds{2}, {}));
}

TEST(LoopedMakespans, OfTheSearchSetUnderThreeCosts) {
  for (const OracleRow& row : oracle_rows("oracles/looped_makespans.csv")) {
    const auto number = [&](const char* key) { return std::stoul(row.at(key)); };
    const ScheduleSpec spec{.family = "looped",
                            .ranks = number("D"),
                            .microbatches = number("N"),
                            .stages_per_rank = number("V"),
                            .loop_batch = number("B_l"),
                            .prefetch = {number("B_f")}};
    EXPECT_EQ(makespan(spec, units(1), units(1), units(1), units(0)),
              units(std::stod(row.at("T_f1_b2_c0"))));
    EXPECT_EQ(makespan(spec, units(1), units(1), units(1), units(0.25)),
              units(std::stod(row.at("T_f1_b2_c0.25"))));
    StageCosts growing = uniform_costs(spec.stages(), {}, {}, {}, units(1));
    for (std::size_t s = 0; s < spec.stages(); ++s) {
      growing.stages[s].forward = units(10 + static_cast<double>(s));
      growing.stages[s].backward_input = units(20 + 3 * static_cast<double>(s));
    }
    EXPECT_EQ(step_time(timed(spec, growing)), units(std::stod(row.at("T_f10+s_b20+3s_c1"))))
        << spec.ranks << knobs(spec);
    EXPECT_EQ(peaks(spec), numbers(row.at("peak_live_forwards_per_rank")));
  }
}

}  // namespace
}  // namespace pfeife
