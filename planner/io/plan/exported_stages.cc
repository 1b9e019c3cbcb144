#include <algorithm>

#include "planner/io/plan/plan_writers.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/model/numbered_module.h"

namespace pfeife {
namespace {

std::string list_of_blocks(const PlanToExport& planned, const std::string& title) {
  std::string list;
  bool found = false;
  for (const Layer& layer : planned.layers.layers) {
    const auto number = module_number(layer.module_path);
    if (!number) continue;
    if (found && number->list != list)
      throw ConfigError({}, planned.layers.name + " has two lists of blocks, " + list + " and " +
                                number->list + "; " + title + " is told of one");
    found = true, list = number->list;
  }
  if (!found)
    throw ConfigError({}, planned.layers.name +
                              " has no numbered modules (layers.0, h.11), by which " + title +
                              " is told what a stage has; use torch");
  return list;
}

std::string module_of(const std::string& parameter) {
  return parameter.substr(0, std::min(parameter.rfind('.'), parameter.size()));
}

std::vector<std::vector<std::string>> other_modules(const PlanToExport& planned) {
  const Partition& cuts = planned.plan.partition;
  std::vector<std::vector<std::string>> others(cuts.stages());
  std::vector<const LayerParameter*> parameters;
  for (const LayerParameter& parameter : planned.layers.parameters)
    parameters.push_back(&parameter);
  std::ranges::stable_sort(parameters, {}, [](const auto* p) { return p->users.front(); });
  for (const LayerParameter* parameter : parameters) {
    const std::string module = module_of(parameter->name);
    if (module.empty() || !numbered_module(module).empty()) continue;
    for (std::size_t s = 0; s < cuts.stages(); ++s) {
      const bool used = std::ranges::any_of(parameter->users, [&](LayerId user) {
        return cuts.begin(s) <= user.index() && user.index() < cuts.end(s, planned.layers.size());
      });
      if (used && std::ranges::find(others[s], module) == others[s].end())
        others[s].push_back(module);
    }
  }
  return others;
}

}  // namespace

StagesInModules stages_in_modules(const PlanToExport& planned, const std::string& title,
                                  std::vector<std::string>& refused) {
  StagesInModules modules{.list = list_of_blocks(planned, title)};
  const std::vector<Layer>& layers = planned.layers.layers;
  std::int64_t blocks = 0;
  std::size_t layer = 0;
  for (std::size_t s = 0; s < planned.plan.partition.stages(); ++s) {
    modules.first.push_back(blocks);
    const std::size_t end = planned.plan.partition.end(s, layers.size());
    for (; layer < end; ++layer)
      if (const auto number = module_number(layers[layer].module_path)) blocks = number->number + 1;
    if (end == layers.size()) continue;
    const std::string within = numbered_module(layers[end - 1].module_path);
    if (within != numbered_module(layers[end].module_path)) continue;
    const std::string place = !within.empty() ? within : blocks == 0 ? "the embedding" : "the head";
    refused.push_back("cut " + std::to_string(s) + " lies inside of " + place + ": " + title +
                      " cuts between layers");
  }
  modules.first.push_back(blocks);
  modules.others = other_modules(planned);
  return modules;
}

std::int64_t RecomputedModules::most() const { return std::ranges::max(blocks); }

RecomputedModules recomputed_modules(const PlanToExport& planned, const StagesInModules& stages) {
  const Activations& again = planned.plan.activations;
  RecomputedModules modules{.blocks = std::vector<std::int64_t>(stages.stages(), 0)};
  for (std::size_t s = 0; s < again.stages.size(); ++s) {
    if (!again.stages[s]) continue;
    modules.blocks[s] = stages.blocks(s);
    modules.stages = modules.any = true;
  }
  const std::vector<Layer>& layers = planned.layers.layers;
  for (const LayerRange& range : again.blocks) {
    modules.any = true;
    const auto first = range.first.index(), last = range.last.index();
    std::size_t stage = 0;
    while (planned.plan.partition.end(stage, layers.size()) <= first) ++stage;
    for (std::size_t l = first; l <= last; ++l) {
      const std::string module = numbered_module(layers[l].module_path);
      if (module.empty() || (l < last && numbered_module(layers[l + 1].module_path) == module))
        continue;  // counted where it ends
      std::size_t begin = l;
      while (begin > 0 && numbered_module(layers[begin - 1].module_path) == module) --begin;
      const bool ends =
          l + 1 == layers.size() || numbered_module(layers[l + 1].module_path) != module;
      if (ends && begin >= first)
        ++modules.blocks[stage];
      else
        ++modules.attention;
    }
  }
  return modules;
}

bool recomputes_equally(const RecomputedModules& again, const StagesInModules& stages) {
  for (std::size_t s = 0; s < stages.stages(); ++s)
    if (again.blocks[s] != std::min(again.most(), stages.blocks(s))) return false;
  return true;
}

bool recomputes_all(const RecomputedModules& again, const StagesInModules& stages) {
  for (std::size_t s = 0; s < stages.stages(); ++s)
    if (again.blocks[s] != stages.blocks(s)) return false;
  return true;
}

std::string listed(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t n : numbers) text += (text.empty() ? "" : " ") + std::to_string(n);
  return text;
}

