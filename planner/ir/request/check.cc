#include "planner/ir/request/check.h"

#include <algorithm>

#include "planner/ir/request/framework.h"
#include "planner/ir/request/pipeline.h"

namespace pfeife {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& why) {
  throw RefusedWish(key, key + ": " + why);
}

// The model's own times.

void check_model(const Request& request) {
  const ModelFiles& model = request.model;
  const std::string kind = "a " + to_string(model.format) + " model";
  if (model.format == ModelFormat::Piper && model.time_unit.count() == 0)
    refuse("model", "a piper profile needs what its times count, for example time_unit: 1 ms");
  if (model.format != ModelFormat::Piper && model.time_unit.count() > 0)
    refuse("model.time_unit", "time_unit belongs to piper profiles only");
  if (model.skips && model.format != ModelFormat::Table)
    throw RefusedWish("skips", "skips belong to a layer table; " + kind + " has its own");
  if (request.replicas.count > 1 && model.format == ModelFormat::Mesh)
    throw RefusedWish("parallel",
                      "a mesh file has its replicas; leave `parallel` out, or choose the mesh with "
                      "an architecture file");
  if (model.format == ModelFormat::Pt2) return;
  if (model.profile) refuse("profile", kind + " has times of its own; leave the profile out");
  if (!model.operators.empty())
    refuse("operators", kind + " has times of its own and no operators; leave this out");
  if (request.plan.order != "captured")
    refuse("plan.order", "the layers of " + kind + " have one order; leave this out");
  const Framework* const made_for = framework(request.plan.framework);
  const bool has_modules =
      model.format == ModelFormat::Mesh && made_for != nullptr && made_for->between_modules;
  if (request.plan.cuts_at == PlanSettings::CutsAt::Blocks && !has_modules)
    refuse("plan", kind +
                       " has no modules, so no blocks; take an archive, or leave cuts_at and for "
                       "out");
}

void check_calibration(const Request& request) {
  const ModelFiles& model = request.model;
  for (std::size_t i = 0; i < request.calibration.size(); ++i) {
    const Calibration& calibration = request.calibration[i];
    const std::string key =
        request.calibration.size() == 1 ? "calibration" : "calibration[" + std::to_string(i) + "]";
    if (calibration.compute && (model.format != ModelFormat::Pt2 || model.profile))
      refuse(key + ".compute",
             "this multiplies times made from published figures, and " +
                 (model.profile ? std::string("the times of a profile")
                                : "those of a " + to_string(model.format) + " model") +
                 " are not; leave compute out");
    if (!calibration.compute && !calibration.stage_overhead)
      refuse(key, "it changes nothing; give compute: 1.03, stage_overhead: 3 ms, or both");
  }
  if (!request.plan_published) return;
  if (request.calibration.empty())
    refuse("plan_with", "nothing is calibrated; add a calibration, or leave plan_with out");
}

// The plan and its baselines.

constexpr const char* kNothingKept =
    "nothing is kept for a backward where training.mode is forward; leave it out";
constexpr const char* kNothingRecomputed = "nothing is recomputed; leave it out, or set recompute";

/// The names, "1f1b or interleaved_1f1b".
template <class Names>
std::string or_list(const Names& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  return text;
}

void check_framework(const PlanSettings& plan) {
  if (plan.framework.empty()) return;
  const Framework* const known = framework(plan.framework);
  if (known == nullptr) {
    std::vector<std::string> names;
    for (const Framework& framework : frameworks()) names.push_back(framework.name);
    refuse("plan.for", "unknown framework '" + plan.framework + "'; use " + or_list(names));
  }
  if (plan.cuts_at != PlanSettings::CutsAt::Blocks)
    refuse("plan.cuts_at", known->title + " cuts a model between its " +
                               (known->between_modules ? "numbered modules" : "blocks") +
                               " only; leave plan.cuts_at out");
  for (const std::string& name : plan.families)
    if (!known->families.empty() &&
        std::ranges::find(known->families, name) == known->families.end())
      refuse("plan.families",
             known->title + " does not run " + name + "; use " + or_list(known->families));
  if (std::ranges::find(known->recompute, plan.recompute) == known->recompute.end()) {
    std::vector<std::string> words;
    for (const Recompute recompute : known->recompute) words.push_back(to_string(recompute));
    refuse("plan.recompute", known->title + " cannot recompute by '" + to_string(plan.recompute) +
                                 "'; use " + or_list(words));
  }
}

