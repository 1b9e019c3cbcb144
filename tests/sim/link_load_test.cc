// The load of links as it is told from a trace, against the simulator that made the trace.
#include "planner/cost/estimate/link_load.h"

#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/sim/random_costs.h"
#include "tests/sim/sim_test.h"

namespace pfeife {
namespace {

class LinkLoads : public testing::SimulatorTest {};

/// Hosts of two devices; a port that all share leads from host to host, some slower than a slot.
Cluster two_hosts(std::mt19937& random) {
  const auto rate = [&] { return BytesPerSecond{static_cast<double>(1 + random() % 40) * 1e9}; };
  Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{random() % 200});
  cluster.links.clear();
  for (int d = 0; d < 4; ++d) cluster.links.push_back({"slot" + std::to_string(d), rate()});
  cluster.links.push_back({"port", rate()});
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b) {
      Path& path = cluster.paths[a * 4 + b];
      path.links = a == b ? std::vector<std::size_t>{} : std::vector<std::size_t>{a, b};
      if (a / 2 != b / 2) path.links.push_back(4);
      double narrowest = 1e15;
      for (const std::size_t link : path.links)
        narrowest = std::min(narrowest, cluster.links[link].bandwidth.value);
      path.bandwidth.points = {{Bytes{10'000}, {narrowest * 0.7}}, {Bytes{40'000}, {narrowest}}};
    }
  return cluster;
}

// What a transfer, or what replicas reduce, takes longer than alone is the sum of what the links on
// its way took from it, if the shares between the simulator's dates are those of the simulator.
// Dates are rounded, so up to 2 ns each may be missing.
TEST_F(LinkLoads, ExplainEveryNanosecondThatTransfersAndReductionsLastLonger) {
  std::int64_t all = 0, of_reductions = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const Cluster cluster = two_hosts(random);
    const ScheduleSpec spec{
        .family = seed % 2 == 0 ? "1f1b" : "gpipe", .ranks = 4, .microbatches = 2 + random() % 6};
    const Placement placement = placement_for(spec);
    StageCosts costs = testing::random_costs(random, 4, true, false);
    testing::take_times_from(cluster, placement, costs);
    const DependencyGraph graph =
        dependencies(lower(generate(spec), costs, placement), stage_graph(costs), placement,
                     {.queues = Queues::None, .links = Links::Shared});
    Trace trace = std::get<Trace>(simulate(graph, costs, placement, cluster));
    add_link_loads(trace, costs, placement, cluster);
    std::int64_t longer = 0, slowed = 0, transfers = 0;
    const std::vector<Nanoseconds> alone = slot_durations(graph.slots, costs);
    for (std::size_t t = 0; t < graph.size(); ++t) {
      const TaskKind kind = graph.tasks[t].kind;
      if (kind != TaskKind::Transfer && kind != TaskKind::Reduction) continue;
      const Event& event = trace.events[t];
      const auto more = (event.end - event.start - alone[graph.tasks[t].slot]).count();
      longer += more;
      if (kind == TaskKind::Reduction) of_reductions += more;
      ++transfers;
    }
    for (const LinkLoad& link : trace.links) {
      slowed += link.slowed.count();
      for (const LoadSample& sample : link.samples) EXPECT_LE(sample.share, 1.0 + 1e-9);
      EXPECT_EQ(link.samples.back().share, 0);
    }
    EXPECT_NEAR(static_cast<double>(slowed), static_cast<double>(longer),
                2.0 * static_cast<double>(transfers))
        << seed;
    all += longer;
  }
  EXPECT_GT(of_reductions, 1'000);
  EXPECT_GT(all, 10'000) << "links that nobody waits for show nothing";
}

}  // namespace
}  // namespace pfeife
