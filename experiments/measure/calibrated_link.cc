#include "experiments/measure/calibrated_link.h"

#include <algorithm>
#include <cmath>

namespace pfeife {
namespace {

/// "nic" of "nic[0].up".
std::string name_in_file(const std::string& link) { return link.substr(0, link.find('[')); }

std::string narrowest(const Path& path, const Cluster& cluster) {
  const std::size_t link = *std::ranges::min_element(
      path.links, {}, [&](std::size_t l) { return cluster.links[l].bandwidth.value; });
  return name_in_file(cluster.links[link].name);
}

/// [task] transfers during which another was on one of the links on their way.
std::vector<bool> meeting(const DependencyGraph& graph, const Trace& step,
                          const std::vector<const Path*>& paths, std::size_t links) {
  std::vector<std::vector<std::size_t>> on_link(links);
  for (std::size_t t = 0; t < graph.size(); ++t)
    if (paths[t] != nullptr)
      for (const std::size_t link : paths[t]->links) on_link[link].push_back(t);
  std::vector<bool> meets(graph.size());
  for (std::vector<std::size_t>& tasks : on_link) {
    std::ranges::sort(tasks, {}, [&](std::size_t t) { return step.events[t].start; });
    for (std::size_t i = 1, last = 0; i < tasks.size(); ++i) {
      if (step.events[tasks[i]].start < step.events[tasks[last]].end)
        meets[tasks[i]] = meets[tasks[last]] = true;
      if (step.events[tasks[i]].end > step.events[tasks[last]].end) last = i;
    }
  }
  return meets;
}

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

struct Sizes {
  std::vector<double> bytes, rates;
};

BandwidthCurve curve_of(const std::map<long, Sizes>& buckets) {
  BandwidthCurve curve;
  double before = 0;
  for (const auto& [size, of] : buckets) {
    const double bytes = middle(of.bytes);
    // A larger message takes no less time.
    const double time = std::max(bytes / middle(of.rates), before);
    curve.points.push_back({Bytes{std::llround(bytes)}, {bytes / time}});
    before = time;
  }
  return curve;
}

}  // namespace

std::vector<ObservedMessage> observed_messages(const DependencyGraph& graph, const ObservedRun& run,
                                               const StageCosts& costs, const Placement& placement,
                                               const Cluster& cluster) {
  std::vector<const Path*> paths(graph.size());
  for (std::size_t t = 0; t < graph.size(); ++t)
    if (const Task& task = graph.tasks[t]; task.kind == TaskKind::Transfer)
      paths[t] = &cluster.path(placement.device(task.rank), placement.device(task.peer));
  std::vector<ObservedMessage> messages;
  for (std::size_t k = 0; k < run.steps.size(); ++k) {
    const std::vector<bool> meets = meeting(graph, run.steps[k], paths, cluster.links.size());
    for (std::size_t t = 0; t < graph.size(); ++t) {
      if (paths[t] == nullptr || paths[t]->links.empty() || meets[t] || !run.watched[k][t])
        continue;
      const Task& task = graph.tasks[t];
      const Event& event = run.steps[k].events[t];
      const Bytes bytes = slot_bytes(graph.slots[task.slot], costs);
      if (bytes > Bytes{0} && event.end > event.start)
        messages.push_back({k, placement.device(task.rank), placement.device(task.peer),
                            narrowest(*paths[t], cluster), bytes, event.end - event.start});
    }
  }
  return messages;
}

std::map<std::string, CalibratedLink> calibrated_links(const std::vector<ObservedMessage>& messages,
                                                       const Cluster& cluster) {
  std::map<std::string, CalibratedLink> links;
  std::map<std::string, std::map<long, Sizes>> buckets;
  for (const ObservedMessage& message : messages) {
    CalibratedLink& link = links[message.link];
    if (message.step % 2 == 1) {
      ++link.held_out;
      continue;
    }
    ++link.messages;
    const auto bytes = static_cast<double>(message.bytes.value);
    const Nanoseconds latency = cluster.path(message.from, message.to).latency;
    // Where the latency is nearly all, what is left of it says little.
    const double moving = seconds(std::max(message.time - latency, message.time / 10));
    Sizes& sizes = buckets[message.link][std::lround(2 * std::log2(bytes))];
    sizes.bytes.push_back(bytes), sizes.rates.push_back(bytes / moving);
  }
  std::erase_if(links, [](const auto& link) {
    return link.second.messages == 0 || link.second.held_out == 0;
  });
  for (auto& [name, link] : links) {
    link.curve = curve_of(buckets[name]);
    link.before = error_held_out(messages, name, cluster);
  }
  return links;
}

double error_held_out(const std::vector<ObservedMessage>& messages, const std::string& link,
                      const Cluster& cluster) {
  std::vector<double> errors;
  for (const ObservedMessage& message : messages)
    if (message.step % 2 == 1 && message.link == link)
      errors.push_back(
          seconds(transfer_time(cluster.path(message.from, message.to), message.bytes)) /
              seconds(message.time) -
          1);
  return middle(std::move(errors));
}

}  // namespace pfeife
