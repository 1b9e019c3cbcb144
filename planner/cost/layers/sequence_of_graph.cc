#include "planner/cost/layers/sequence_of_graph.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

/// Element-wise, or along the last dimension, which is never the sequence of an activation.
constexpr std::array<std::string_view, 35> kByPosition{
    "add",  "sub",      "rsub",           "mul",   "div",  "neg",      "abs",        "exp",
    "log",  "sqrt",     "rsqrt",          "pow",   "tanh", "sigmoid",  "silu",       "gelu",
    "relu", "softplus", "leaky_relu",     "elu",   "cos",  "sin",      "clamp",      "where",
    "erf",  "dropout",  "native_dropout", "clone", "to",   "_to_copy", "contiguous", "embedding",
    "add_", "mul_",     "masked_fill"};
/// Along a dimension that its arguments name.
constexpr std::array<std::string_view, 12> kAlong{"mean",    "sum",          "var",  "amax",
                                                  "softmax", "log_softmax",  "cat",  "stack",
                                                  "slice",   "index_select", "topk", "cumsum"};
constexpr std::array<std::string_view, 2> kLosses{"cross_entropy_loss", "nll_loss"};

template <class Names>
bool is_among(std::string_view op, const Names& names) {
  constexpr std::string_view kSpace = "aten::";
  if (!op.starts_with(kSpace)) return false;
  op.remove_prefix(kSpace.size());
  return std::ranges::find(names, op) != names.end();
}

std::int64_t from_back(const TensorType& type, std::size_t place) {
  return type.sizes.size() < place ? 1 : type.sizes[type.sizes.size() - place];
}

class SequenceFinder {
 public:
  SequenceFinder(const GraphFacts& facts) : facts_(facts) {}

  /// Why there are no slices; "" = there are.
  std::string refusal() {
    for (const NodeId n : nodes_of(facts_.graph))
      if (is_attention(n))
        if (const std::string why = refuse_attention(n); !why.empty()) return why;
    if (tokens_ == 0)
      return "no attention is seen: slices need causal attention as one operator "
             "(scaled_dot_product_attention with is_causal), as the models of transformers are "
             "exported with attn_implementation=\"sdpa\"";
    for (const NodeId n : nodes_of(facts_.graph))
      if (mixes_positions(n))
        return named(n) + " is not known to treat each position of a sequence by itself";
    return "";
  }

  bool is_attention(NodeId n) const {
    const OperatorTraits* row = facts_.traits[n.index()];
    return row != nullptr && row->work == OperatorWork::Attention;
  }
  std::int64_t tokens() const { return tokens_; }

 private:
  std::string named(NodeId n) const {
    return "'" + facts_.node(n).name + "' (" + facts_.node(n).op + ")";
  }

  std::string refuse_attention(NodeId n) {
    const Node& node = facts_.node(n);
    if (tensor_argument(node, "attn_mask") != kNoValue ||
        tensor_argument(node, "attn_bias") != kNoValue)
      return named(n) +
             " attends by a mask, of which nobody knows whether it is causal; export "
             "the model with is_causal";
    if (!flag_argument(node, "is_causal", false))
      return named(n) + " is not causal: a slice would need slices after it";
    const std::int64_t queries = from_back(facts_.type(tensor_argument(node, "query")), 2),
                       keys = from_back(facts_.type(tensor_argument(node, "key")), 2);
    if (queries != keys)
      return named(n) + " has " + std::to_string(queries) + " queries for " + std::to_string(keys) +
             " keys: attention to another sequence";
    if (tokens_ != 0 && tokens_ != queries)
      return named(n) + " is over " + std::to_string(queries) + " positions, others over " +
             std::to_string(tokens_) + ": the model has no one sequence";
    tokens_ = queries;
    return "";
  }

  bool mixes_positions(NodeId n) const {
    const Node& node = facts_.node(n);
    const OperatorTraits* row = facts_.traits[n.index()];
    if (node.outputs.empty() || is_attention(n) || is_among(node.op, kByPosition)) return false;
    // Losses add up; positions, labels and shapes are known to every slice.
    if (is_among(node.op, kLosses) || !carries_activations(n)) return false;
    if (is_among(node.op, kAlong)) return along_sequence(node);
    if (row == nullptr) return true;
    switch (row->work) {
      case OperatorWork::None:
        return false;
      case OperatorWork::Product:
        return !facts_.is_parameter(factors_of(node).left) &&
               !facts_.is_parameter(factors_of(node).right);
      case OperatorWork::LayerNorm:
        return false;
      default:
        return row->memory != Memory::View && row->memory != Memory::ViewIfFits;
    }
  }

  /// It makes something from what a slice has computed.
  bool carries_activations(NodeId n) const {
    return std::ranges::any_of(facts_.inputs(n), [&](ValueId v) {
      return facts_.needs_gradient(v) && !facts_.is_parameter(v);
    });
  }

  /// One of the dimensions that it names may be the sequence: as long, and not the last; or it
  /// names none and takes all.
  bool along_sequence(const Node& node) const {
    const ValueId input = first_tensor(node);
    if (input == kNoValue) return true;
    const std::vector<std::int64_t>& sizes = facts_.type(input).sizes;
    const auto rank = static_cast<std::int64_t>(sizes.size());
    std::vector<std::int64_t> dimensions;
    const Argument* dim = node.find("dim");
    if (dim != nullptr) {
      if (const auto* single = std::get_if<std::int64_t>(&dim->value)) dimensions = {*single};
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&dim->value))
        dimensions = *list;
    } else if (node.op == "aten::cat" || node.op == "aten::slice" || node.op == "aten::stack") {
      dimensions = {0};
    }
    if (dimensions.empty()) return true;
    return std::ranges::any_of(dimensions, [&](std::int64_t d) {
      const std::int64_t at = d < 0 ? d + rank : d;
      return at < 0 || at >= rank ||
             (sizes[static_cast<std::size_t>(at)] == tokens_ && at + 1 < rank);
    });
  }

  const GraphFacts& facts_;
  std::int64_t tokens_ = 0;
};

}  // namespace

void add_sequence(const GraphFacts& facts, const Profile& profile, Layers& layers) {
  SequenceFinder finder(facts);
  layers.sequence.reset();
  layers.whole_because = finder.refusal();
  if (!layers.whole_because.empty()) return;
  Sequence sequence{.tokens = finder.tokens(),
                    .attention = std::vector<double>(layers.size(), 0),
                    .keys_values = std::vector<Bytes>(layers.size(), Bytes{0})};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    double attention = 0, all = 0;
    for (const NodeId n : layers.layers[l].nodes) {
      const NodeProfile& cost = profile.nodes[n.index()];
      const auto time =
          static_cast<double>((cost.forward + cost.backward_input + cost.backward_weight).count());
      all += time;
      if (!finder.is_attention(n)) continue;
      attention += time;
      for (const char* operand : {"key", "value"})
        sequence.keys_values[l] += facts.bytes(tensor_argument(facts.node(n), operand));
    }
    if (all > 0) sequence.attention[l] = attention / all;
  }
  layers.sequence = std::move(sequence);
}

}  // namespace pfeife
