#include "planner/cost/estimate/link_load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::size_t kNoLink = ~std::size_t{0};
constexpr double kWhatever = std::numeric_limits<double>::infinity();

/// One message under way, or what replicas reduce.
struct Flow {
  std::vector<std::size_t> links;
  double alone = 0;              ///< share of a link's capacity that it takes alone, bytes/s
  Nanoseconds begin{0}, end{0};  ///< latency left out
  double most = kWhatever;       ///< that it takes, bytes/s
};

/// The capacity that a flow takes, and the link that keeps it from taking more.
struct Share {
  double rate = 0;
  std::size_t bottleneck = kNoLink;
};

/// Max-min fair shares of flows that take whatever they get, up to their most: the link that has
/// least for each of its flows gives them that, and so on with the rest.
std::vector<Share> fair_shares(const std::vector<const Flow*>& flows, const Cluster& cluster) {
  struct Room {
    double left = 0;
    std::size_t flows = 0;
  };
  std::map<std::size_t, Room> rooms;  // [link]
  for (const Flow* flow : flows)
    for (const std::size_t link : flow->links)
      ++rooms.try_emplace(link, Room{cluster.links[link].capacity().value}).first->second.flows;
  std::vector<Share> shares(flows.size());
  std::vector<char> settled(flows.size());
  std::size_t open = flows.size();
  const auto settle = [&](std::size_t f, Share share) {
    settled[f] = 1, --open;
    shares[f] = share;
    for (const std::size_t link : flows[f]->links)
      rooms[link].left = std::max(0.0, rooms[link].left - share.rate), --rooms[link].flows;
  };
  while (open > 0) {
    Share least{kWhatever};
    for (const auto& [link, room] : rooms)
      if (room.flows > 0 && room.left / static_cast<double>(room.flows) < least.rate)
        least = {room.left / static_cast<double>(room.flows), link};
    bool content = false;  // that have all they take
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (!settled[f] && flows[f]->most <= least.rate) content = true, settle(f, {flows[f]->most});
    for (std::size_t f = 0; f < flows.size() && !content; ++f)
      if (!settled[f] && std::ranges::count(flows[f]->links, least.bottleneck) > 0)
        settle(f, least);
  }
  return shares;
}

const StagePair& pair_of(const Action& send, const StageCosts& costs) {
  const bool onward = send.direction == Direction::Forward;
  const StagePair* pair = onward ? find_pair(costs, send.stage, *send.peer, send.microbatch)
                                 : find_pair(costs, *send.peer, send.stage, send.microbatch);
  PFEIFE_CHECK(pair != nullptr, "a transfer between stages that share nothing");
  return *pair;
}

/// Adds up loads, span by span of time in which the same flows are under way.
class Loads {
 public:
  explicit Loads(const Cluster& cluster)
      : cluster_(cluster),
        bytes_(cluster.links.size()),
        slowed_(cluster.links.size()),
        samples_(cluster.links.size()) {}

  void add(Flow flow, Bytes bytes) {
    for (const std::size_t link : flow.links) bytes_[link].value += bytes.value;
    flows_.push_back(std::move(flow));
  }

  std::vector<LinkLoad> sum() {
    std::vector<Nanoseconds> times;
    for (const Flow& flow : flows_) times.insert(times.end(), {flow.begin, flow.end});
    std::ranges::sort(times);
    times.erase(std::unique(times.begin(), times.end()), times.end());
    std::ranges::stable_sort(flows_, {}, &Flow::begin);
    std::vector<const Flow*> under_way;
    std::size_t next = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      std::erase_if(under_way, [&](const Flow* flow) { return flow->end <= times[i]; });
      for (; next < flows_.size() && flows_[next].begin <= times[i]; ++next)
        if (flows_[next].end > times[i]) under_way.push_back(&flows_[next]);
      add_span(times[i], i + 1 < times.size() ? times[i + 1] - times[i] : Nanoseconds{0},
               under_way);
    }
    return loads();
  }

 private:
  void add_span(Nanoseconds from, Nanoseconds length, const std::vector<const Flow*>& flows) {
    std::vector<double> taken(cluster_.links.size());
    const std::vector<Share> shares = fair_shares(flows, cluster_);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (const std::size_t link : flows[f]->links) taken[link] += shares[f].rate;
      if (shares[f].bottleneck != kNoLink)
        slowed_[shares[f].bottleneck] +=
            (1 - shares[f].rate / flows[f]->alone) * static_cast<double>(length.count());
    }
    for (std::size_t link = 0; link < taken.size(); ++link) {
      const double share = std::min(1.0, taken[link] / cluster_.links[link].capacity().value);
      std::vector<LoadSample>& samples = samples_[link];
      if (samples.empty() ? share > 0 : std::abs(share - samples.back().share) > 1e-9)
        samples.push_back({from, share});
    }
  }

  std::vector<LinkLoad> loads() {
    std::vector<LinkLoad> loads;
    for (std::size_t link = 0; link < bytes_.size(); ++link)
      if (bytes_[link].value > 0)
        loads.push_back({.link = cluster_.links[link].name,
                         .capacity = cluster_.links[link].bandwidth,
                         .bytes = bytes_[link],
                         .samples = std::move(samples_[link]),
                         .slowed = Nanoseconds{std::llround(slowed_[link])}});
    return loads;
  }

  const Cluster& cluster_;
  std::vector<Flow> flows_;
  std::vector<Bytes> bytes_;                      // [link]
  std::vector<double> slowed_;                    // [link] ns
  std::vector<std::vector<LoadSample>> samples_;  // [link]
};

}  // namespace

