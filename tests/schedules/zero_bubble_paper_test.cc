// Bubble rates of "Zero Bubble Pipeline Parallelism" (Qi et al., ICLR 2024): twelve settings with
// the profiled times of F, B (here I), W and transfer; bubble = 1 - m (F + I + W) / T, printed with
// four decimals.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/schedules/oracle_csv.h"
#include "tests/schedules/timed.h"

namespace pfeife {
namespace {

struct Setting {
  explicit Setting(const OracleRow& row) : row(row) {}
  const OracleRow& row;

  std::size_t count(const char* key) const { return std::stoul(row.at(key)); }
  double ms(const char* key) const { return std::stod(row.at(key)); }
  ScheduleSpec point(const char* family, std::size_t stages_per_rank = 1) const {
    return {.family = family,
            .ranks = count("p"),
            .microbatches = count("m"),
            .stages_per_rank = stages_per_rank};
  }
  /// Stage times divided among the `stages_per_rank` stages of a rank; the transfer is not.
  StageCosts costs(std::size_t stages_per_rank = 1) const {
    const auto part = [&](const char* key) {
      return nanoseconds_from_ms(ms(key) / static_cast<double>(stages_per_rank));
    };
    return uniform_costs(count("p") * stages_per_rank, part("TF_ms"), part("TB_ms"), part("TW_ms"),
                         nanoseconds_from_ms(ms("Tcomm_ms")));
  }
  std::string bubble(Nanoseconds time) const {
    const double ideal =
        static_cast<double>(count("m")) * (ms("TF_ms") + ms("TB_ms") + ms("TW_ms"));
    char text[16];
    std::snprintf(text, sizeof text, "%.4f", 1 - ideal / milliseconds(time));
    return text;
  }
};

class ZeroBubblePaper : public ::testing::TestWithParam<int> {
 protected:
  OracleRow row =
      oracle_rows("oracles/zb_bubble_rates.csv").at(static_cast<std::size_t>(GetParam()));
  Setting setting{row};
  /// Chunk times are rounded to nanoseconds: half of one for each action on the critical path.
  void expect_ms(Nanoseconds time, const char* key) const {
    const double actions =
        4 * static_cast<double>(setting.count("m") * setting.count("v") + 2 * setting.count("p"));
    EXPECT_NEAR(milliseconds(time), setting.ms(key), actions * 0.5e-6) << key;
  }
};
INSTANTIATE_TEST_SUITE_P(Settings, ZeroBubblePaper, ::testing::Range(0, 12));

TEST_P(ZeroBubblePaper, OneForwardOneBackward) {
  const Nanoseconds time = step_time(timed(setting.point("1f1b"), setting.costs()));
  EXPECT_EQ(setting.bubble(time), row.at("bub_1F1B"));
  expect_ms(time, "own_1F1B_ms");
}

TEST_P(ZeroBubblePaper, HandmadeScheduleH1) {
  const Trace trace = timed(setting.point("zb_h1"), setting.costs());
  EXPECT_EQ(setting.bubble(step_time(trace)), row.at("bub_ZBH1"));
  EXPECT_EQ(setting.bubble(span(trace)), row.at("bub_ZBH1"));
  expect_ms(step_time(trace), "own_ZBH1_ms");
}

TEST_P(ZeroBubblePaper, HandmadeScheduleH2WhereTheOptimizerNeedNotWait) {
  const Nanoseconds time = span(timed(setting.point("zb_h2"), setting.costs()));
  EXPECT_EQ(setting.bubble(time), row.at("bub_ZBH2"));
  expect_ms(time, "own_ZBH2_span_ms");
}

TEST_P(ZeroBubblePaper, InterleavedWithAllDependencies) {
  const std::size_t v = setting.count("v");
  const Nanoseconds time = step_time(timed(setting.point("interleaved_1f1b", v), setting.costs(v)));
  EXPECT_EQ(setting.bubble(time), row.at("bub_1F1BI_full_dependency"));
  expect_ms(time, "own_1F1BI_full_ms");
}

/// The authors' program lets a rank's next stage wait for the stage before it, on the other end of
/// the line, only for microbatch 0 of every group of p: the edges left out here.
DependencyGraph without_most_loop_edges(const DependencyGraph& graph, std::size_t ranks) {
  DependencyGraph fewer = graph;
  fewer.edges.clear();
  for (std::size_t t = 0; t < graph.size(); ++t) {
    for (const Edge& edge : graph.edges_into(TaskId{t})) {
      const auto* sent = std::get_if<Action>(&graph.tasks[edge.from.index()].cell);
      const bool stages_per_rank = sent->op == Op::Send &&
                                   graph.tasks[t].kind == TaskKind::Compute &&
                                   std::max(sent->stage, *sent->peer).index() % ranks == 0;
      if (!stages_per_rank || sent->microbatch->index() % ranks == 0) fewer.edges.push_back(edge);
    }
    fewer.edge_begin[t + 1] = static_cast<std::uint32_t>(fewer.edges.size());
  }
  return fewer;
}

TEST_P(ZeroBubblePaper, InterleavedAsPublishedLacksOneSetOfDependencies) {
  const std::size_t v = setting.count("v");
  const ScheduleSpec spec = setting.point("interleaved_1f1b", v);
  const StageCosts costs = setting.costs(v);
  const Schedule lowered = lower(generate(spec), costs, placement_for(spec));
  const DependencyGraph graph = dependencies(lowered, stage_graph(costs), placement_for(spec), {});
  const auto answer = estimate(without_most_loop_edges(graph, spec.ranks), costs);
  ASSERT_TRUE(std::holds_alternative<Trace>(answer));
  const Nanoseconds time = step_time(std::get<Trace>(answer));
  EXPECT_EQ(setting.bubble(time), row.at("bub_1F1BI_published"));
  expect_ms(time, "own_1F1BI_quirk_ms");
}

}  // namespace
}  // namespace pfeife