Placed placed(const Placement& placement) {
  const std::size_t ranks = placement.ranks();
  if (placement.rank_of_stage == round_robin(placement.stages(), ranks).rank_of_stage)
    return Placed::Loop;
  return placement.rank_of_stage == v_shape(ranks).rank_of_stage ? Placed::Folded
                                                                 : Placed::Otherwise;
}

void add_common_losses(const PlanToExport& planned, const std::string& title,
                       std::vector<std::string>& refused) {
  std::vector<std::int64_t> devices;
  bool moved = false;
  for (std::size_t r = 0; r < planned.plan.placement.ranks(); ++r) {
    const std::size_t device = planned.plan.placement.device_of_rank[r].index();
    devices.push_back(static_cast<std::int64_t>(device));
    moved = moved || device != r;
  }
  if (moved)
    refused.push_back("the ranks of the pipeline run on devices " + listed(devices) + ": " + title +
                      " has them in order; plan with devices in order");
  if (planned.plan.activations.except_last)
    refused.push_back("the last microbatch of each stage is not recomputed in the plan: " + title +
                      " recomputes all alike");
  if (!planned.run.modules.empty() && title != "Megatron-LM")
    refused.push_back("modules recomputed in every layer (" + recomputed_text(planned.run) +
                      "): " + title + " has no such choice");
}

bool in_order(const MeshRun& run, std::vector<Axis> order) {
  std::vector<Axis> divided(run.mesh.order.begin(), run.mesh.order.end());
  for (std::vector<Axis>* axes : {&divided, &order})
    std::erase_if(*axes, [&](Axis axis) { return run.mesh.size(axis) == 1; });
  return divided == order;
}

void add_order(const PlanToExport& planned, const std::string& title,
               std::vector<std::string>& refused) {
  if (!in_order(planned.run, {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline}))
    refused.push_back("the order of the axes: " + title + " has tp, cp, dp, pp, neighbours first");
}

void add_shared_parameters(const PlanToExport& planned, const std::string& title,
                           std::vector<std::string>& refused) {
  const Partition& cuts = planned.plan.partition;
  for (const LayerParameter& parameter : planned.layers.parameters)
    if (parameter.gradient > Bytes{0} && !cuts.cuts.empty() &&
        std::ranges::any_of(cuts.cuts, [&](std::int32_t cut) {
          return parameter.users.front().value <= cut && cut < parameter.users.back().value;
        }))
      refused.push_back("parameter \"" + parameter.name + "\" is shared by stages: " + title +
                        " refuses that; untie it in the model");
}

std::string torch_schedule(const PlanToExport& planned) {
  const ScheduleSpec& spec = planned.plan.spec;
  if (placed(planned.plan.placement) == Placed::Folded && spec.stages_per_rank == 2)
    return "ZBVZeroBubble";
  if (spec.stages_per_rank > 1) return "Interleaved1F1B";
  return spec.family == "gpipe" ? "GPipe" : "1F1B";
}

bool says_all_rows(const PlanToExport& planned) {
  const ScheduleSpec& spec = planned.plan.spec;
  return spec.ranks == 1 || spec.family == "1f1b" || spec.family == "gpipe";
}

std::string compute_rows(const Schedule& schedule) {
  Schedule rows = schedule;
  for (std::vector<Cell>& row : rows.rows)
    std::erase_if(row, [](const Cell& cell) {
      const auto* const action = std::get_if<Action>(&cell);
      return std::holds_alternative<std::monostate>(cell) ||
             (action != nullptr && !is_compute(action->op));
    });
  return write_schedule(rows);
}

std::string commented(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += wrapped(sentence, 100, "# ", "#   ");
  return text;
}

}  // namespace pfeife