void check_plan(const PlanSettings& plan) {
  if (!(plan.as_fast >= 0 && plan.as_fast <= 1))
    refuse("plan.as_fast", "a share from 0 to 1 is needed");
  if (plan.max_bubble && !(*plan.max_bubble >= 0 && *plan.max_bubble <= 1))
    refuse("plan.max_bubble", "a share from 0 to 1 is needed");
  if (plan.memory_margin && !(*plan.memory_margin >= 0 && *plan.memory_margin <= 0.9))
    refuse("plan.memory_margin", "a share from 0 to 0.9 is needed");
  if (plan.schedule && plan.cuts == PlanSettings::Cuts::Search)
    refuse("plan.cuts",
           "a given schedule needs given cuts: a list of cut candidates, or each_layer");
  if (!plan.searched()) return;
  if (plan.families.empty()) refuse("plan.families", "name at least one family, or \"all\"");
  const bool grouped = std::ranges::any_of(
      plan.families, [](const std::string& name) { return name == "all" || name == "certified"; });
  if (grouped && plan.families.size() > 1)
    refuse("plan.families", "\"all\" and \"certified\" stand alone");
  if (plan.stages_per_rank.empty())
    refuse("plan.stages_per_rank", "name at least one number of stages a rank");
  check_framework(plan);
  if (plan.recompute_except_last && plan.recompute == Recompute::None)
    refuse("plan.recompute_except_last", kNothingRecomputed);
}

void check_baseline(const BaselineSettings& baseline, const std::string& key) {
  using Cuts = BaselineSettings::Cuts;
  if (baseline.at_blocks && (baseline.cuts == Cuts::Given || baseline.cuts == Cuts::EqualLayers))
    refuse(key + ".cuts_at", "these cuts are at given places; leave cuts_at out");
  if (baseline.recompute == Recompute::IfNeeded)
    refuse(key + ".recompute",
           "a baseline says what it recomputes: none, full, choose, blocks or attention");
  if (baseline.recompute_except_last && baseline.recompute == Recompute::None)
    refuse(key + ".recompute_except_last", kNothingRecomputed);
  if (baseline.cuts == Cuts::Reference && baseline.recompute != Recompute::None)
    refuse(key + ".recompute", "reference mode knows no recomputation; leave recompute out");
}

void check_baselines(const std::vector<BaselineSettings>& baselines) {
  for (std::size_t i = 0; i < baselines.size(); ++i) {
    const std::string key = "baselines[" + std::to_string(i) + "]";
    check_baseline(baselines[i], key);
    for (std::size_t before = 0; before < i; ++before)
      if (baselines[before].name() == baselines[i].name())
        refuse(key, "\"" + baselines[i].name() +
                        "\" is here twice; a name of its own tells one from the other");
  }
}

// Engines.

void check_runnable(const Optimizer& optimizer) {
  std::string runnable;
  for (const Optimizer& candidate : runnable_optimizers()) {
    if (candidate == optimizer) return;
    runnable += (runnable.empty() ? "" : ", ") + to_string(candidate);
  }
  refuse("training.optimizer",
         "\"measure\" among the engines runs the model, and pfeife-run has no " +
             to_string(optimizer) + "; use one of " + runnable + ", or leave \"measure\" out");
}

