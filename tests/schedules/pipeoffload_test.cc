// Activations in memory as PipeOffload published them (figure 15, arXiv 2503.01328: A100-80, at
// most one layer a stage), in whole GB. A layer saves 20 B a token and hidden number, norms and
// GeLU computed again: 16 of them without keys and values, which eight groups share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "planner/cost/estimate/memory.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/schedules/oracle_csv.h"

namespace pfeife {
namespace {

/// A row of the figure.
struct Setting {
  std::size_t devices = 0, layers = 0, microbatches = 0;
  double hidden = 0, heads = 0, tokens = 0, published = 0;  // GiB

  double layer() const { return (16 + 4 * 8 / heads) * tokens * hidden / std::pow(2, 30); }
  /// Two of them are without a layer.
  std::size_t stages_per_rank() const { return (layers + 2 + devices - 1) / devices; }
};

std::vector<Setting> settings_of(const std::string& schedule) {
  std::vector<Setting> settings;
  for (const auto& row : oracle_rows("offload/pipeoffload_fig15.csv")) {
    const std::string& published = row.at("activation_GB");
    if (row.at("schedule") != schedule || !std::isdigit(published.front())) continue;
    settings.push_back({std::stoul(row.at("gpus")), std::stoul(row.at("layers")),
                        std::stoul(row.at("batch")), std::stod(row.at("hidden")),
                        std::stod(row.at("heads")), std::stod(row.at("sequence")),
                        std::stod(published)});
  }
  return settings;
}

/// Layers in memory on the fullest rank where every stage has one.
double fullest(const std::string& family, const Setting& setting) {
  const bool one_stage = family == "1f1b";
  const ScheduleSpec spec{.family = family,
                          .ranks = setting.devices,
                          .microbatches = setting.microbatches,
                          .stages_per_rank = one_stage ? 1 : setting.stages_per_rank()};
  const Placement placement = placement_for(spec);
  const Nanoseconds alike{1000};
  StageCosts costs = uniform_costs(spec.stages(), alike, alike, alike, Nanoseconds{0});
  costs.values.clear();
  for (StageCost& stage : costs.stages) stage.saved = Bytes{1};
  const Schedule lowered = lower(generate(spec), costs, placement);
  const Bytes stages = std::ranges::max(peak_memory(lowered, costs, placement));
  const double layers_of_stage =
      one_stage ? static_cast<double>(setting.layers) / static_cast<double>(spec.ranks) : 1;
  return static_cast<double>(stages.value) * layers_of_stage;
}

// "GIS" is interleaving with W apart and D - r microbatches of the last loop in flight, as zb1p.
TEST(PipeOffload, ActivationsInFlightAreThePublishedOnes) {
  const std::pair<const char*, const char*> schedules[] = {
      {"1f1b", "1f1b"}, {"1f1b_interleaved", "interleaved_1f1b"}, {"gis", "zb1p"}};
  std::size_t compared = 0;
  for (const auto& [name, family] : schedules)
    for (const Setting& setting : settings_of(name)) {
      EXPECT_NEAR(fullest(family, setting) * setting.layer(), setting.published,
                  0.5 + 0.03 * setting.published)
          << family << " on " << setting.devices << ", " << setting.tokens << " tokens";
      ++compared;
    }
  EXPECT_EQ(compared, 16U);
}

}  // namespace
}  // namespace pfeife
