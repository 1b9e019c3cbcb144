#include "planner/io/plan/plan_file.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "planner/io/cluster/device_list.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/yaml_document.h"
#include "planner/io/model/training_yaml.h"
#include "planner/io/plan/plan_bound.h"
#include "planner/io/plan/plan_files.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

constexpr std::int64_t kVersion = 3;

using Entries = std::vector<YamlEntry>;

YamlValue number(std::int64_t value) { return yaml_scalar(std::to_string(value)); }

template <class T, class Make>
YamlValue list(const T& values, const Make& make) {
  std::vector<YamlValue> items;
  for (const auto& value : values) items.push_back(make(value));
  return yaml_sequence(std::move(items));
}

YamlValue file_and_digest(const std::string& file, const std::string& digest) {
  return yaml_map({{"file", yaml_string(file), {}}, {"digest", yaml_string(digest), {}}});
}

YamlValue schedule_value(const Plan& plan, const std::string& digest) {
  Entries entries{
      {"family", yaml_string(plan.spec.family), {}},
      {"stages_per_rank", number(static_cast<std::int64_t>(plan.spec.stages_per_rank)), {}}};
  if (plan.spec.loop_batch)
    entries.push_back({"loop_batch", number(static_cast<std::int64_t>(*plan.spec.loop_batch)), {}});
  if (!plan.spec.prefetch.empty())
    entries.push_back({"prefetch",
                       list(plan.spec.prefetch,
                            [](std::size_t p) { return number(static_cast<std::int64_t>(p)); }),
                       {}});
  entries.push_back({"file", yaml_string("schedule.csv"), {}});
  entries.push_back({"digest", yaml_string(digest), {}});
  return yaml_map(std::move(entries));
}

YamlValue placement_value(const Placement& placement) {
  const auto id = [](auto value) { return number(value.value); };
  return yaml_map({{"rank_of_stage", list(placement.rank_of_stage, id), {}},
                   {"device_of_rank", list(placement.device_of_rank, id), {}}});
}

YamlValue found_value(const std::map<std::string, std::string>& found) {
  Entries entries;
  for (const auto& [key, value] : found) entries.push_back({key, yaml_string(value), {}});
  return yaml_map(std::move(entries));
}

// Reading.

void read_file_and_digest(const YamlNode& node, std::string& file, std::string& digest) {
  node.check_keys({"file", "digest"});
  file = node.at("file").as_string();
  digest = node.at("digest").as_string();
}

ScheduleSpec read_spec(const YamlNode& node) {
  node.check_keys({"family", "stages_per_rank", "loop_batch", "prefetch", "file", "digest"});
  ScheduleSpec spec;
  spec.family = node.at("family").as_string();
  spec.stages_per_rank = node.at("stages_per_rank").as_count(1, 1'000'000);
  if (const auto batch = node.find("loop_batch")) spec.loop_batch = batch->as_count(1);
  if (const auto prefetch = node.find("prefetch"))
    for (const YamlNode& item : prefetch->items()) spec.prefetch.push_back(item.as_count());
  return spec;
}

Schedule read_schedule(const YamlNode& node, const std::filesystem::path& folder) {
  const YamlNode name = node.at("file");
  const std::filesystem::path file = folder / name.as_string();
  if (std::filesystem::path(name.as_string()).has_parent_path())
    name.fail("the schedule lies beside the plan");
  const std::string text = read_file(file);
  if (sha256(text) != node.at("digest").as_string())
    node.at("digest").fail("\"" + file.string() +
                           "\" is not the schedule that this plan was written "
                           "with; restore it, or use the schedule "
                           "by itself with plan: {schedule: ..., cuts: [...]}");
  return read_schedule_file(file);
}

Placement read_placement(const YamlNode& node) {
  node.check_keys({"rank_of_stage", "device_of_rank"});
  Placement placement;
  placement.device_of_rank = device_list(node.at("device_of_rank"));
  const auto ranks = static_cast<std::int64_t>(placement.ranks());
  if (ranks == 0) node.at("device_of_rank").fail("expected a device for each rank, found none");
  for (const YamlNode& item : node.at("rank_of_stage").items())
    placement.rank_of_stage.emplace_back(item.as_int(0, ranks - 1));
  return placement;
}