void add_link_loads(Trace& trace, const StageCosts& costs, const Placement& placement,
                    const Cluster& cluster) {
  Loads loads(cluster);
  const auto add_message = [&](const Event& event) {
    const auto& send = std::get<Action>(event.cell);
    const StagePair& pair = pair_of(send, costs);
    const Bytes bytes = send.direction == Direction::Forward ? pair.bytes : pair.gradient_bytes;
    const Path& path = cluster.path(placement.device(event.rank), placement.device(event.peer));
    if (path.links.empty() || bytes.value <= 0) return;
    loads.add({path.links, narrowest(cluster, path.links).value,
               std::min(event.start + path.latency, event.end), event.end},
              bytes);
  };
  std::vector<bool> begun(costs.replicas.size());  // [stage] what is beside comes first
  const auto add_ring = [&](const Event& event) {
    const std::size_t s = std::get<Action>(event.cell).stage.index();
    const ReplicaReduction& of = costs.replicas[s];
    const Nanoseconds alone = (begun[s] ? of.behind : of.beside) - Nanoseconds{1};
    begun[s] = true;
    const std::vector<std::size_t> links = ring_links(cluster, placement.device(event.rank));
    if (of.share() <= 0 || alone <= Nanoseconds{0} || links.empty()) return;
    const double most = of.share() * narrowest(cluster, links).value;
    loads.add({links, most, event.start + Nanoseconds{1}, event.end, most},
              Bytes{std::llround(most * seconds(alone))});
  };
  for (const Event& event : trace.events) {
    if (event.kind == TaskKind::Transfer) add_message(event);
    if (event.kind == TaskKind::Reduction && event.parties.size() == 1 &&
        std::get<Action>(event.cell).op == Op::ReduceGrad)
      add_ring(event);
  }
  trace.links = loads.sum();
}

std::vector<LinkUse> link_uses(const Trace& trace) {
  std::vector<LinkUse> uses;
  const double step = std::max(1.0, static_cast<double>(step_time(trace).count()));
  for (const LinkLoad& load : trace.links) {
    double taken = 0;
    for (std::size_t i = 0; i + 1 < load.samples.size(); ++i)
      taken += load.samples[i].share *
               static_cast<double>((load.samples[i + 1].time - load.samples[i].time).count());
    uses.push_back({load.link, load.capacity.value, load.bytes, taken / step, load.slowed});
  }
  std::ranges::stable_sort(uses, std::greater{}, &LinkUse::mean_load);
  return uses;
}

std::vector<SlowedMessages> slowed_messages(const Trace& simulated, const StageCosts& costs) {
  std::map<std::pair<StageId, StageId>, SlowedMessages> found;
  for (const Event& event : simulated.events) {
    if (event.kind != TaskKind::Transfer) continue;
    const auto& send = std::get<Action>(event.cell);
    const StagePair& pair = pair_of(send, costs);
    SlowedMessages& messages = found[{send.stage, *send.peer}];
    messages.from = send.stage.index(), messages.to = send.peer->index();
    messages.alone = send.direction == Direction::Forward ? pair.forward_time : pair.backward_time;
    ++messages.count;
    messages.mean += event.end - event.start;  // their sum, until all are known
    messages.longest = std::max(messages.longest, event.end - event.start);
  }
  std::vector<SlowedMessages> slowed;
  for (auto& [stages, messages] : found) {
    messages.mean /= static_cast<std::int64_t>(messages.count);
    if (messages.mean > messages.alone) slowed.push_back(messages);
  }
  const auto lost = [](const SlowedMessages& messages) {
    return static_cast<std::int64_t>(messages.count) * (messages.mean - messages.alone);
  };
  std::ranges::stable_sort(slowed, std::greater{}, lost);
  return slowed;
}

Cluster with_faster_links(Cluster cluster, double factor) {
  for (Link& link : cluster.links) link.bandwidth.value *= factor;
  for (Path& path : cluster.paths)
    for (BandwidthCurve::Point& point : path.bandwidth.points) point.rate.value *= factor;
  return cluster;
}

}  // namespace pfeife
