
#include "planner/io/plan/plan_file.h"

#include <algorithm>
#include <sstream>

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/open_file.h"
#include "planner/io/files/yaml.h"
#include "planner/io/model/training_yaml.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

constexpr std::int64_t kVersion = 3;

/// What reading and writing need besides the plan.
struct Beside {
  std::filesystem::path folder = {};  ///< of the file that is read
  std::string schedule_digest = {};   ///< of the schedule that is written
};

YamlValue number(std::int64_t value) { return yaml_scalar(std::to_string(value)); }

FieldList<Plan> file_and_digest(std::string Plan::*file, std::string Plan::*digest) {
  return {field("file", file, any_text(), "").always().needed(),
          field("digest", digest, any_text(), "").always().needed()};
}

template <class Id>
YamlValue ids_value(const std::vector<Id>& ids) {
  return list_value(ids, [](Id id) { return number(id.value); });
}

Kind<std::vector<RankId>> rank_list() {
  return {"",
          [](const YamlNode& node) {
            std::vector<RankId> ranks;
            for (const YamlNode& item : node.items()) ranks.emplace_back(item.as_int(0));
            return ranks;
          },
          ids_value<RankId>};
}

/// Numbers of devices, each once; of ranks.
Kind<Placement> placement_map() {
  const FieldList<Placement> fields{
      field("rank_of_stage", &Placement::rank_of_stage, rank_list(), "").always().needed(),
      field("device_of_rank", &Placement::device_of_rank,
            Kind<std::vector<DeviceId>>{"", device_list, ids_value<DeviceId>}, "")
          .always()
          .needed()};
  Kind<Placement> map = map_of(fields);
  map.read = [read = map.read](const YamlNode& node) {
    const Placement placement = read(node);
    const auto ranks = static_cast<std::int64_t>(placement.ranks());
    if (ranks == 0) node.at("device_of_rank").fail("expected a device for each rank, found none");
    for (const YamlNode& item : node.at("rank_of_stage").items()) item.as_int(0, ranks - 1);
    return placement;
  };
  return map;
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
    const bool single = std::sscanf(word.c_str(), "%7u%n", &first, &length) == 1 &&
                        static_cast<std::size_t>(length) == word.size();
    if (single) last = first;
    const bool range = !single &&
                       std::sscanf(word.c_str(), "%7u-%7u%n", &first, &last, &length) == 2 &&
                       static_cast<std::size_t>(length) == word.size() && first < last;
    if (!single && !range)
      node.fail("expected numbers of nodes and ranges of them such as \"0-4 7 5-6\", found \"" +
                word + "\"");
    if (order.size() + last - first > 10'000'000) node.fail("more nodes than any graph has");
    for (unsigned n = first; n <= last; ++n) order.emplace_back(n);
  }
  return order;
}