void check_measure(const Request& request) {
  if (!request.measure) return;
  const std::string key = "engines.measure";
  if (request.model.format != ModelFormat::Pt2)
    throw RefusedWish(key, "\"measure\" runs the model, and a " + to_string(request.model.format) +
                               " model has only times; name a .pt2 archive, or leave \"measure\" "
                               "out");
  check_runnable(request.training.optimizer);
}

/// Why a family has no place where the model runs forward only; "" = it has one.
std::string refused_forward(const std::string& family) {
  if (family == "forward" || family == "all" || family == "certified") return "";
  const std::string has = family + " has backwards, and training.mode is forward; ";
  const std::string take = "take \"forward\"";
  if (family == "interleaved_1f1b" || family == "looped")
    return has + take +
           ", whose groups of D microbatches are what is left of it with several stages "
           "a rank";
  if (family == "looped_bfs")
    return has + take + ", whose loop batch of all microbatches is what is left of it";
  return has + take + ", the order that is left of it";
}

/// Forward only: nothing of a step but its forwards.
void check_forward(const Request& request) {
  const PlanSettings& plan = request.plan;
  const auto is_forward = [](const std::string& family) { return family == "forward"; };
  if (request.training.mode == Mode::Train) {
    const std::string trains =
        "the rows of \"forward\" have no backward; set training.mode: forward, or take another "
        "family";
    if (std::ranges::any_of(plan.families, is_forward)) refuse("plan.families", trains);
    for (std::size_t i = 0; i < request.baselines.size(); ++i)
      if (is_forward(request.baselines[i].family))
        refuse("baselines[" + std::to_string(i) + "]", trains);
    return;
  }
  if (plan.searched())
    for (const std::string& family : plan.families)
      if (const std::string why = refused_forward(family); !why.empty())
        refuse("plan.families", why);
  if (request.baselines != Request{}.baselines)
    for (std::size_t i = 0; i < request.baselines.size(); ++i) {
      const std::string key = "baselines[" + std::to_string(i) + "]";
      if (const std::string why = refused_forward(request.baselines[i].family); !why.empty())
        refuse(key, why);
      if (request.baselines[i].recompute != Recompute::None)
        refuse(key + ".recompute", kNothingKept);
    }
}

void check_selection(const Request& request) {
  if (request.select_by == SelectBy::Simulate && !request.simulate)
    refuse("select_by", "choosing by simulation needs \"simulate\" among the engines");
  if (request.select_by == SelectBy::P95 && !request.simulation.jitter)
    refuse("select_by",
           "p95 needs simulation.jitter, for example {cv: 0.02, repetitions: 100, seed: 1}");
}

// A mesh.

/// Refuses more devices than a host has where nothing connects hosts.
void check_hosts(const Request& request) {
  const MeshQuestion& question = request.mesh->question;
  const Network& network = request.mesh->network;
  const std::int64_t joined = network.reach();
  if (question.devices <= joined) return;
  const auto divides = [&](Axis axis) {
    const auto& sizes = axis == Axis::Tensor     ? question.tp
                        : axis == Axis::Context  ? question.cp
                        : axis == Axis::Pipeline ? question.pp
                                                 : question.dp;
    return sizes != std::vector<std::int64_t>{1};
  };
  const auto& order = question.run.mesh.order;
  const auto outer = std::find_if(order.rbegin(), order.rend(), divides);
  refuse("parallel.devices",
         std::to_string(question.devices) + " devices are more than the " + std::to_string(joined) +
             " of a host, and no link joins hosts, which " +
             to_string(outer == order.rend() ? order.back() : *outer) +
             ", the outermost axis, reaches over; add a line such as `between_hosts: {bandwidth: "
             "25 GB/s, latency: 20 us}` to \"" +
             file_name(request, "cluster", request.cluster) + "\", or ask for at most " +
             std::to_string(joined));
}

