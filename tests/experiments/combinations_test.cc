// Any two keys of a config combine, or the table of what does not has both.
#include <gtest/gtest.h>

#include "experiments/pfeife.h"
#include "planner/ir/request/check.h"
#include "tests/support/source_folder.h"

namespace pfeife {
namespace {

struct Wish {
  const char* section;
  const char* text;
};

constexpr Wish kWishes[] = {{"plan", "families: [zb_greedy]"},
                            {"plan", "slices: [2]"},
                            {"plan", "head: auto"},
                            {"plan", "search: reference"},
                            {"plan", "recompute: full"},
                            {"plan", "recompute: blocks"},
                            {"plan", "recompute_except_last: true"},
                            {"plan", "offload: auto"},
                            {"plan", "receives: as_ready"},
                            {"plan", "order: least_live"},
                            {"plan", "cuts_at: blocks"},
                            {"plan", "cuts_at: layers"},
                            {"plan", "for: torch"},
                            {"plan", "reserve: 1 MiB"},
                            {"plan", "as_fast: 0.1"},
                            {"plan", "max_bubble: 0.99"},
                            {"plan", "allocator: none"},
                            {"plan", "devices: search"},
                            {"plan", "placement: search"},
                            {"plan", "microbatch_order: search"},
                            {"training", "microbatch_costs: [1, 2.5, 1, [0.5, 0.25]]"},
                            {"training", "mode: forward"},
                            {"training", "clip_norm: 1"},
                            {"training", "precision: bf16_amp"},
                            {"simulation", "jitter: {cv: 0.02, repetitions: 10, seed: 1}"},
                            {"calibration", "compute: 1.1"},
                            {"parallel", "dp: 2"}};

std::string config_of(std::span<const Wish> wishes, const std::filesystem::path& configs) {
  std::string text = "version: 1\nmodel: " + (configs / "models/tiny_gpt.pt2").string() +
                     "\ncluster: {file: " + (configs / "clusters/a100_sxm4_80gb_x8.yaml").string() +
                     ", set: {device_kinds.a100_sxm4_80gb.host_link: {bandwidth: 20 GB/s}}}\n"
                     "cases: {devices: 2, microbatches: 4}\nbaselines: []\n"
                     "engines: [estimate]\n";
  for (const std::string section : {"plan", "training", "simulation", "calibration", "parallel"}) {
    std::string keys;
    const bool plain = std::ranges::none_of(wishes, [](const Wish& wish) {
      return std::string_view(wish.text) == "search: reference";
    });
    if (section == "plan" && plain) keys = "iterations: 1, stages_per_rank: [1, 2]";
    for (const Wish& wish : wishes)
      if (wish.section == section) keys += (keys.empty() ? "" : ", ") + std::string(wish.text);
    if (!keys.empty()) text += section + ": {" + keys + "}\n";
  }
  return text;
}

/// "" = planned; else why not.
std::string outcome(const AskedCase& asked) {
  try {
    const Request& request = asked.request;
    const Planned planned = plan(load_model(request.model), asked.cluster, request);
    if (!planned.found()) return "nothing was found: " + planned.contestants.front().reason;
    const PricedPlan& best = planned.best();
    const auto bound = bound_of(planned);
    if (bound && bound->time > step_time(best.estimated)) return "below its bound";
    return planned.contestants.front().fits() ? "" : "the plan does not fit";
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// By the table, or by what a family or a framework of its own cannot do.
bool is_known(const std::string& refusal) {
  const auto says = [&](const char* words) { return refusal.find(words) != std::string::npos; };
  for (const char* words : {"has backwards, and training.mode is forward", "nothing is recomputed",
                            "torch.distributed.pipelining c"})
    if (says(words)) return true;
  return std::ranges::any_of(refused_combinations(), says, &RefusedCombination::reason);
}

std::string key_of(const Wish& wish) {
  const std::string text = wish.text;
  return std::string(wish.section) + "." + text.substr(0, text.find(':'));
}

TEST(Combinations, TwoKeysArePlannedOrStandInTheTable) {
  const std::filesystem::path configs = source_folder() / "configs";
  std::size_t planned = 0;
  for (std::size_t a = 0; a < std::size(kWishes); ++a)
    for (std::size_t b = a + 1; b < std::size(kWishes); ++b) {
      const Wish pair[] = {kWishes[a], kWishes[b]};
      if (key_of(pair[0]) == key_of(pair[1])) continue;
      const std::string name = std::string(pair[0].text) + " with " + pair[1].text;
      try {
        const AskedCase asked = request_of(config_of(pair, configs), configs / "c.yaml");
        EXPECT_EQ(outcome(asked), "") << name;
        ++planned;
      } catch (const ConfigError& refusal) {
        EXPECT_PRED1(is_known, refusal.what()) << name;
      }
    }
  EXPECT_GT(planned, 200u);
}

}  // namespace
}  // namespace pfeife
