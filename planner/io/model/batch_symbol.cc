#include "planner/io/model/batch_symbol.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "planner/io/files/json_fields.h"

namespace pfeife {
namespace {

constexpr int kDeepest = 16;

using Combine = bool (*)(std::int64_t, std::int64_t, std::int64_t*);
bool add(std::int64_t a, std::int64_t b, std::int64_t* sum) {
  return !__builtin_add_overflow(a, b, sum);
}
bool multiply(std::int64_t a, std::int64_t b, std::int64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}
bool smaller(std::int64_t a, std::int64_t b, std::int64_t* least) {
  *least = std::min(a, b);
  return true;
}
bool larger(std::int64_t a, std::int64_t b, std::int64_t* most) {
  *most = std::max(a, b);
  return true;
}
constexpr struct {
  std::string_view head;
  Combine combine;
} kOperations[] = {{"Add(", add}, {"Mul(", multiply}, {"Min(", smaller}, {"Max(", larger}};

/// Recursive descent that evaluates as it reads.
class Parser {
 public:
  Parser(std::string_view text, std::int64_t symbol) : rest_(text), symbol_value_(symbol) {}

  /// The value of the whole text. Without one, is_expression() says whether only the value failed.
  std::optional<std::int64_t> whole() {
    const std::int64_t value = expression(0);
    is_expression_ &= rest_.empty();
    return is_expression_ && fits_ ? std::optional(value) : std::nullopt;
  }
  bool is_expression() const { return is_expression_; }
  const std::string& symbol() const { return symbol_; }

 private:
  bool take_prefix(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  std::int64_t fail() {
    is_expression_ = false;
    return 0;
  }

  std::int64_t expression(int depth) {
    if (depth > kDeepest || !is_expression_) return fail();
    if (take_prefix("Integer(")) return integer();
    if (take_prefix("Symbol('")) return symbol_value();
    for (const auto& [head, combine] : kOperations)
      if (take_prefix(head)) return combined(combine, depth + 1);
    return fail();
  }

  std::int64_t integer() {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc{}) return fail();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return take_prefix(")") ? number : fail();
  }

  std::int64_t symbol_value() {
    const std::string name(rest_.substr(0, rest_.find('\'')));
    rest_.remove_prefix(name.size());
    if (name.empty() || !take_prefix("', positive=True, integer=True)")) return fail();
    if (!symbol_.empty() && symbol_ != name) return fail();
    symbol_ = name;
    return symbol_value_;
  }

  std::int64_t combined(Combine combine, int depth) {
    std::int64_t value = expression(depth);
    while (is_expression_ && take_prefix(", ")) fits_ &= combine(value, expression(depth), &value);
    return take_prefix(")") ? value : fail();
  }

  std::string_view rest_;
  std::int64_t symbol_value_;
  std::string symbol_;
  bool is_expression_ = true;
  bool fits_ = true;
};

using json_fields::Malformed;

constexpr const char* kRemedy =
    "; export with a fixed batch size (export_models.py --microbatch N, or torch.export.export "
    "without dynamic_shapes)";

std::string shown(const std::string& text) { return "size '" + text.substr(0, 120) + "' "; }

}  // namespace

std::optional<std::string> symbol_of(std::string_view text) {
  Parser parser(text, 1);
  parser.whole();
  return parser.is_expression() ? std::optional(parser.symbol()) : std::nullopt;
}

std::optional<std::int64_t> evaluate_size(std::string_view text, std::int64_t symbol) {
  return Parser(text, symbol).whole();
}

std::int64_t BatchSymbol::bind(const nlohmann::json& size) {
  const auto [tag, value] = json_fields::tagged(size);
  if (tag == "as_int") return json_fields::integer(value);
  if (tag == "as_expr") return evaluate(value);
  throw Malformed("a size must be as_int or as_expr, found " + tag);
}

bool BatchSymbol::is_open(const nlohmann::json& size) {
  const auto [tag, value] = json_fields::tagged(size);
  if (tag != "as_expr") return false;
  const auto symbol = symbol_of(json_fields::text(json_fields::field(value, "expr_str")));
  return symbol && !symbol->empty();
}

bool BatchSymbol::is_samples(const nlohmann::json& size) {
  if (!is_open(size)) return false;
  const nlohmann::json& expression = json_fields::tagged(size).second;
  return json_fields::text(json_fields::field(expression, "expr_str")).starts_with("Symbol(");
}

void BatchSymbol::meet(const std::string& symbol, const std::string& text,
                       const nlohmann::json& value) {
  if (!symbol_.empty() && symbol != symbol_)
    throw Malformed("two sizes are open, '" + symbol_ + "' and '" + symbol +
                    "'; only the batch size may be" + kRemedy);
  symbol_ = symbol;
  if (size_) return;
  if (!text.starts_with("Symbol("))
    throw Malformed(shown(text) + "comes before the batch size itself; ask for a microbatch_size");
  size_ = json_fields::integer(json_fields::field(json_fields::field(value, "hint"), "as_int"));
  if (*size_ < 1) throw Malformed("the example batch has " + std::to_string(*size_) + " samples");
}

std::int64_t BatchSymbol::evaluate(const nlohmann::json& value) {
  const std::string& text = json_fields::text(json_fields::field(value, "expr_str"));
  const std::optional<std::string> symbol = symbol_of(text);
  if (!symbol)
    throw Malformed(shown(text) +
                    "is not a sum, product, minimum or maximum of the batch size and integers" +
                    kRemedy);
  if (!symbol->empty()) meet(*symbol, text, value);
  const std::optional<std::int64_t> number = evaluate_size(text, size_.value_or(1));
  if (!number) throw Malformed(shown(text) + "does not fit into 64 bits");
  return *number;
}

}  // namespace pfeife
