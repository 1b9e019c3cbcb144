// Profile of a graph on a device from its data sheet.
//
// A kernel takes max(FLOPs / (peak x efficiency), bytes / (bandwidth x memory efficiency)) + the
// device's overhead, a batch of products the sum instead of the larger one: its products are too
// small to compute while others are written. A node takes the sum of its kernels (work.h).
// Efficiency: the device's measured curve for square products of as many FLOPs, times the kernel's
// share of it; of fused attention in 16 bits the share of the peak that the device lists. Products
// and attention whose shapes are among the device's measured ones, or between them, take that time.
// Nothing is fitted to a measured model. Not modelled: caches, kernels side by side, the host
// falling behind.
#pragma once

#include <span>

#include "planner/cost/operators/graph_facts.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/operator_cost.h"
#include "planner/ir/model/profile.h"
#include "planner/ir/model/recipe.h"

namespace pfeife {

/// F, I and W time, saved, weight-saved and temporary bytes of every node and optimizer time of
/// every parameter, for one microbatch of `training.microbatch_size` samples, which must be the
/// graph's. Operators without a row in the table are charged by bytes, and `warnings` names them;
/// so it does where the device lists no peak for the precision and the nearest one is taken.
/// ConfigError if it lists none that could serve. Linear.
/// `formats`: [node] in which its products run; empty = all in their types. ConfigError if the
/// device lists no peak of a format: nothing stands in for it. What it moves beyond a square
/// product counts with cast operands and a 16-bit result. The curve of a format holds a cast of one
/// operand for each product; where another format's curve stands in, the cast is charged beside it.
/// `costs` of operators go before their rows; ConfigError without a place if a formula does not fit
/// a node.
Profile roofline_profile(const FactsByPrecision& graph, const DeviceKind& device,
                         const Training& training, std::span<const OperatorCost> costs = {},
                         std::span<const Format> formats = {});

/// The distinct products and fused attentions of that profile, with where their times come from, by
/// precision and shape.
std::vector<ProductUse> product_uses(const FactsByPrecision& graph, const DeviceKind& device,
                                     const Training& training,
                                     std::span<const OperatorCost> costs = {},
                                     std::span<const Format> formats = {});

/// [parameter] State and step of a graph whose parameters have 16 bits, with fp32 gradients and
/// masters.
std::vector<ParameterProfile> updates_with_masters(const Graph& graph, const DeviceKind& device,
                                                   const Optimizer& optimizer);

}  // namespace pfeife
