#include "planner/ir/model/operator_cost.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

using Lookup = std::function<double(const std::string& name)>;

/// sum = product {(+|-) product}; product = factor {(*|/) factor}; factor = number | name | (sum).
class Formula {
 public:
  Formula(const std::string& text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  double value() {
    const double result = sum(0);
    skip_spaces();
    if (at_ < text_.size()) fail("\"" + text_.substr(at_, 1) + "\" is not expected there");
    return result;
  }

 private:
  static constexpr int kDeepest = 50;

  [[noreturn]] void fail(const std::string& why) const {
    throw ConfigError({}, "\"" + text_ + "\" is no formula: " + why +
                              "; numbers, + - * / ( ) and sizes are, for example \"2*m*n*k\"");
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  double sum(int depth) {
    if (depth > kDeepest) fail("too many parentheses");
    double result = product(depth);
    for (;;) {
      if (take('+'))
        result += product(depth);
      else if (take('-'))
        result -= product(depth);
      else
        return result;
    }
  }
  double product(int depth) {
    double result = factor(depth);
    for (;;) {
      if (take('*'))
        result *= factor(depth);
      else if (take('/'))
        result /= factor(depth);
      else
        return result;
    }
  }
  double factor(int depth) {
    if (take('(')) {
      const double inner = sum(depth + 1);
      if (!take(')')) fail("a parenthesis is not closed");
      return inner;
    }
    skip_spaces();
    const auto is_word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    };
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string word = text_.substr(at_, end - at_);
    if (word.empty())
      fail(at_ < text_.size() ? "a size or number is missing" : "it ends too early");
    at_ = end;
    double number = 0;
    const auto [read, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc{} && read == word.data() + word.size()) return number;
    return lookup_(word);
  }

  const std::string& text_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
};

/// The number behind `prefix`, which is all that is left of `text`.
std::optional<std::size_t> number_behind(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Tensor and dimension of "in0", "out1_d2"; nothing if it is no such name.
struct SizeName {
  bool output = false;
  std::size_t tensor = 0;
  std::optional<std::size_t> dimension;
};
std::optional<SizeName> size_name(const std::string& word) {
  SizeName name;
  std::string_view tensor = word;
  if (const std::size_t under = tensor.find('_'); under != std::string_view::npos) {
    name.dimension = number_behind(tensor.substr(under), "_d");
    if (!name.dimension) return std::nullopt;
    tensor = tensor.substr(0, under);
  }
  name.output = tensor.starts_with("out");
  const auto number = number_behind(tensor, name.output ? "out" : "in");
  if (!number) return std::nullopt;
  name.tensor = *number;
  return name;
}

bool is_product_size(const std::string& word) { return word == "m" || word == "n" || word == "k"; }

[[noreturn]] void unknown(const std::string& word) {
  throw ConfigError({}, "\"" + word +
                            "\" is no size; sizes are m, n, k, in0, in1, ..., out0, ... "
                            "(elements) and in0_d0, in0_d1, ... (of a dimension)");
}

double last_size(const TensorType& type) {
  return type.sizes.empty() ? 1 : static_cast<double>(type.sizes.back());
}

}  // namespace

double formula_value(const std::string& formula, const Graph& graph, const Node& node) {
  const std::vector<ValueId> read = inputs_of(node);
  const auto tensor = [&](bool output, std::size_t i,
                          const std::string& word) -> const TensorType& {
    const std::vector<ValueId>& list = output ? node.outputs : read;
    if (i >= list.size())
      throw ConfigError({}, stream_all("\"", word, "\": node '", node.name, "' (", node.op, ") ",
                                       output ? "returns " : "reads ", list.size(), " tensors"));
    return graph.value(list[i]).type;
  };
  const auto size = [&](const std::string& word) -> double {
    if (word == "k") return last_size(tensor(false, 0, word));
    if (word == "n") return last_size(tensor(true, 0, word));
    if (word == "m") {
      const TensorType& out = tensor(true, 0, word);
      return static_cast<double>(out.elements()) / std::max(last_size(out), 1.0);
    }
    const auto name = size_name(word);
    if (!name) unknown(word);
    const TensorType& type = tensor(name->output, name->tensor, word);
    if (!name->dimension) return static_cast<double>(type.elements());
    if (*name->dimension >= type.sizes.size())
      throw ConfigError({}, stream_all("\"", word, "\": that tensor of node '", node.name, "' (",
                                       node.op, ") has ", type.sizes.size(), " dimensions"));
    return static_cast<double>(type.sizes[*name->dimension]);
  };
  const double value = Formula(formula, size).value();
  if (!(value >= 0 && value < 1e30))
    throw ConfigError({}, stream_all("\"", formula, "\" is ", value, " of node '", node.name, "' (",
                                     node.op, "); it must be 0 or more"));
  return value;
}

void check_formula(const std::string& formula) {
  const auto known_size = [](const std::string& word) -> double {
    if (!is_product_size(word) && !size_name(word)) unknown(word);
    return 1;
  };
  Formula(formula, known_size).value();
}

}  // namespace pfeife
