// The estimate of one plan whose microbatches are packed in other ways: its rows, cuts and
// recomputation stay.
#pragma once

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/choice.h"
#include "planner/ir/result/step_norm.h"

namespace pfeife {

class GroupedTimes {
 public:
  /// `layers`: with Layers::sequence, tokens known; what they say of microbatches is not used.
  /// Keeps a reference to `cluster`.
  GroupedTimes(const Layers& layers, const Cluster& cluster, const Choice& choice, StepNorm norm);

  /// Step time, ns, as evaluate() estimates it; as many microbatches as the choice has. Linear in
  /// the tasks.
  std::int64_t time(const DocumentLengths& grouping);

 private:
  Layers layers_;  // `microbatches` are those asked for last
  const Cluster& cluster_;
  Partition partition_;
  Placement placement_;
  StageCosts any_;  // of a microbatch of the layers' own size
  std::vector<DurationSlot> slots_;
  CompiledGraph graph_;
};

}  // namespace pfeife
