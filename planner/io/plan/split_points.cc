#include "planner/io/plan/split_points.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pfeife {
namespace {

SplitPoint split_point(const Layer& left, const Layer& right) {
  if (!left.ends_module.empty()) return {left.ends_module, false, ""};
  if (!right.begins_module.empty()) return {right.begins_module, true, ""};
  const std::string& within = left.module_path.empty() ? right.module_path : left.module_path;
  if (within.empty()) return {"", false, "the layers on both sides are in no submodule"};
  return {"", false,
          "it is inside of " + within + ", neither before nor after the only call of a submodule"};
}

std::vector<std::size_t> stage_of_layer(const Layers& layers, const Partition& partition) {
  std::vector<std::size_t> stage(layers.layers.size());
  for (std::size_t s = 0; s < partition.stages(); ++s)
    for (std::size_t l = partition.begin(s); l < partition.end(s, stage.size()); ++l) stage[l] = s;
  return stage;
}

/// [stage] Its backward comes in two parts.
std::vector<bool> split_backward(const Plan& plan) {
  std::vector<bool> split(plan.partition.stages());
  for (const auto& row : plan.schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        if (action.op == Op::BackwardInput) split[action.stage.index()] = true;
      });
  return split;
}

std::vector<bool> layers_with_parameters(const Layers& layers) {
  std::vector<bool> has(layers.layers.size());
  for (const LayerParameter& parameter : layers.parameters)
    for (const LayerId user : parameter.users) has[user.index()] = true;
  return has;
}

}  // namespace

std::vector<SplitPoint> split_points(const Layers& layers, const Partition& partition) {
  std::vector<SplitPoint> points;
  for (const std::int32_t cut : partition.cuts) {
    const auto at = static_cast<std::size_t>(cut);
    SplitPoint point = layers.node_order.empty()
                           ? split_point(layers.layers[at], layers.layers[at + 1])
                           : SplitPoint{"", false, "the layers are not in the captured order"};
    if (!point.module.empty() &&
        std::ranges::find(points, point.module, &SplitPoint::module) != points.end())
      point = {"", false, "there is another cut at " + point.module};
    points.push_back(std::move(point));
  }
  return points;
}

std::string torch_refusal(const Layers& layers, const Plan& plan) {
  const std::vector<std::size_t> stage = stage_of_layer(layers, plan.partition);
  for (const LayerParameter& parameter : layers.parameters) {
    if (parameter.gradient == Bytes{0}) continue;
    const std::size_t first = stage[parameter.users.front().index()],
                      last = stage[parameter.users.back().index()];
    if (first != last)
      return "parameter \"" + parameter.name + "\" is shared by stages " + std::to_string(first) +
             " and " + std::to_string(last) +
             ": torch gives each its own and does not add their gradients; untie it in the model";
  }
  const std::vector<bool> split = split_backward(plan);
  const std::vector<bool> has_parameters = layers_with_parameters(layers);
  for (const LayerValue& value : layers.values) {
    const std::size_t producer = value.producer.index(), from = stage[producer];
    if (value.consumers.empty()) continue;
    const std::size_t to = stage[value.consumers.back().index()];
    const std::string what = "\"" + value.name + "\" of stage " + std::to_string(from);
    if (to > from + 1)
      return what + " is read in stage " + std::to_string(to) +
             ": torch sends values to the next stage only, and runs no skips; cut where nothing "
             "passes over a stage";
    if (to == from || from == 0 || !split[from]) continue;
    // A layer may go on after the operator that made the value.
    bool read = has_parameters[producer] && value.name != layers.layers[producer].name;
    for (const LayerId reader : value.consumers)
      read = read || (stage[reader.index()] == from && has_parameters[reader.index()]);
    if (read)
      return what + " is sent, and read in its stage, too, as a residual is: torch detaches it " +
             "after backward-input (I), and backward-weight (W) then fails (\"saved tensor that " +
             "has been detached in-place\"); cut where nothing else is read across, or take a " +
             "family without I and W";
  }
  return "";
}

namespace {

/// Does `path` name the module or something in it?
bool is_in(const std::string& path, const std::string& module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

/// The outermost modules that lie in the block with all their layers; empty if some layer of the
/// block is in none.
std::vector<std::string> modules_of(const Layers& layers, const LayerRange& block) {
  std::vector<std::string> modules;
  const auto inside = [&](std::size_t l) {
    return block.first.index() <= l && l <= block.last.index();
  };
  for (std::size_t l = block.first.index(); inside(l); ++l) {
    const std::string& path = layers.layers[l].module_path;
    if (!modules.empty() && is_in(path, modules.back())) continue;
    std::string found;
    for (std::size_t end = path.find('.'); found.empty() && !path.empty();
         end = path.find('.', end + 1)) {
      const std::string module = path.substr(0, end);
      // A list of modules has no operators, and is never called.
      bool whole = std::ranges::any_of(
          layers.layers, [&](const Layer& other) { return other.module_path == module; });
      for (std::size_t other = 0; whole && other < layers.size(); ++other)
        whole = inside(other) || !is_in(layers.layers[other].module_path, module);
      if (whole) found = module;
      if (end == std::string::npos) break;
    }
    if (found.empty()) return {};
    modules.push_back(std::move(found));
  }
  return modules;
}

}  // namespace

std::string split_points_text(const Layers& layers, const Plan& plan, const std::string& schedule,
                              const std::string& why_not) {
  using Json = nlohmann::ordered_json;
  const auto name = [](const SplitPoint& point) { return point.before ? "BEGINNING" : "END"; };
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const std::vector<SplitPoint> points = split_points(layers, plan.partition);
  Json json;
  json["version"] = 1;
  json["model"] = plan.model;
  json["microbatches"] = plan.spec.microbatches;
  json["rank_of_stage"] = Json::array();
  for (const RankId rank : plan.placement.rank_of_stage)
    json["rank_of_stage"].push_back(rank.value);
  json["split_spec"] = Json::object();
  json["split_points"] = Json::array();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SplitPoint& point = points[i];
    const bool there = !point.module.empty();
    const auto cut = static_cast<std::size_t>(plan.partition.cuts[i]);
    json["split_points"].push_back({{"after_layer", cut},
                                    {"last_operator", layers.layers[cut].name},
                                    {"in_module", layers.layers[cut].module_path},
                                    {"module", or_null(point.module)},
                                    {"point", there ? Json(name(point)) : Json()},
                                    {"why_not", or_null(point.why_not)}});
    if (!there)
      json["split_spec"] = nullptr;
    else if (!json["split_spec"].is_null())
      json["split_spec"][point.module] = name(point);
  }
  for (const LayerRange& block : plan.activations.blocks) {
    const std::vector<std::string> modules = modules_of(layers, block);
    json["recompute"].push_back(
        {{"layers", {block.first.value, block.last.value}},
         {"modules", modules},
         {"why_not", modules.empty() ? Json("some of it is in no submodule of its own") : Json()}});
  }
  if (plan.activations.except_last) {  // [stage]
    json["recompute_except_microbatch"] = Json::array();
    for (const MicrobatchId last : last_forwards(plan.schedule, plan.partition.stages()))
      json["recompute_except_microbatch"].push_back(last.value);
  }
  json["schedule"] = or_null(schedule);
  json["schedule_why_not"] = or_null(why_not);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pfeife