YamlValue blocks_value(const Plan& plan) {
  std::vector<YamlValue> items;
  for (std::size_t b = 0; b < plan.activations.blocks.size(); ++b) {
    const auto pair = [](std::int64_t first, std::int64_t last) {
      return yaml_sequence({number(first), number(last)});
    };
    std::vector<YamlEntry> entries{
        {"layers",
         pair(plan.activations.blocks[b].first.value, plan.activations.blocks[b].last.value),
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
    plan.activations.blocks.push_back({LayerId{layers[0]}, LayerId{layers[1]}});
    if (const auto nodes = item.find("nodes")) {
      const std::vector<std::int32_t> range = pair(*nodes);
      plan.block_nodes.push_back({range[0] - 1, range[1]});
    }
  }
}

/// Each is within a stage and behind the one before it.
void check_blocks(const YamlNode& node, const Plan& plan) {
  for (std::size_t b = 0; b < plan.activations.blocks.size(); ++b) {
    const LayerRange& block = plan.activations.blocks[b];
    const std::string name = to_string(std::vector{block});
    if (b > 0 && plan.activations.blocks[b - 1].last >= block.first)
      node.fail("the block of layers " + name + " must lie behind the one before it");
    std::size_t stage = 0;
    for (const std::int32_t cut : plan.partition.cuts) {
      if (block.first.value <= cut && cut < block.last.value)
        node.fail("the cut " + std::to_string(cut) + " goes through the block of layers " + name);
      stage += cut < block.first.value ? 1 : 0;
    }
    if (stage < plan.activations.stages.size() && plan.activations.stages[stage])
      node.fail("all of the stage of layers " + name + " is recomputed already");
  }
  if (!plan.block_nodes.empty() && plan.block_nodes.size() != plan.activations.blocks.size())
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
  if (!plan.spec.rank_of_stage.empty() && plan.spec.rank_of_stage != plan.placement.rank_of_stage)
    root.at("schedule").at("rank_of_stage").fail("`placement` has other ranks; write its own");
  const std::size_t slices = slice_count(plan.schedule);
  if (slices == 1 && plan.spec.slice_lengths != SliceLengths::Equal)
    root.at("schedule").at("slice_lengths").fail("the schedule has no slices; leave it out");
  if (slices != plan.spec.slices)
    root.at("schedule")
        .fail("the schedule has " + text(slices) + " slices a microbatch, not " +
              text(plan.spec.slices));
  if (microbatch_count(plan.schedule) != plan.spec.microbatches * slices)
    root.at("microbatches")
        .fail("the schedule has " + text(microbatch_count(plan.schedule) / slices));
  const std::vector<MicrobatchScale>& costs = plan.training.microbatch_costs;
  if (!costs.empty() && costs.size() != plan.spec.microbatches)
    root.at("training")
        .at("microbatch_costs")
        .fail("has " + text(costs.size()) + " microbatches, the plan " +
              text(plan.spec.microbatches));
  if (const auto nodes = root.find("cut_nodes");
      nodes && plan.cut_nodes.size() != plan.partition.cuts.size())
    nodes->fail("expected one node for each cut");
  if (!plan.activations.blocks.empty()) check_blocks(root.at("recompute_blocks"), plan);
  if (plan.activations.stages.size() != stages)
    root.at("recompute").fail("expected one value for each of " + text(stages) + " stages");
  if (const auto shares = root.find("offload")) {
    if (plan.activations.offload.size() != stages)
      shares->fail("expected one share for each of " + text(stages) + " stages");
    if (plan.activations.offloads() && plan.training.mode == Mode::Forward)
      shares->fail("a plan that runs forward only saves nothing to offload");
  }
  if (plan.activations.except_last && !plan.activations.recomputes())
    root.at("recompute_except_last").fail("the plan recomputes nothing; leave it out");
  if (plan.activations.except_last && slices > 1)
    root.at("recompute_except_last")
        .fail(
            "the schedule has slices, of which the last microbatch's are recomputed as all "
            "others; leave it out");
}

// The lists.

FieldList<Plan> schedule_fields(const Beside& beside) {
  using Spec = ScheduleSpec;
  const auto of_spec = [](Field<Spec> of) { return of_part<Plan>(&Plan::spec, std::move(of)); };
  return {of_spec(field("family", &Spec::family, any_text(), "")).always().needed(),
          of_spec(field("stages_per_rank", &Spec::stages_per_rank, whole<std::size_t>(1, 1'000'000),
                        ""))
              .always()
              .needed(),
          of_spec(field("loop_batch", &Spec::loop_batch, whole<std::size_t>(1, 1'000'000'000), "")),
          of_spec(field("prefetch", &Spec::prefetch, list_of(whole<std::size_t>(0, 1'000'000'000)),
                        "")),
          of_spec(field("slices", &Spec::slices, whole<std::size_t>(1, kMostSlices), "")),
          of_spec(field("slice_lengths", &Spec::slice_lengths,
                        word<SliceLengths>({{"equal_length", SliceLengths::Equal},
                                            {"equal_time", SliceLengths::EqualTime}}),
                        "")),
          of_spec(field("rank_of_stage", &Spec::rank_of_stage, rank_list(), "")),
          Field<Plan>{"file", "", "", [](const YamlNode&, Plan&) {},
                      [](const Plan&) { return yaml_string("schedule.csv"); }}
              .always()
              .needed(),
          Field<Plan>{"digest", "", "", [](const YamlNode&, Plan&) {},
                      [beside](const Plan&) { return yaml_string(beside.schedule_digest); }}
              .always()
              .needed()};
}

FieldList<Plan> choice_fields(const Beside& beside) {
  const auto activations = [](Field<Activations> of) {
    return of_part<Plan>(&Plan::activations, std::move(of));
  };
  auto schedule = group("schedule", schedule_fields(beside)).always().needed();
  schedule.read = [read = schedule.read, beside](const YamlNode& node, Plan& plan) {
    read(node, plan);
    plan.schedule = read_schedule(node, beside.folder);
  };
  auto placement = field<Plan>("placement", &Plan::placement, placement_map(), "");
  placement.read = [read = placement.read](const YamlNode& node, Plan& plan) {
    read(node, plan);
    plan.spec.ranks = plan.placement.ranks();
  };
  return {
      schedule,
      std::move(placement).always().needed(),
      activations(field("recompute", &Activations::stages, list_of(flag()), "")).always().needed(),
      Field<Plan>{"recompute_blocks", "", "", read_blocks, blocks_value},
      activations(field("recompute_except_last", &Activations::except_last, flag(), "")),
      activations(field("offload", &Activations::offload, list_of(real(0, 1)), "")),
      field<Plan>("receives", &Plan::receives,
                  word<Receives>({{"as_ready", Receives::AsReady}, {"at_need", Receives::AtNeed}}),
                  "")};
}

FieldList<Plan> plan_fields(const Beside& beside) {
  const Kind<std::vector<std::int32_t>> cuts{"", read_cuts,
                                             [](const auto& of) { return list_value(of, number); }};
  const FieldList<Plan> model_and_cuts{
      version_field<Plan>(kVersion),
      group("model", file_and_digest(&Plan::model, &Plan::model_digest)).always().needed(),
      group("cluster", file_and_digest(&Plan::cluster, &Plan::cluster_digest)).always().needed(),
      field("order", &Plan::linear_order, any_text(), "").always().needed(),
      field("training", &Plan::training, training_map(), "").always().needed(),
      of_part<Plan>(&Plan::spec, field("microbatches", &ScheduleSpec::microbatches,
                                       whole<std::size_t>(1, 1'000'000'000), ""))
          .always()
          .needed(),
      of_part<Plan>(&Plan::partition, field("cuts", &Partition::cuts, cuts, "")).always().needed(),
      field("cut_modules", &Plan::cut_modules, list_of(any_text()), "").always().needed(),
      field("cut_nodes", &Plan::cut_nodes, cuts, ""),
      field("node_order", &Plan::node_order,
            Kind<std::vector<NodeId>>{
                "", read_order, [](const auto& order) { return yaml_string(order_text(order)); }},
            ""),
      field("clip_norm", &Plan::clip_norm, real(0, std::numeric_limits<double>::max()), "")};
  const FieldList<Plan> predicted{
      field("step", &Plan::estimate, duration(), "").always().needed(),
      field("peak_memory", &Plan::peak_memory, list_of(memory()), "").always().needed()};
  const FieldList<Plan> found{
      group("predicted", predicted).always().needed(),
      field("files", &Plan::files, files_map(), ""),
      Field<Plan>{
          "bound", "", "",
          [](const YamlNode& node, Plan& plan) { plan.bound = bound_map(plan.spec).read(node); },
          [](const Plan& plan) {
            return plan.bound ? bound_map(plan.spec).value(*plan.bound) : YamlValue{};
          }},
      Field<Plan>{"found", "", "",
                  [](const YamlNode& node, Plan& plan) {
                    for (const auto& [key, value] : node.entries())
                      plan.found[key] = value.as_string();
                  },
                  [](const Plan& plan) {
                    std::vector<YamlEntry> entries;
                    for (const auto& [key, value] : plan.found)
                      entries.push_back({key, yaml_string(value), {}});
                    return yaml_map(std::move(entries));
                  }}
          .always()};
  return model_and_cuts + choice_fields(beside) + found;
}

}  // namespace

std::string plan_text(const Plan& plan, const std::string& schedule_digest) {
  return to_text(plan_fields({.schedule_digest = schedule_digest}).value(plan));
}

void write_plan(const std::filesystem::path& folder, const Plan& plan) {
  const std::string schedule = write_schedule(plan.schedule);
  write_file(folder / "schedule.csv", schedule);
  write_file(folder / "plan.yaml", plan_text(plan, sha256(schedule)));
}

std::filesystem::path plan_file(const std::filesystem::path& named) {
  return is_folder(named) ? named / "plan.yaml" : named;
}

Plan read_plan(const std::filesystem::path& file) {
  const YamlDocument document = YamlDocument::read(file);
  const YamlNode root = document.root();
  if (const auto schedule = root.find("schedule")) schedule->refuse_old("loops", "stages_per_rank");
  root.check_version(kVersion);
  Plan plan;
  plan_fields({.folder = file.parent_path()}).read(root, plan);
  check_agreement(root, plan);
  return plan;
}

}  // namespace pfeife
