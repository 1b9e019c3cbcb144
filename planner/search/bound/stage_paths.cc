#include "planner/search/bound/stage_paths.h"

#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/lower.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {
namespace {

/// Finds its way backwards through the dependencies of a schedule on a chain of stages.
class Walker {
 public:
  Walker(const Schedule& schedule, const Placement& placement)
      : placement_(placement), microbatches_(microbatch_count(schedule)) {
    const std::size_t stages = placement.stages();
    const Nanoseconds ns{1};
    graph_ = dependencies(lower(schedule, uniform_costs(stages, ns, ns, ns, ns), placement),
                          chain(stages), placement, {});
    for (auto& tasks : task_) tasks.resize(stages * microbatches_);
    last_.resize(graph_.ranks), first_.resize(stages), gone_on_.resize(stages),
        returned_.resize(stages), left_.resize(stages);
    std::vector<bool> seen(stages, false), back(stages, false);
    for (std::size_t t = 0; t < graph_.size(); ++t) note(t, seen, back);
  }

  CertifiedPath path(const StagePath& through) {
    const std::size_t s = through.stage, last = placement_.stages() - 1;
    if (forward_only_) return forward_path(s);
    const std::size_t rank = placement_.rank_of_stage[through.leaves ? 0 : s].index();
    path_ = {static_cast<std::uint32_t>(rank), ""}, at_ = last_[rank];
    for (std::size_t i = 0; through.leaves && i <= s; ++i) go_to(kBack, i, left_[s]);
    for (std::size_t i = s; through.returns && i <= last; ++i) go_to(kBack, i, returned_[s]);
    const std::size_t microbatch = through.returns ? returned_[s] : first_[s];
    for (std::size_t i = (through.returns ? last : s) + 1; i-- > 0;) go_to(kOn, i, microbatch);
    return path_;
  }

 private:
  enum Way : std::size_t { kOn, kBack };

  /// From the last F of the last stage that the last microbatch of stage s goes through.
  CertifiedPath forward_path(std::size_t s) {
    const std::size_t last = placement_.stages() - 1;
    const std::size_t rank = placement_.rank_of_stage[last].index();
    path_ = {static_cast<std::uint32_t>(rank), ""}, at_ = last_[rank];
    for (std::size_t i = last + 1; i-- > s;) go_to(kOn, i, gone_on_[s]);
    for (std::size_t i = s + 1; i-- > 0;) go_to(kOn, i, first_[s]);
    return path_;
  }

  /// Tasks of a rank come in their order.
  void note(std::size_t t, std::vector<bool>& seen, std::vector<bool>& back) {
    const Task& task = graph_.tasks[t];
    if (task.kind == TaskKind::Transfer) return;
    last_[task.rank.index()] = t;
    for_each_action(task.cell, [&](const Action& a) {
      const bool returns = makes_input_gradient(a.op);
      if (!returns && a.op != Op::Forward) return;
      const std::size_t s = a.stage.index(), m = a.microbatch->index();
      task_[returns ? kBack : kOn][s * microbatches_ + m] = t;
      if (!returns && !seen[s]) first_[s] = m, seen[s] = true;
      if (!returns) gone_on_[s] = m;
      forward_only_ = forward_only_ && !returns;
      if (returns && !back[s]) returned_[s] = m, back[s] = true;
      if (returns) left_[s] = m;
    });
  }

  /// To a task of the same rank, or that the present one waits for.
  void go_to(Way way, std::size_t stage, std::size_t microbatch) {
    const std::size_t to = task_[way][stage * microbatches_ + microbatch];
    if (graph_.tasks[to].rank != graph_.tasks[at_].rank) cross(to);
    for (; at_ != to; path_.turns += 'r') {
      const auto edges = graph_.edges_into(TaskId{at_});
      const auto edge = std::ranges::find(edges, EdgeKind::RankOrder, &Edge::kind);
      PFEIFE_CHECK(edge != edges.end(), "a stage's actions are out of order");
      at_ = edge->from.index();
    }
  }
  void cross(std::size_t to) {
    for (const Edge& edge : graph_.edges_into(TaskId{at_})) {
      const Task& sent = graph_.tasks[edge.from.index()];
      if (sent.kind != TaskKind::Transfer || graph_.edges_into(edge.from)[0].from.index() != to)
        continue;
      const bool onward = std::get<Action>(sent.cell).direction == Direction::Forward;
      path_.turns += onward ? "fd" : "bd", at_ = to;
      return;
    }
    PFEIFE_CHECK(false, "a stage waits for nothing");
  }

  const Placement& placement_;
  std::size_t microbatches_;
  DependencyGraph graph_;
  std::vector<std::size_t> task_[2];  // [way][stage * microbatches + microbatch]
  std::vector<std::size_t> last_;     // [rank]
  // [stage] microbatch of its first and its last F, its first and its last B or I
  std::vector<std::size_t> first_, gone_on_, returned_, left_;
  bool forward_only_ = true;
  CertifiedPath path_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<CertifiedPath> certified_paths(const Schedule& compute_only, const Placement& placement,
                                           std::span<const StagePath> paths) {
  Walker walker(compute_only, placement);
  std::vector<CertifiedPath> found;
  for (const StagePath& path : paths) found.push_back(walker.path(path));
  return found;
}

CertifiedProof stage_proof(const Candidates& candidates, std::int64_t bound) {
  const std::vector<CutCosts::Latency> none(candidates.stages(), {0, 0});
  const Schedule schedule = candidates.schedule();
  CertifiedProof proof{.spec = candidates.spec(),
                       .least_load = std::vector<std::int64_t>(candidates.stages(), 0),
                       .tree = {CertifiedNode{}},
                       .linked = !candidates.model().all_linked()};
  proof.paths = certified_paths(schedule, candidates.placement(),
                                binding_paths(candidates.model(), candidates.costs(), schedule,
                                              none, static_cast<double>(bound)));
  for (std::uint32_t k = 0; k < proof.paths.size(); ++k) proof.tree[0].weights.push_back({{k, 1}});
  return proof;
}

}  // namespace pfeife
