#include <algorithm>
#include <map>
#include <numeric>

#include "planner/cost/layers/grouping_parts.h"

namespace pfeife {
namespace {

/// The nodes of a module and of what it contains, by their position among those that are not local.
struct Extent {
  std::size_t first = 0, last = 0, count = 0;
  bool called = false;  // it has operators of its own: containers have none, and are never called
  bool once() const { return called && last - first + 1 == count; }
};

/// visit(path of a module that contains the one of `path`, or is it), the outermost first.
template <class Visit>
void each_module(const std::string& path, const Visit& visit) {
  for (std::size_t end = 0; end < path.size(); ++end) {
    end = std::min(path.find('.', end), path.size());
    visit(path.substr(0, end));
  }
}

class Borders {
 public:
  Borders(const GraphFacts& facts, const std::vector<bool>& local) : facts_(facts), local_(local) {
    for (const NodeId n : nodes_of(facts.graph))
      if (!local[n.index()]) nodes_.push_back(n);
  }

  std::vector<NodeBorder> found() {
    measure_modules();
    count_values();
    const std::vector<bool> writes = writers();
    std::vector<NodeBorder> borders(local_.size());
    for (std::size_t at = 0; at + 1 < nodes_.size(); ++at) {
      NodeBorder& border = borders[nodes_[at].index()];
      border.one_value = passing_[at] == 1 && !writes[nodes_[at + 1].index()];
      border.ended = outermost(at, &Extent::last);
      border.begun = outermost(at + 1, &Extent::first);
    }
    return borders;
  }

 private:
  void measure_modules() {
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      const std::string& path = facts_.node(nodes_[at]).module_path;
      each_module(path, [&](const std::string& module) {
        Extent& extent = modules_[module];
        if (extent.count++ == 0) extent.first = at;
        extent.last = at;
        extent.called = extent.called || module == path;
      });
    }
  }

  /// [position] values made at or before it that are read behind it.
  void count_values() {
    std::vector<std::size_t> last_reader(facts_.graph.values.size(), 0);
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      const OperatorTraits* row = facts_.traits[nodes_[at].index()];
      if (row != nullptr && row->metadata_only) continue;
      for (const ValueId v : facts_.inputs(nodes_[at])) last_reader[v.index()] = at;
    }
    passing_.assign(nodes_.size(), 0);  // changes, summed up below
    for (std::size_t at = 0; at < nodes_.size(); ++at)
      for (const ValueId v : facts_.node(nodes_[at]).outputs)
        if (last_reader[v.index()] > at) ++passing_[at], --passing_[last_reader[v.index()]];
    std::partial_sum(passing_.begin(), passing_.end(), passing_.begin());
  }

  /// [node] it writes into what an earlier one made.
  std::vector<bool> writers() const {
    std::vector<bool> writes(local_.size());
    for (const Aliasing::Write& write : facts_.aliases.writes)
      if (facts_.graph.value(write.storage).role == ValueRole::Intermediate)
        writes[write.node.index()] = true;
    return writes;
  }

  /// The outermost module of the node at a position that is called once, and has `end` there.
  std::string outermost(std::size_t at, std::size_t Extent::*end) const {
    std::string found;
    each_module(facts_.node(nodes_[at]).module_path, [&](const std::string& module) {
      const Extent& extent = modules_.at(module);
      if (found.empty() && extent.once() && extent.*end == at) found = module;
    });
    return found;
  }

  const GraphFacts& facts_;
  const std::vector<bool>& local_;
  std::vector<NodeId> nodes_;  // that are not local
  std::map<std::string, Extent> modules_;
  std::vector<std::int64_t> passing_;
};

}  // namespace

std::vector<NodeBorder> module_borders(const GraphFacts& facts, const std::vector<bool>& local) {
  return Borders(facts, local).found();
}

}  // namespace pfeife
