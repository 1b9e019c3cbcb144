// Where a model is cut: its layers in order, once as wide as they take time, once as they need
// memory, coloured by the rank that has them.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

struct RibbonLayer {
  std::string name;
  std::size_t stage = 0;
  Nanoseconds time{0};  ///< forward and backward of one microbatch, estimated
  Bytes held{0};        ///< parameters, gradients, optimizer state
  Bytes saved{0};       ///< by one microbatch
};

struct Ribbon {
  std::string name;  ///< "zb_greedy, V=3"
  std::vector<RankId> rank_of_stage;
  std::vector<RibbonLayer> layers;  ///< in the order of the model
};

/// An SVG document; figures of stages and layers as tooltips. Layers thinner than a few pixels are
/// drawn together. "" without layers.
std::string partition_svg(const Ribbon& ribbon, int width);

}  // namespace pfeife
