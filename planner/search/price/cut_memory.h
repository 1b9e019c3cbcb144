// What ranks hold of cuts under one schedule: lower bounds, and what the exact memory rule was
// found to add to them.
#pragma once

#include <utility>
#include <vector>

#include "planner/search/price/known_stages.h"
#include "planner/search/price/live_memory.h"
#include "planner/search/problem.h"

namespace pfeife {

class CutMemory {
 public:
  /// Keeps references to `model` and `problem`.
  CutMemory(const CutModel& model, const Problem& problem, const Schedule& compute_only,
            const Placement& placement);

  const LiveMemory& live() const { return live_; }
  /// [rank] What the exact rule says above the bound of LiveMemory, where it last refused.
  std::vector<double>& above() { return above_; }

  /// Candidates::excess and surely_too_full.
  double excess(const Cuts& cuts);
  bool surely_too_full(const Cuts& cuts) const;

  /// By the exact rule some ranks are too full.
  void note_too_full(const Cuts& cuts, const std::vector<Bytes>& peak_memory);
  /// `costs` are those of `cuts`, nothing recomputed.
  void learn(const Cuts& cuts, const StageCosts& costs) { known_.learn(cuts, costs); }
  /// Some rank surely lacks `least` or more, by what was learnt of its stages. Notes what they are
  /// above the bound if so.
  bool surely_lacks(const Cuts& cuts, Bytes least);

  std::size_t weighed() const { return weighed_; }
  /// As Candidates::join; `judged`: the copy has judged cuts by the exact rule.
  void join(CutMemory& copy, bool judged);
  void follow(const CutMemory& original);

 private:
  double limit(std::size_t rank) const {
    return static_cast<double>(problem_.memory_limit[rank].value);
  }

  const CutModel& model_;
  const Problem& problem_;
  LiveMemory live_;
  PeakMemo peaks_;
  KnownStages known_;
  std::vector<double> above_;  // [rank]
  std::size_t weighed_ = 0;    // by excess()
};

}  // namespace pfeife