std::vector<std::int32_t> read_cuts(const YamlNode& node) {
  std::vector<std::int32_t> cuts;
  for (const YamlNode& item : node.items())
    cuts.push_back(static_cast<std::int32_t>(item.as_int(0, 1'000'000'000)));
  if (!std::is_sorted(cuts.begin(), cuts.end()) ||
      std::adjacent_find(cuts.begin(), cuts.end()) != cuts.end())
    node.fail("cuts must increase from left to right");
  return cuts;
}

/// "0-4 7 5-6": numbers that follow each other as a range.
std::string order_text(const std::vector<NodeId>& order) {
  std::string text;
  for (std::size_t begin = 0, end; begin < order.size(); begin = end) {
    end = begin + 1;
    while (end < order.size() && order[end].value == order[end - 1].value + 1) ++end;
    text += (text.empty() ? "" : " ") + to_string(order[begin]);
    if (end - begin > 1) text += "-" + to_string(order[end - 1]);
  }
  return text;
}
std::vector<NodeId> read_order(const YamlNode& node) {
  std::vector<NodeId> order;
  std::istringstream words(node.as_string());
  for (std::string word; words >> word;) {
    unsigned first = 0, last = 0;
    int length = 0;
    const bool one = std::sscanf(word.c_str(), "%7u%n", &first, &length) == 1 &&
                     static_cast<std::size_t>(length) == word.size();
    if (one) last = first;
    const bool range = !one &&
                       std::sscanf(word.c_str(), "%7u-%7u%n", &first, &last, &length) == 2 &&
                       static_cast<std::size_t>(length) == word.size() && first < last;
    if (!one && !range)
      node.fail("expected numbers of nodes and ranges of them such as \"0-4 7 5-6\", found \"" +
                word + "\"");
    if (order.size() + last - first > 10'000'000) node.fail("more nodes than any graph has");
    for (unsigned n = first; n <= last; ++n) order.emplace_back(n);
  }
  return order;
}

void read_predicted(const YamlNode& node, Plan& plan) {
  node.check_keys({"step", "peak_memory"});
  plan.estimate = node.at("step").as_duration();
  for (const YamlNode& item : node.at("peak_memory").items())
    plan.peak_memory.push_back(item.as_bytes());
}

YamlValue blocks_value(const Plan& plan) {
  std::vector<YamlValue> items;
  for (std::size_t b = 0; b < plan.recomputed.blocks.size(); ++b) {
    const auto pair = [](std::int64_t first, std::int64_t last) {
      return yaml_sequence({number(first), number(last)});
    };
    Entries entries{
        {"layers",
         pair(plan.recomputed.blocks[b].first.value, plan.recomputed.blocks[b].last.value),
         {}}};
    if (!plan.block_nodes.empty())
      entries.push_back(
          {"nodes", pair(plan.block_nodes[b].before + 1, plan.block_nodes[b].last), {}});
    items.push_back(yaml_map(std::move(entries)));
  }
  return yaml_sequence(std::move(items));
}

void read_blocks(const YamlNode& node, Plan& plan) {
  const auto pair = [](const YamlNode& of) {
    std::vector<std::int32_t> numbers;
    for (const YamlNode& item : of.items())
      numbers.push_back(static_cast<std::int32_t>(item.as_int(0, 1'000'000'000)));
    if (numbers.size() != 2 || numbers[0] > numbers[1])
      of.fail("expected the first and the last, such as [3, 9]");
    return numbers;
  };
  for (const YamlNode& item : node.items()) {
    item.check_keys({"layers", "nodes"});
    const std::vector<std::int32_t> layers = pair(item.at("layers"));
    plan.recomputed.blocks.push_back({LayerId{layers[0]}, LayerId{layers[1]}});
    if (const auto nodes = item.find("nodes")) {
      const std::vector<std::int32_t> range = pair(*nodes);
      plan.block_nodes.push_back({range[0] - 1, range[1]});
    }
  }
}

/// Each is within a stage and behind the one before it.
void check_blocks(const YamlNode& node, const Plan& plan) {
  for (std::size_t b = 0; b < plan.recomputed.blocks.size(); ++b) {
    const LayerRange& block = plan.recomputed.blocks[b];
    const std::string name = to_string(std::vector{block});
    if (b > 0 && plan.recomputed.blocks[b - 1].last >= block.first)
      node.fail("the block of layers " + name + " must lie behind the one before it");
    std::size_t stage = 0;
    for (const std::int32_t cut : plan.partition.cuts) {
      if (block.first.value <= cut && cut < block.last.value)
        node.fail("the cut " + std::to_string(cut) + " goes through the block of layers " + name);
      stage += cut < block.first.value ? 1 : 0;
    }
    if (stage < plan.recomputed.stages.size() && plan.recomputed.stages[stage])
      node.fail("all of the stage of layers " + name + " is recomputed already");
  }
  if (!plan.block_nodes.empty() && plan.block_nodes.size() != plan.recomputed.blocks.size())
    node.fail("expected nodes of each block, or of none");
}

/// The parts of a plan that must fit together.
void check_agreement(const YamlNode& root, const Plan& plan) {
  const auto text = [](std::size_t n) { return std::to_string(n); };
  const std::size_t stages = plan.partition.stages();
  if (plan.placement.stages() != stages)
    root.at("placement")
        .fail("places " + text(plan.placement.stages()) + " stages, but " +
              text(plan.partition.cuts.size()) + " cuts make " + text(stages));
  if (plan.schedule.ranks() != plan.placement.ranks())
    root.at("placement")
        .fail("has " + text(plan.placement.ranks()) + " ranks, the schedule " +
              text(plan.schedule.ranks()));
  const std::optional<Placement> shown = placement_of(plan.schedule);
  if (!shown || shown->rank_of_stage != plan.placement.rank_of_stage)
    root.at("placement").fail("the schedule has its stages on other ranks");
  if (stages / plan.placement.ranks() != plan.spec.stages_per_rank)
    root.at("schedule")
        .at("stages_per_rank")
        .fail("the placement has " + text(stages / plan.placement.ranks()));
  if (microbatch_count(plan.schedule) != plan.spec.microbatches)
    root.at("microbatches").fail("the schedule has " + text(microbatch_count(plan.schedule)));
  if (const auto nodes = root.find("cut_nodes");
      nodes && plan.cut_nodes.size() != plan.partition.cuts.size())
    nodes->fail("expected one node for each cut");
  if (!plan.recomputed.blocks.empty()) check_blocks(root.at("recompute_blocks"), plan);
  if (plan.recomputed.stages.size() != stages)
    root.at("recompute").fail("expected one value for each of " + text(stages) + " stages");
  if (plan.recomputed.except_last && !plan.recomputed.any())
    root.at("recompute_except_last").fail("the plan recomputes nothing; leave it out");
}

}  // namespace

std::string plan_text(const Plan& plan, const std::string& schedule_digest) {
  Entries entries{
      {"version", number(kVersion), {}},
      {"model", file_and_digest(plan.model, plan.model_digest), {}},
      {"cluster", file_and_digest(plan.cluster, plan.cluster_digest), {}},
      {"order", yaml_string(plan.linear_order), {}},
      {"training", training_value(plan.training), {}},
      {"microbatches", number(static_cast<std::int64_t>(plan.spec.microbatches)), {}},
      {"cuts", list(plan.partition.cuts, number), {}},
      {"cut_modules",
       list(plan.cut_modules, [](const std::string& name) { return yaml_string(name); }),
       {}},
  };
  if (!plan.cut_nodes.empty()) entries.push_back({"cut_nodes", list(plan.cut_nodes, number), {}});
  if (!plan.node_order.empty())
    entries.push_back({"node_order", yaml_string(order_text(plan.node_order)), {}});
  if (plan.clip_norm > 0)
    entries.push_back({"clip_norm", yaml_scalar(shortest(plan.clip_norm)), {}});
  const Entries choices{
      {"schedule", schedule_value(plan, schedule_digest), {}},
      {"placement", placement_value(plan.placement), {}},
      {"recompute",
       list(plan.recomputed.stages, [](bool on) { return yaml_scalar(on ? "true" : "false"); }),
       {}},
  };
  entries.insert(entries.end(), choices.begin(), choices.end());
  if (!plan.recomputed.blocks.empty())
    entries.push_back({"recompute_blocks", blocks_value(plan), {}});
  if (plan.recomputed.except_last)
    entries.push_back({"recompute_except_last", yaml_scalar("true"), {}});
  if (plan.receives == Receives::AtNeed)
    entries.push_back({"receives", yaml_scalar("at_need"), {}});
  const Entries rest{
      {"predicted",
       yaml_map({{"step", yaml_amount(plan.estimate), {}},
                 {"peak_memory",
                  list(plan.peak_memory, [](Bytes peak) { return yaml_amount(peak); }),
                  {}}}),
       {}},
  };
  entries.insert(entries.end(), rest.begin(), rest.end());
  if (plan.files) entries.push_back({"files", files_value(*plan.files), {}});
  if (plan.bound) entries.push_back({"bound", bound_value(*plan.bound), {}});
  entries.push_back({"found", found_value(plan.found), {}});
  return to_text(yaml_map(std::move(entries)));
}

void write_plan(const std::filesystem::path& folder, const Plan& plan) {
  const std::string schedule = write_schedule(plan.schedule);
  write_file(folder / "schedule.csv", schedule);
  write_file(folder / "plan.yaml", plan_text(plan, sha256(schedule)));
}

Plan read_plan(const std::filesystem::path& file) {
  const YamlDocument document = YamlDocument::read(file);
  const YamlNode root = document.root();
  if (const auto schedule = root.find("schedule")) schedule->refuse_old("loops", "stages_per_rank");
  root.check_version(kVersion);
  root.check_keys({"version",
                   "model",
                   "cluster",
                   "order",
                   "training",
                   "clip_norm",
                   "microbatches",
                   "cuts",
                   "cut_modules",
                   "cut_nodes",
                   "node_order",
                   "schedule",
                   "placement",
                   "recompute",
                   "recompute_blocks",
                   "recompute_except_last",
                   "receives",
                   "predicted",
                   "files",
                   "bound",
                   "found"});
  Plan plan;
  read_file_and_digest(root.at("model"), plan.model, plan.model_digest);
  read_file_and_digest(root.at("cluster"), plan.cluster, plan.cluster_digest);
  plan.linear_order = root.at("order").as_string();
  plan.training = read_training(root.at("training"));
  if (const auto norm = root.find("clip_norm")) plan.clip_norm = norm->as_double(0);
  plan.partition.cuts = read_cuts(root.at("cuts"));
  for (const YamlNode& item : root.at("cut_modules").items())
    plan.cut_modules.push_back(item.as_string());
  if (const auto nodes = root.find("cut_nodes")) plan.cut_nodes = read_cuts(*nodes);
  if (const auto order = root.find("node_order")) plan.node_order = read_order(*order);
  plan.placement = read_placement(root.at("placement"));
  plan.spec = read_spec(root.at("schedule"));
  plan.spec.ranks = plan.placement.ranks();
  plan.spec.microbatches = root.at("microbatches").as_count(1);
  plan.schedule = read_schedule(root.at("schedule"), file.parent_path());
  for (const YamlNode& item : root.at("recompute").items())
    plan.recomputed.stages.push_back(item.as_bool());
  if (const auto blocks = root.find("recompute_blocks")) read_blocks(*blocks, plan);
  if (const auto except = root.find("recompute_except_last"))
    plan.recomputed.except_last = except->as_bool();
  if (const auto receives = root.find("receives"))
    plan.receives = receives->as_one_of<Receives>(
        {{"as_ready", Receives::AsReady}, {"at_need", Receives::AtNeed}});
  read_predicted(root.at("predicted"), plan);
  if (const auto files = root.find("files")) plan.files = read_files(*files);
  if (const auto bound = root.find("bound")) plan.bound = read_bound(*bound, plan.spec);
  if (const auto found = root.find("found"))
    for (const auto& [key, value] : found->entries()) plan.found[key] = value.as_string();
  check_agreement(root, plan);
  return plan;
}

}  // namespace pfeife
