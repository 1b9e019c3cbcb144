#include "tests/gpu/card/shared_device.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/basics/error.h"

namespace pfeife::card {
namespace {

bool uses_device(const Task& task) {
  return task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer;
}

class SharedDevice {
 public:
  SharedDevice(const DependencyGraph& graph, const std::vector<Nanoseconds>& durations)
      : graph_(graph), left_(graph.size()), waits_(graph.size()), readers_(graph.size()) {
    times_.resize(graph.size());
    for (std::size_t t = 0; t < graph.size(); ++t) {
      left_[t] = static_cast<double>(durations[graph.tasks[t].slot].count());
      const auto edges = graph.edges_into(TaskId{static_cast<std::int64_t>(t)});
      waits_[t] = edges.size();
      for (const Edge& edge : edges) readers_[edge.from.index()].push_back(t);
    }
  }

  std::vector<TaskTimes> run() {
    for (std::size_t t = 0; t < graph_.size(); ++t)
      if (waits_[t] == 0) begin(t);
    std::size_t ended = 0;
    while (!running_.empty()) ended += end_next();
    PFEIFE_CHECK(ended == graph_.size(), "the graph is a deadlock");
    return times_;
  }

 private:
  void begin(std::size_t t) {
    times_[t].start = Nanoseconds{std::llround(now_)};
    running_.push_back(t);
  }

  /// Goes on to the next moment at which tasks end; how many do.
  std::size_t end_next() {
    const auto sharing = static_cast<double>(std::ranges::count_if(
        running_, [&](std::size_t t) { return uses_device(graph_.tasks[t]); }));
    const auto rate = [&](std::size_t t) {
      return uses_device(graph_.tasks[t]) ? 1 / sharing : 1.0;
    };
    double next = INFINITY;
    for (const std::size_t t : running_) next = std::min(next, left_[t] / rate(t));
    now_ += next;
    std::vector<std::size_t> ended;
    for (const std::size_t t : running_) {
      left_[t] -= next * rate(t);
      if (left_[t] < 1e-3) ended.push_back(t);  // of a nanosecond
    }
    for (const std::size_t t : ended) {
      std::erase(running_, t);
      times_[t].end = Nanoseconds{std::llround(now_)};
    }
    for (const std::size_t t : ended)
      for (const std::size_t reader : readers_[t])
        if (--waits_[reader] == 0) begin(reader);
    return ended.size();
  }

  const DependencyGraph& graph_;
  std::vector<double> left_;  // ns of the whole device
  std::vector<std::size_t> waits_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::size_t> running_;
  std::vector<TaskTimes> times_;
  double now_ = 0;
};

}  // namespace

std::vector<TaskTimes> times_on_shared_device(const DependencyGraph& graph,
                                              const std::vector<Nanoseconds>& durations) {
  return SharedDevice(graph, durations).run();
}

}  // namespace pfeife::card
