// FLOPs and bytes of operators, forward and backward.
//
// FLOPs: a multiply-add counts two; equal to torch.utils.flop_counter on products, convolutions and
// attention; everything else is bound by memory and counts none. Bytes: what has to move to and
// from memory if nothing stays in a cache.
#pragma once

#include "planner/cost/aliasing.h"
#include "planner/cost/operators.h"
#include "planner/ir/graph.h"

namespace pfeife {

/// The work of one pass of one node.
struct PassWork {
  Flops flops;
  Bytes bytes{0};
  int kernels = 0;
  friend bool operator==(const PassWork&, const PassWork&) = default;
};

struct NodeWork {
  PassWork forward;
  PassWork backward_input;  ///< gradients of activations, and of parameters of norms and the like
  PassWork
      backward_weight;  ///< gradients of the parameters of products, convolutions and embeddings
  bool known = true;    ///< false: not in the operator table, charged by bytes
  friend bool operator==(const NodeWork&, const NodeWork&) = default;
};

/// Work of every node, [node]. `autocast` adds the casts of products. Accumulating a gradient into
/// the parameter's costs 12 B an element, once per microbatch and product; adding up gradients of a
/// value read k times costs k - 1 additions. Linear.
std::vector<NodeWork> node_work(const Graph& graph, const Aliasing& aliases, bool autocast);

}  // namespace pfeife
