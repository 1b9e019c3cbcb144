#include "planner/cost/autocast.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/cost/operators.h"

namespace pfeife {
namespace {

bool runs_in_fp32(const std::string& op) {
  constexpr std::array<std::string_view, 12> kFp32{"aten::cross_entropy_loss",
                                                   "aten::exp",
                                                   "aten::group_norm",
                                                   "aten::layer_norm",
                                                   "aten::log",
                                                   "aten::log_softmax",
                                                   "aten::mse_loss",
                                                   "aten::norm",
                                                   "aten::pow",
                                                   "aten::rsqrt",
                                                   "aten::softmax",
                                                   "aten::sum"};
  return std::ranges::find(kFp32, std::string_view(op)) != kFp32.end();
}

bool runs_in_16_bits(const OperatorTraits* traits) {
  return traits != nullptr && (traits->work == Work::Product || traits->work == Work::Convolution ||
                               traits->work == Work::Attention);
}

}  // namespace

Graph under_autocast(const Graph& graph, Precision precision) {
  if (precision != Precision::Bf16Amp && precision != Precision::Fp16Amp) return graph;
  const DType narrow = precision == Precision::Bf16Amp ? DType::BFloat16 : DType::Float16;
  Graph cast = graph;
  for (const Node& node : cast.nodes) {
    const OperatorTraits* traits = find_operator(node.op);
    DType result = narrow;
    if (node.find("dtype") != nullptr) continue;  // a type written into the graph stays
    if (runs_in_fp32(node.op)) {
      result = DType::Float32;
    } else if (!runs_in_16_bits(traits)) {
      bool wide = true;
      for (const ValueId v : inputs_of(node)) {
        const TensorType& type = cast.value(v).type;
        if (!is_floating(type.dtype) || type.sizes.empty()) continue;
        wide = type.dtype != narrow;
        if (wide) break;
      }
      if (wide) continue;
    }
    for (const ValueId v : node.outputs)
      if (cast.value(v).type.dtype == DType::Float32) cast.values[v.index()].type.dtype = result;
  }
  return cast;
}

}  // namespace pfeife
