// Told what a stage does node by node: how a profiler watches the code that trains.
#pragma once

#include <vector>

#include "planner/ir/basics/ids.h"
#include "runtime/device/aten.h"

namespace pfeife {

class StageObserver {
 public:
  virtual ~StageObserver() = default;

  /// F: the node's operator is about to be called; its results are there; what nobody reads
  /// afterwards is freed.
  virtual void before_node(NodeId node) = 0;
  virtual void computed(NodeId node, const std::vector<ValueId>& outputs,
                        const std::vector<at::Tensor>& values) = 0;
  virtual void after_node(NodeId node) = 0;
  /// W: the node's weight gradients are added up, and what they needed is freed.
  virtual void before_weight(NodeId node) = 0;
  virtual void after_weight(NodeId node) = 0;
};

}  // namespace pfeife
