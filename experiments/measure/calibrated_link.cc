#include <algorithm>
#include <cmath>

#include "experiments/measure/calibrated_parts.h"

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

/// Messages of one half octave.
struct Sizes {
  std::vector<double> bytes, times;  // s
  std::vector<double> latencies;     // of their ways, as they were
};
using Buckets = std::map<long, Sizes>;

/// A line through the medians of the sizes; why there is none.
void fit_latency(const Buckets& buckets, CalibratedLink& link) {
  struct Point {
    double bytes, time;
  };
  std::vector<Point> points;
  double least = 0, most = 0;
  for (const auto& [size, bucket] : buckets) {
    least = least > 0 ? std::min(least, std::ranges::min(bucket.latencies))
                      : std::ranges::min(bucket.latencies);
    most = std::max(most, std::ranges::max(bucket.latencies));
    if (bucket.times.size() >= kFew) points.push_back({middle(bucket.bytes), middle(bucket.times)});
  }
  link.latency_stays = "it takes messages of two sizes, one four times the other";
  if (points.size() < 2 || points.back().bytes < kApart * points.front().bytes) return;
  link.latency_stays = "its messages take ways of several latencies";
  if (most > least) return;
  std::vector<double> slopes, latencies;
  for (std::size_t a = 0; a < points.size(); ++a)
    for (std::size_t b = a + 1; b < points.size(); ++b)
      slopes.push_back((points[b].time - points[a].time) / (points[b].bytes - points[a].bytes));
  const double slope = middle(std::move(slopes));
  for (const Point& point : points) latencies.push_back(point.time - slope * point.bytes);
  const double latency = middle(std::move(latencies));
  link.latency_stays = "larger messages took no longer";
  if (slope <= 0) return;
  link.latency_stays = "the line of time over bytes passes below 0";
  if (latency < 0) return;
  link.latency_stays.clear();
  link.latency = nanoseconds_from_seconds(latency);
}

BandwidthCurve curve_of(const Buckets& buckets, std::optional<Nanoseconds> latency) {
  BandwidthCurve curve;
  double before = 0;
  for (const auto& [size, bucket] : buckets) {
    const double bytes = middle(bucket.bytes);
    std::vector<double> moving;
    for (std::size_t i = 0; i < bucket.times.size(); ++i) {
      // Where the latency is nearly all, what is left of it says little.
      const double way = latency ? seconds(*latency) : bucket.latencies[i];
      moving.push_back(std::max(bucket.times[i] - way, bucket.times[i] / 10) / bucket.bytes[i]);
    }
    // A larger message takes no less time.
    const double time = std::max(bytes * middle(std::move(moving)), before);
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

std::map<std::string, CalibratedLink> calibrated_links(
    const std::vector<ObservedMessage>& messages, const Cluster& cluster, Nanoseconds overhead,
    const std::function<bool(const std::string& link)>& has_own_latency) {
  std::map<std::string, CalibratedLink> links;
  std::map<std::string, Buckets> buckets;
  for (const ObservedMessage& message : messages) {
    CalibratedLink& link = links[message.link];
    if (message.step % 2 == 1) {
      ++link.held_out;
      continue;
    }
    ++link.messages;
    const auto bytes = static_cast<double>(message.bytes.value);
    Sizes& sizes = buckets[message.link][std::lround(2 * std::log2(bytes))];
    sizes.bytes.push_back(bytes), sizes.times.push_back(seconds(message.time));
    sizes.latencies.push_back(seconds(cluster.path(message.from, message.to).latency - overhead));
  }
  std::erase_if(links, [](const auto& link) {
    return link.second.messages == 0 || link.second.held_out == 0;
  });
  for (auto& [name, link] : links) {
    if (has_own_latency(name))
      fit_latency(buckets[name], link);
    else
      link.latency_stays = "the cluster file has it as a sum, or in several routes";
    link.curve = curve_of(buckets[name], link.latency);
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
