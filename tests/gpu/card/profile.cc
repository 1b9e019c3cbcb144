// A profile of a model on the card, and the roofline of the card's own cluster file against it.
#include <algorithm>

#include "planner/cost/operators/roofline.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/model/profile_file.h"
#include "planner/ir/basics/error.h"
#include "runtime/launch/rank_threads.h"
#include "runtime/profile/profiler.h"
#include "tests/gpu/card/probe.h"

namespace pfeife::card {
namespace {

using nlohmann::json;

Nanoseconds all_of(const NodeProfile& node) {
  return node.forward + node.backward_input + node.backward_weight;
}

/// Roofline against profile: sums, mean over nodes, and the ten nodes that are furthest off.
json compared(const Graph& graph, const Profile& measured, const Profile& roofline) {
  struct Row {
    std::size_t node;
    Nanoseconds measured, roofline;
    Nanoseconds off() const { return std::chrono::abs(measured - roofline); }
  };
  std::vector<Row> rows;
  Nanoseconds sum_measured{0}, sum_roofline{0}, sum_off{0};
  double relative = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Row row{n, all_of(measured.nodes[n]), all_of(roofline.nodes[n])};
    rows.push_back(row);
    sum_measured += row.measured, sum_roofline += row.roofline, sum_off += row.off();
    if (row.measured > Nanoseconds{0})
      relative += milliseconds(row.off()) / milliseconds(row.measured);
  }
  std::ranges::stable_sort(rows, std::greater{}, &Row::off);
  json worst = json::array();
  for (std::size_t i = 0; i < std::min<std::size_t>(10, rows.size()); ++i) {
    const Node& node = graph.nodes[rows[i].node];
    worst.push_back({{"node", node.name},
                     {"operator", node.op},
                     {"measured_us", 1e3 * milliseconds(rows[i].measured)},
                     {"roofline_us", 1e3 * milliseconds(rows[i].roofline)}});
  }
  return {{"measured_ms", milliseconds(sum_measured)},
          {"roofline_ms", milliseconds(sum_roofline)},
          {"off_of_time", milliseconds(sum_off) / milliseconds(sum_measured)},
          {"mean_off_of_nodes", relative / static_cast<double>(graph.nodes.size())},
          {"worst", worst}};
}

}  // namespace

void probe_profile(const Probe& probe) {
  const ProbedModel model(probe, probe.model);
  const Cluster cluster = read_cluster(probe.cluster);
  json answer{{"model", probe.model},
              {"microbatch_size", model.graph.microbatch_size},
              {"cluster", cluster.name}};
  for (const std::string& precision : precisions_of(probe, {"tf32", "bf16_amp"})) {
    RankOptions rank{.placing = {.device = probe.device}};
    set_precision(precision_named(precision), rank);
    ProfileOptions options{
        .placing = rank.placing,
        .training = {precision_named(precision), Optimizer::Adam, model.graph.microbatch_size},
        .device_kind = cluster.kinds.front().name,
        .repetitions = probe.repetitions};
    ProfileReport report;
    run_ranks(1, probe.device, [&](RankId, Transport& transport) {
      report = profile_model(model.graph, model.source, options, &transport);
    });
    const Profile roofline = roofline_profile(model.graph, cluster.kinds.front(), options.training);
    json& part = answer["precisions"][precision] = compared(model.graph, report.profile, roofline);
    part["text"] = to_string(report, model.graph);
    const std::string file = probe.out.stem().string() + "_" + precision + ".yaml";
    write_file(probe.out.parent_path() / file, profile_text(report.profile, model.graph));
    part["file"] = file;
    probe.write(answer);
  }
}

}  // namespace pfeife::card
