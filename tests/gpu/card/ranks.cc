// Ranks as threads on one device: gradients against the unsplit model, memory against the plan's,
// and the measured step against what a shared device would do.
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "planner/cost/allocator/played_ranks.h"
#include "planner/cost/estimate/estimator.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/layers/grouping.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"
#include "runtime/device/rank_memory.h"
#include "runtime/execute/check.h"
#include "runtime/launch/rank_threads.h"
#include "runtime/profile/profiler.h"
#include "runtime/train/measure.h"
#include "tests/gpu/card/probe.h"
#include "tests/gpu/card/shared_device.h"

namespace pfeife::card {
namespace {

using nlohmann::json;

constexpr std::size_t kMicrobatches = 8;

/// Cuts where the layers before them have made their share of the time.
Partition even_partition(const Layers& layers, std::size_t stages) {
  Nanoseconds all{0};
  for (const Layer& layer : layers.layers)
    all += layer.times[0].forward + layer.times[0].backward_input + layer.times[0].backward_weight;
  Partition partition;
  Nanoseconds sum{0};
  for (std::size_t l = 0; l + 1 < layers.layers.size(); ++l) {
    const LayerTimes& times = layers.layers[l].times[0];
    sum += times.forward + times.backward_input + times.backward_weight;
    const auto share = static_cast<std::int64_t>(partition.cuts.size() + 1);
    if (layers.layers[l].no_cut_after.empty() && partition.cuts.size() + 1 < stages &&
        sum * static_cast<std::int64_t>(stages) >= all * share)
      partition.cuts.push_back(static_cast<std::int32_t>(l));
  }
  if (partition.cuts.size() + 1 != stages)
    throw ConfigError({"--ranks"}, stream_all("the model cannot be cut into ", stages));
  return partition;
}

struct Planned {
  Pipeline pipeline;
  StageCosts costs;
  std::vector<Bytes> memory, reserved;  // [rank]
};

Planned plan(const Probe& probe, const ProbedModel& model, const Profile& profile) {
  const Layers layers = layers_from_graph(model.graph, {profile});
  const Partition partition = even_partition(layers, probe.ranks);
  DeviceKind kind = read_cluster(probe.files / "configs/clusters/laptop.yaml").kinds.front();
  kind.name = profile.device_kind;
  const ScheduleSpec spec{"1f1b", probe.ranks, kMicrobatches, 1, {}, {}};
  const Placement placement = placement_for(spec);
  StageCosts costs = stage_costs(
      layers, partition, placement,
      uniform_cluster(probe.ranks, kind, BytesPerSecond{1e12}, std::chrono::microseconds(10)));
  std::vector<NodeId> cuts;
  for (const std::int32_t cut : partition.cuts)
    cuts.push_back(layers.layers[static_cast<std::size_t>(cut)].nodes.back());
  Pipeline pipeline = make_pipeline(model.graph, cuts, generate(spec), placement);
  Plan played;
  played.partition = partition, played.placement = placement;
  played.schedule = pipeline.schedule;
  played.peak_memory = peak_memory(pipeline.schedule, costs, placement);
  std::vector<Bytes> reserved = reserved_memory(played, layers, {});
  return {std::move(pipeline), std::move(costs), std::move(played.peak_memory),
          std::move(reserved)};
}

json gradients(const Probe& probe, const ProbedModel& model, const Planned& planned) {
  // float32: a gradient adds about sqrt(10^4) roundings of 6e-8 in another order.
  constexpr double kTolerance = 1e-4;
  CheckReport found;
  run_ranks(probe.ranks, probe.device, [&](RankId rank, Transport& transport) {
    const CheckReport report =
        check_pipeline(planned.pipeline, rank, model.source,
                       {.placing = {.device = probe.device}, .seed = 1}, kTolerance, transport);
    if (rank == RankId{0}) found = report;
  });
  return {{"right", found.right()},
          {"tensors", found.tensors},
          {"largest", found.largest.value},
          {"largest_tensor", found.largest.tensor},
          {"text", to_string(found)}};
}

std::vector<std::int64_t> values(const std::vector<Bytes>& bytes) {
  std::vector<std::int64_t> all;
  for (const Bytes b : bytes) all.push_back(b.value);
  return all;
}

/// How far the measured starts of F, B and so on are from those of a shared device.
json timeline(const Planned& planned, const Measurement& measured) {
  const DependencyGraph& graph = planned.pipeline.tasks;
  const auto expected = times_on_shared_device(graph, slot_durations(graph.slots, planned.costs));
  Nanoseconds end{0}, zero = Nanoseconds::max();
  for (const TaskTimes& t : expected) end = std::max(end, t.end);
  for (const Event& e : measured.trace.events) zero = std::min(zero, e.start);
  double sum = 0, largest = 0;
  std::size_t count = 0;
  json rows = json::array();
  for (std::size_t t = 0; t < graph.size(); ++t) {
    if (graph.tasks[t].kind != TaskKind::Compute) continue;
    const Event& event = measured.trace.events[t];
    const double off = std::abs(milliseconds(event.start - zero - expected[t].start));
    sum += off, largest = std::max(largest, off), ++count;
    rows.push_back({graph.tasks[t].rank.value, to_string(graph.tasks[t].cell),
                    milliseconds(event.start - zero), milliseconds(event.end - zero),
                    milliseconds(expected[t].start), milliseconds(expected[t].end)});
  }
  const auto alone = estimate(graph, planned.costs);
  return {{"step_ms", milliseconds(measured.quantile(0.5))},
          {"shared_device_ms", milliseconds(end)},
          {"own_devices_ms", milliseconds(step_time(std::get<Trace>(alone)))},
          {"mean_start_off_ms", sum / static_cast<double>(count)},
          {"largest_start_off_ms", largest},
          {"columns", {"rank", "action", "start", "end", "expected start", "expected end"}},
          {"events", rows}};
}

}  // namespace

void probe_ranks(const Probe& probe) {
  const ProbedModel model(probe, probe.model);
  RankOptions rank{.placing = {.device = probe.device}};
  const std::string precision = precisions_of(probe, {probe.stand_in ? "fp32" : "tf32"}).front();
  set_precision(precision_named(precision), rank);
  json answer{{"model", probe.model},
              {"ranks", probe.ranks},
              {"precision", precision},
              {"microbatches", kMicrobatches}};
  ProfileReport report;
  run_ranks(1, probe.device, [&](RankId, Transport& transport) {
    report = profile_model(
        model.graph, model.source,
        {.placing = rank.placing,
         .training = {precision_named(precision), Optimizer::Adam, model.graph.microbatch_size},
         .device_kind = "card",
         .repetitions = probe.repetitions,
         .microbatches = 2},
        &transport);
  });
  c10::getDeviceAllocator(probe.device.type())->emptyCache();
  const Planned planned = plan(probe, model, report.profile);
  allow_tf32(false);
  answer["gradients"] = gradients(probe, model, planned);
  probe.write(answer);
  c10::getDeviceAllocator(probe.device.type())->emptyCache();
  set_precision(precision_named(precision), rank);
  RandomTurns turns;
  Measurement measured;
  c10::getDeviceAllocator(probe.device.type())->resetPeakStats(probe.device.index());
  run_ranks(probe.ranks, probe.device, [&](RankId r, Transport& transport) {
    MeasuredTraining own =
        measure_steps(planned.pipeline, r, model.source, rank, 2 + probe.repetitions,
                      /*count_memory=*/true, turns, {}, transport);
    if (r == RankId{0}) measured = std::move(own.measurement);
  });
  // Ranks have streams of their own, so that what they reserve adds up: the device counts them all.
  answer["memory"] = {{"planned", values(planned.memory)},
                      {"measured", values(measured.peak_memory)},
                      {"planned_reserved", values(planned.reserved)},
                      {"reserved", allocator_statistics(probe.device)->reserved.peak.value}};
  answer["timeline"] = timeline(planned, measured);
  probe.write(answer);
}

}  // namespace pfeife::card
