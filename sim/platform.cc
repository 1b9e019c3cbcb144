#include "sim/platform.h"

#include <xbt/log.h>

#include <map>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <string>
#include <unordered_set>

#include "planner/ir/basics/error.h"

namespace pfeife {

namespace sg4 = simgrid::s4u;

namespace {

constexpr double kFlopsPerSecond = 1e9;  // one flop = one nanosecond
constexpr double kUnlimited = 1e15;      // bytes a second
constexpr int kTimers = 1 << 20;  // delays that may pass at the same time on the side of a rank

/// Finds or makes the hosts and links that flows need.
class Builder {
 public:
  Builder(sg4::NetZone* zone, const Workload& work) : zone_(zone), work_(work) {}

  sg4::Host* device(DeviceId device) {
    sg4::Host*& host = devices_[device];
    if (host == nullptr)
      host = zone_->create_host("device" + to_string(device), kFlopsPerSecond)->seal();
    return host;
  }
  sg4::Link* link(std::size_t number) {
    sg4::Link*& link = links_[number];
    if (link == nullptr)
      link = zone_->create_link("link" + std::to_string(number), work_.links[number].value)->seal();
    return link;
  }
  /// The first link keeps a ring to what it takes.
  void route(const FlowRoute& route, std::size_t number) {
    auto* tick = zone_
                     ->create_link("tick" + std::to_string(number),
                                   route.ring ? route.capacity.value : kUnlimited)
                     ->set_latency(1e-9)
                     ->seal();
    std::vector<sg4::LinkInRoute> way{sg4::LinkInRoute(tick)};
    for (const std::size_t l : route.links) way.emplace_back(link(l));
    zone_->add_route(device(route.from)->get_netpoint(), end(route)->get_netpoint(), nullptr,
                     nullptr, way, /*symmetrical=*/false);
  }
  /// Replicas of a stage are one host.
  sg4::Host* end(const FlowRoute& route) {
    if (!route.ring) return device(route.to);
    sg4::Host*& host = replicas_[*route.ring];
    if (host == nullptr)
      host = zone_->create_host("replicas" + to_string(*route.ring), kFlopsPerSecond)->seal();
    return host;
  }

 private:
  sg4::NetZone* zone_;
  const Workload& work_;
  std::map<DeviceId, sg4::Host*> devices_;
  std::map<StageId, sg4::Host*> replicas_;
  std::map<std::size_t, sg4::Link*> links_;
};

}  // namespace

void configure_simgrid() {
  // As of 3.32; 3.34 calls "surf/precision" "precision/timing".
  xbt_log_control_set("xbt_cfg.thres:warning");
  for (const char* setting :
       {"network/model:CM02",        // bandwidth and latency as they are, no corrections for TCP
        "network/crosstraffic:0",    // opposite directions are independent
        "network/TCP-gamma:0",       // no cap by window size
        "network/weight-S:0",        // shares do not depend on the links' speed
        "network/loopback-bw:1e15",  // within a device: free
        "network/loopback-lat:0", "surf/precision:1e-12"})  // events 1 ns apart stay apart
    sg4::Engine::set_config(setting);
}

Platform::Platform(const Workload& work) {
  auto* zone = sg4::create_full_zone("cluster");
  for (std::size_t r = 0; r < work.ranks; ++r) {
    ranks_.push_back(zone->create_host("rank" + std::to_string(r), kFlopsPerSecond)->seal());
    timers_.push_back(zone->create_host("timer" + std::to_string(r), kFlopsPerSecond)
                          ->set_core_count(kTimers)
                          ->seal());
  }
  Builder builder(zone, work);
  for (std::size_t i = 0; i < work.routes.size(); ++i) {
    const FlowRoute& route = work.routes[i];
    builder.route(route, i);
    routes_.push_back({builder.device(route.from), builder.end(route), route.capacity});
  }
  answer_callbacks(zone);
  zone->seal();
}

void Platform::answer_callbacks(sg4::NetZone* zone) {
  auto* network = zone->get_network_model();
  network->set_lat_factor_cb([this](double, const sg4::Host*, const sg4::Host*,
                                    const std::vector<sg4::Link*>&,
                                    const std::unordered_set<sg4::NetZone*>&) {
    ++starting_.questions;
    return starting_.latency_ns;  // times the 1 ns of the first link
  });
  network->set_bw_factor_cb([this](double, const sg4::Host*, const sg4::Host*,
                                   const std::vector<sg4::Link*>&,
                                   const std::unordered_set<sg4::NetZone*>&) {
    ++starting_.questions;
    return starting_.speed;
  });
}

sg4::CommPtr Platform::start_flow(std::uint32_t route, Bytes bytes, Nanoseconds latency,
                                  Nanoseconds busy, void* tag) {
  const Route& way = routes_[route];
  const double alone = seconds_at(bytes, way.capacity);
  starting_ = {static_cast<double>(latency.count()), alone / seconds(busy), 0};
  sg4::CommPtr flow = sg4::Comm::sendto_init(way.from, way.to);
  flow->set_payload_size(static_cast<std::uint64_t>(bytes.value));
  flow->set_data(tag);
  flow->start();
  PFEIFE_CHECK(starting_.questions > 0, "the network model did not ask about a flow at its start");
  return flow;
}

}  // namespace pfeife