/// Refuses sizes that the framework of plan.for does not have beside pipelines.
void check_framework_sizes(const Request& request) {
  const Framework* const made_for = framework(request.plan.framework);
  if (made_for == nullptr) return;
  const MeshQuestion question = mesh_question(request);
  for (const int zero : question.zero) {
    if (std::ranges::find(made_for->zero, zero) != made_for->zero.end()) continue;
    std::vector<std::string> stages;
    for (const int stage : made_for->zero) stages.push_back(std::to_string(stage));
    refuse("parallel.zero", "a plan for " + made_for->title + " has no ZeRO " +
                                std::to_string(zero) + "; use " + or_list(stages));
  }
  const auto check_whole = [&](const std::string& axis, const std::vector<std::int64_t>& sizes) {
    if (sizes != std::vector<std::int64_t>{1})
      refuse("parallel." + axis, "a plan for " + made_for->title + " has no " + axis + "; use 1");
  };
  if (!made_for->divides_tensors) check_whole("tp", question.tp);
  if (made_for->divides_contexts_and_experts) return;
  check_whole("cp", question.cp);
  check_whole("ep", question.ep);
}

void check_mesh(const Request& request) {
  if (!request.plan.searched())
    refuse(given_key(request.plan),
           "the mesh is chosen first; leave this out, and set it in the pipeline's own config, "
           "results/NAME/NAME.yaml");
  check_hosts(request);
  check_framework_sizes(request);
}

// Sizes.

/// The nearest numbers on both sides of `value` that divide `batch`.
std::string nearest_divisors(std::int64_t batch, std::int64_t value) {
  std::int64_t below = std::min(value, batch), above = value;
  while (batch % below != 0) --below;
  while (above < batch && batch % above != 0) ++above;
  return std::to_string(below) +
         (above <= batch && above != below ? " or " + std::to_string(above) : "");
}

void settle_devices(std::size_t all, Request& request) {
  const auto replicas = static_cast<std::size_t>(request.replicas.count);
  const std::string name = file_name(request, "cluster", request.cluster);
  const std::string cluster = name.empty() ? "the cluster" : "the cluster \"" + name + "\"";
  if (replicas > all)
    throw RefusedWish("parallel", "parallel.dp is " + std::to_string(replicas) + ", and " +
                                      cluster + " has " + std::to_string(all) + " devices");
  const std::size_t most = all / replicas;  // of a pipeline
  if (request.devices == 0) request.devices = most;
  if (request.devices > most)
    throw RefusedWish("devices", cluster + " has " + std::to_string(all) + " devices, asked for " +
                                     (replicas > 1 ? std::to_string(replicas) + " x " : "") +
                                     std::to_string(request.devices));
  const std::vector<DeviceId>& named = request.plan.devices;
  if (!named.empty() && named.size() < request.devices)
    throw RefusedWish("plan.devices", "plan.devices names " + std::to_string(named.size()) +
                                          " devices, one a rank, but a case has " +
                                          std::to_string(request.devices) + " ranks");
}

std::string cannot_be_divided(std::int64_t batch) {
  return "a global batch of " + std::to_string(batch) + " cannot be divided ";
}

/// Microbatches and their size make `batch`.
void settle_microbatches(std::int64_t batch, Request& request) {
  std::optional<std::int64_t>& size = request.training.microbatch_size;
  const auto count = static_cast<std::int64_t>(request.microbatches);
  if (size && batch % *size != 0)
    throw RefusedWish("training.microbatch_size",
                      cannot_be_divided(batch) + "into microbatches of " + std::to_string(*size) +
                          "; " + nearest_divisors(batch, *size) + " would do");
  if (count > 0 && batch % count != 0)
    throw RefusedWish("microbatches", cannot_be_divided(batch) + "into " + std::to_string(count) +
                                          " microbatches; " + nearest_divisors(batch, count) +
                                          " would do");
  if (count > 0 && size && batch != count * *size)
    throw RefusedWish("training.global_batch",
                      std::to_string(count) + " microbatches of " + std::to_string(*size) +
                          " are a global batch of " + std::to_string(count * *size) +
                          "; leave one of the three out");
  if (count > 0) {
    size = batch / count;
  } else if (size) {
    request.microbatches = static_cast<std::size_t>(batch / *size);
  } else if (request.model.format != ModelFormat::Pt2 || request.model.profile) {
    throw RefusedWish("training.global_batch",
                      std::string("the microbatch size can only be chosen where the times of other "
                                  "sizes are known, and ") +
                          (request.model.profile ? "a measured profile" : "this model") +
                          " is for one size; add training.microbatch_size");
  }
}

