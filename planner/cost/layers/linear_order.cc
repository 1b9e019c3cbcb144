#include "planner/cost/layers/linear_order.h"

#include <algorithm>
#include <map>
#include <set>

#include "planner/cost/layers/grouping_parts.h"
#include "planner/cost/operators/graph_facts.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// What has to come before what.
struct Dependencies {
  std::vector<std::vector<NodeId>> before, after;  // [node] sorted, unique

  explicit Dependencies(const GraphFacts& facts)
      : before(facts.graph.nodes.size()), after(facts.graph.nodes.size()) {
    for (const NodeId n : nodes_of(facts.graph))
      for (const ValueId v : facts.inputs(n))
        if (const auto& producer = facts.graph.value(v).producer) add(*producer, n);
    add_writes(facts);
    for (auto* lists : {&before, &after})
      for (std::vector<NodeId>& list : *lists) {
        std::ranges::sort(list);
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
  }

 private:
  void add(NodeId first, NodeId second) {
    if (first == second) return;
    before[second.index()].push_back(first);
    after[first.index()].push_back(second);
  }
  /// A write comes after every earlier touch of the storage, and before every later one.
  void add_writes(const GraphFacts& facts) {
    std::set<std::pair<NodeId, ValueId>> writes;
    std::set<ValueId> written;
    for (const Aliasing::Write& write : facts.aliases.writes) {
      writes.emplace(write.node, write.storage);
      written.insert(write.storage);
    }
    struct Touches {
      std::optional<NodeId> write;
      std::vector<NodeId> since;
    };
    std::map<ValueId, Touches> of_storage;
    for (const NodeId n : nodes_of(facts.graph)) {
      std::set<ValueId> touched;
      for (const ValueId v : facts.inputs(n)) touched.insert(facts.storage(v));
      for (const ValueId v : facts.node(n).outputs) touched.insert(facts.storage(v));
      for (const ValueId storage : touched) {
        if (!written.contains(storage)) continue;
        Touches& touches = of_storage[storage];
        if (touches.write) add(*touches.write, n);
        if (writes.contains({n, storage})) {
          for (const NodeId earlier : touches.since) add(earlier, n);
          touches = {n, {}};
        } else {
          touches.since.push_back(n);
        }
      }
    }
  }
};

std::vector<NodeId> depth_first(const GraphFacts& facts) {
  const Dependencies depends(facts);
  std::vector<NodeId> order;
  std::vector<bool> entered(facts.graph.nodes.size(), false);
  struct Visit {
    NodeId node;
    std::size_t next = 0;  // of depends.before
  };
  std::vector<Visit> stack;
  const auto enter = [&](NodeId n) {
    if (entered[n.index()]) return;
    entered[n.index()] = true;
    stack.push_back({n});
  };
  for (const NodeId last : nodes_of(facts.graph)) {
    if (!depends.after[last.index()].empty()) continue;  // only what nothing waits for
    enter(last);
    while (!stack.empty()) {
      Visit& visit = stack.back();
      const auto& before = depends.before[visit.node.index()];
      if (visit.next < before.size()) {
        enter(before[visit.next++]);
      } else {
        order.push_back(visit.node);
        stack.pop_back();
      }
    }
  }
  return order;
}

/// Bytes of the values that are sent where a cut separates their maker from a reader.
class LiveBytes {
 public:
  explicit LiveBytes(const GraphFacts& facts)
      : facts_(facts), local_(local_nodes(facts)), readers_(facts.graph.values.size(), 0) {
    for (const NodeId n : nodes_of(facts.graph))
      for (const ValueId v : facts.distinct_inputs(n)) ++readers_[v.index()];
  }
  /// By how much the bytes alive grow when the node runs next.
  std::int64_t growth(NodeId n) const {
    std::int64_t bytes = 0;
    for (const ValueId v : facts_.node(n).outputs)
      if (sent(v) && readers_[v.index()] > 0) bytes += facts_.bytes(v).value;
    for (const ValueId v : facts_.distinct_inputs(n))
      if (sent(v) && readers_[v.index()] == 1) bytes -= facts_.bytes(v).value;
    return bytes;
  }
  void run(NodeId n) {
    for (const ValueId v : facts_.distinct_inputs(n)) --readers_[v.index()];
  }

 private:
  bool sent(ValueId v) const {
    const auto& producer = facts_.graph.value(v).producer;
    return producer && !local_[producer->index()];
  }

  const GraphFacts& facts_;
  std::vector<bool> local_;   // [node]
  std::vector<int> readers_;  // [value] that have not run
};

std::vector<NodeId> least_live(const GraphFacts& facts) {
  const Dependencies depends(facts);
  LiveBytes live(facts);
  std::vector<std::size_t> waits;
  std::set<NodeId> ready;
  for (const NodeId n : nodes_of(facts.graph)) {
    waits.push_back(depends.before[n.index()].size());
    if (waits.back() == 0) ready.insert(n);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId best = *std::ranges::min_element(ready, {}, [&](NodeId n) {
      return std::pair{live.growth(n), n};
    });
    ready.erase(best);
    live.run(best);
    order.push_back(best);
    for (const NodeId n : depends.after[best.index()])
      if (--waits[n.index()] == 0) ready.insert(n);
  }
  return order;
}

}  // namespace

const std::vector<std::string>& linear_orders() {
  static const std::vector<std::string> names{"captured", "depth_first", "least_live"};
  return names;
}

std::vector<NodeId> linear_order(const Graph& graph, const std::string& name) {
  if (name == "captured") return nodes_of(graph);
  const GraphFacts facts(graph, Precision::Fp32);
  PFEIFE_CHECK(name == "depth_first" || name == "least_live", "no order ", name);
  return name == "depth_first" ? depth_first(facts) : least_live(facts);
}

}  // namespace pfeife
