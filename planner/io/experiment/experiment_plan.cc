// `plan` of an experiment: what is searched, or given.
#include <algorithm>
#include <set>

#include "planner/io/cluster/device_list.h"
#include "planner/io/experiment/experiment_case.h"

namespace pfeife {
namespace {

void read_cuts(const YamlNode& node, PlanSettings& plan) {
  if (node.is_sequence()) {
    plan.cuts = PlanSettings::Cuts::Given;
    plan.given_cuts = cut_list(node);
    return;
  }
  using Cuts = PlanSettings::Cuts;
  plan.cuts = node.as_one_of<Cuts>({{"search", Cuts::Search}, {"each_layer", Cuts::EachLayer}});
}

void read_rank_devices(const YamlNode& node, PlanSettings& plan) {
  if (node.is_scalar() && node.as_string() == "search") {
    plan.search_devices = true;
    return;
  }
  if (!node.is_sequence()) node.fail("expected the device of each rank, such as [0, 1], or search");
  plan.devices = device_list(node);
}

void read_search(const YamlNode& node, const ExperimentRules& rules, PlanSettings& plan) {
  if (const auto families = node.find("families")) {
    std::vector<std::string> words = rules.families;
    words.insert(words.end(), {"all", "certified"});
    plan.families = family_names(*families, words);
  }
  if (const auto stages = node.find("stages_per_rank")) {
    std::set<std::size_t> values;
    for (const YamlNode& item : stages->items_or_self()) values.insert(item.as_count(1, 1000));
    plan.stages_per_rank.assign(values.begin(), values.end());
  }
  if (const auto search = node.find("search"))
    plan.reference = search->as_one_of<bool>({{"planner", false}, {"reference", true}});
  if (const auto iterations = node.find("iterations"))
    if (!iterations->is_scalar() || iterations->as_string() != "default")
      plan.iterations = iterations->as_count(1);
  if (const auto cuts = node.find("cuts")) read_cuts(*cuts, plan);
  if (const auto order = node.find("order")) {
    std::vector<std::pair<std::string, std::string>> words{{"search", "search"}};
    for (const std::string& name : rules.orders) words.emplace_back(name, name);
    plan.order = order->as_one_of<std::string>(words);
  }
  if (const auto except = node.find("recompute_except_last"))
    plan.recompute_except_last = except->as_bool();
  if (const auto receives = node.find("receives"))
    plan.receives = receives->as_one_of<Receives>(
        {{"if_needed", Receives::AtNeed}, {"as_ready", Receives::AsReady}});
  if (const auto use = node.find("for"))
    plan.for_torch = use->as_one_of<bool>({{"pfeife", false}, {"torch", true}});
  if (plan.for_torch) plan.at_blocks = true, plan.recompute = Recompute::None;
  if (const auto recompute = node.find("recompute"))
    plan.recompute = recompute_setting(*recompute, true);
  if (const auto at = node.find("cuts_at"))
    plan.at_blocks = at->as_one_of<bool>({{"layers", false}, {"blocks", true}});
}

}  // namespace

std::vector<std::int32_t> cut_list(const YamlNode& node) {
  std::vector<std::int32_t> cuts;
  for (const YamlNode& item : node.items()) {
    cuts.push_back(static_cast<std::int32_t>(item.as_int(0, 1'000'000)));
    if (cuts.size() > 1 && cuts[cuts.size() - 2] >= cuts.back())
      item.fail("cuts must increase from left to right");
  }
  return cuts;
}

Recompute recompute_setting(const YamlNode& node, bool if_needed) {
  std::vector<std::pair<std::string, Recompute>> words;
  for (const Recompute one : {Recompute::None, Recompute::IfNeeded, Recompute::Full,
                              Recompute::Choose, Recompute::Blocks, Recompute::Attention})
    if (if_needed || one != Recompute::IfNeeded) words.emplace_back(to_string(one), one);
  return node.as_one_of<Recompute>(words);
}

std::vector<std::string> family_names(const YamlNode& node,
                                      const std::vector<std::string>& families) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const std::string& family : families) words.emplace_back(family, family);
  std::vector<std::string> names;
  for (const YamlNode& item : node.items_or_self()) {
    names.push_back(item.as_one_of<std::string>(words));
    if (std::count(names.begin(), names.end(), names.back()) > 1)
      item.fail("\"" + names.back() + "\" is here twice");
  }
  return names;
}

void read_plan_settings(const YamlNode& node, const std::filesystem::path& folder,
                        const ExperimentRules& rules, CaseConfig& config) {
  PlanSettings& plan = config.plan;
  if (node.is_map() && node.find("file")) {
    node.check_keys({"file", "reserve"});
    plan.file = input_file(node.at("file"), folder, "plan.file", config);
  } else if (node.is_map() && node.find("schedule")) {
    node.check_keys({"schedule", "cuts", "reserve", "devices"});
    plan.schedule = input_file(node.at("schedule"), folder, "plan.schedule", config);
    read_cuts(node.at("cuts"), plan);
  } else {
    node.refuse_old("loops", "stages_per_rank");
    node.check_keys({"families", "stages_per_rank", "search", "iterations", "reserve", "cuts",
                     "recompute", "recompute_except_last", "receives", "order", "devices", "file",
                     "schedule", "cuts_at", "for"});
    read_search(node, rules, plan);
  }
  if (const auto reserve = node.find("reserve")) plan.reserve = reserve->as_bytes();
  if (const auto devices = node.find("devices")) read_rank_devices(*devices, plan);
}

}  // namespace pfeife
