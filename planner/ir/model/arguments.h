// Reading the arguments of a node by name.
#pragma once

#include <string>

#include "planner/ir/model/graph.h"

namespace pfeife {

/// Stands for a tensor argument that is not there.
inline constexpr ValueId kNoValue{-1};

/// The tensor argument `name`; kNoValue if it is absent, None or no tensor.
ValueId tensor_argument(const Node& node, const std::string& name);
/// The first tensor among the arguments, lists included; kNoValue if there is none.
ValueId first_tensor(const Node& node);
double number_argument(const Node& node, const std::string& name, double otherwise);
bool flag_argument(const Node& node, const std::string& name, bool otherwise);

/// The two factors of a product or convolution and what is added to it, whatever their names:
/// linear(input, weight, bias), addmm(self, mat1, mat2), matmul(self, other), mm(self, mat2), ...
struct Factors {
  ValueId left = kNoValue, right = kNoValue, bias = kNoValue;
};
Factors factors_of(const Node& node);

}  // namespace pfeife
