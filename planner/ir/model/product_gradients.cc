#include "planner/ir/model/product_gradients.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

bool shows_all(const Node& node) {
  static constexpr std::array kViews{"aten::permute", "aten::t",         "aten::transpose",
                                     "aten::view",    "aten::unsqueeze", "aten::squeeze"};
  return node.outputs.size() == 1 &&
         std::ranges::any_of(kViews, [&](const char* name) { return node.op == name; });
}

bool has_each_once(const std::string& letters) {
  return std::ranges::all_of(letters, [&](unsigned char c) {
    return std::isalpha(c) != 0 && std::ranges::count(letters, static_cast<char>(c)) == 1;
  });
}

}  // namespace

std::optional<EinsumGradients> einsum_gradients(std::string equation) {
  std::erase(equation, ' ');
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma)
    return std::nullopt;
  const std::string left = equation.substr(0, comma),
                    right = equation.substr(comma + 1, arrow - comma - 1),
                    result = equation.substr(arrow + 2);
  const auto found_in = [](const std::string& letters, const std::string& others) {
    return std::ranges::all_of(letters,
                               [&](char c) { return others.find(c) != std::string::npos; });
  };
  for (const std::string* letters : {&left, &right, &result})
    if (!has_each_once(*letters)) return std::nullopt;
  if (!found_in(left, right + result) || !found_in(right, left + result) ||
      !found_in(result, left + right))
    return std::nullopt;
  return EinsumGradients{stream_all(result, ',', right, "->", left),
                         stream_all(left, ',', result, "->", right)};
}

std::optional<NodeId> sole_reader(const Graph& graph, ValueId v) {
  if (std::ranges::find(graph.outputs, v) != graph.outputs.end()) return std::nullopt;
  std::optional<NodeId> reader;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::vector<ValueId> read = inputs_of(graph.nodes[n]);
    if (std::ranges::find(read, v) == read.end()) continue;
    if (reader) return std::nullopt;
    reader = NodeId{n};
  }
  return reader;
}

ValueId parameter_behind(const Graph& graph, ValueId v) {
  while (v != kNoValue && graph.value(v).role != ValueRole::Parameter) {
    const auto producer = graph.value(v).producer;
    if (!producer || !shows_all(graph.node(*producer)) || !sole_reader(graph, v)) return kNoValue;
    v = first_tensor(graph.node(*producer));
  }
  return v;
}

}  // namespace pfeife