/// N is as many as have costs or documents of their own.
void settle_listed_microbatches(Request& request) {
  const std::size_t listed = request.training.listed_microbatches();
  if (listed == 0) return;
  if (request.microbatches == 0) request.microbatches = listed;
  if (request.microbatches == listed) return;
  const char* const key =
      request.training.lengths.empty() ? "training.microbatch_costs" : "training.lengths";
  throw RefusedWish(key, std::string(key) + ": " + std::to_string(listed) +
                             (listed == 1 ? " microbatch is listed, and a step has "
                                          : " microbatches are listed, and a step has ") +
                             std::to_string(request.microbatches) +
                             "; list one for each, or leave cases.microbatches out");
}

void check_slow_rank(const Request& request) {
  const std::optional<SlowRank>& slow = request.what_if.slow;
  if (slow && slow->rank && *slow->rank >= request.devices)
    throw RefusedWish("what_if.slow.rank", "what_if.slow.rank: there is no rank " +
                                               std::to_string(*slow->rank) + "; the last is " +
                                               std::to_string(request.devices - 1));
}

/// What is usual for training steps becomes what is left of it.
void settle_forward(Request& request) {
  request.plan.recompute = Recompute::None;
  if (request.baselines != Request{}.baselines) return;
  request.baselines = {{.family = "forward"},
                       {.family = "forward", .called = "interleaved", .stages_per_rank = 2}};
}

void settle_batch(Request& request) {
  if (!request.training.global_batch) {
    if (request.microbatches == 0) request.microbatches = 8;
    return;
  }
  const std::int64_t batch = *request.training.global_batch, replicas = request.replicas.count;
  if (batch % replicas != 0)
    throw RefusedWish("training.global_batch", cannot_be_divided(batch) + "among " +
                                                   std::to_string(replicas) +
                                                   " replicas; parallel.dp " +
                                                   nearest_divisors(batch, replicas) + " would do");
  if (!request.plan.searched())
    throw RefusedWish("training.global_batch",
                      "\"" + given_file_name(request) +
                          "\" says the number of microbatches; leave training.global_batch out");
  settle_microbatches(pipeline_batch(request), request);
}

}  // namespace

RefusedWish::RefusedWish(std::string key, const std::string& message)
    : ConfigError({}, message), key_(std::move(key)) {}

void check(const Request& request) {
  if (request.mesh) check_mesh(request);
  for (const RefusedCombination& combination : refused_combinations())
    if (combination.asked(request)) refuse(combination.key, combination.reason);
  check_model(request);
  check_plan(request.plan);
  check_calibration(request);
  check_baselines(request.baselines);
  check_forward(request);
  check_measure(request);
  check_selection(request);
}

bool cuts_are_open(const Request& request) {
  const PlanSettings& plan = request.plan;
  return request.model.format == ModelFormat::Pt2 && !request.model.profile && plan.searched() &&
         plan.cuts_at == PlanSettings::CutsAt::Auto && plan.cuts == PlanSettings::Cuts::Search &&
         plan.order == "captured" && !plan.reference;
}

Request with_sizes(Request request, std::size_t cluster_devices) {
  settle_devices(cluster_devices, request);
  settle_listed_microbatches(request);
  check_slow_rank(request);
  settle_batch(request);
  if (request.training.mode == Mode::Forward) settle_forward(request);
  return request;
}

}  // namespace pfeife
