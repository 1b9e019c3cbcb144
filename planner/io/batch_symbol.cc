#include "planner/io/batch_symbol.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "planner/io/json_fields.h"

namespace pfeife {
namespace {

using json_fields::Malformed;

constexpr const char* kRemedy =
    "; export with a fixed batch size (export_models.py --microbatch N, or torch.export.export "
    "without dynamic_shapes)";

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

struct Expression {
  std::int64_t factor = 1;
  std::string_view symbol;
};

// "Symbol('s34', positive=True, integer=True)" or "Mul(Integer(4), Symbol(...))", as sympy prints
// them.
std::optional<Expression> parsed(std::string_view text) {
  Expression expression;
  std::string_view end = "";
  if (take(text, "Mul(Integer(")) {
    const auto [rest, error] =
        std::from_chars(text.data(), text.data() + text.size(), expression.factor);
    if (error != std::errc{} || expression.factor <= 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    if (!take(text, "), ")) return std::nullopt;
    end = ")";
  }
  if (!take(text, "Symbol('")) return std::nullopt;
  expression.symbol = text.substr(0, text.find('\''));
  text.remove_prefix(expression.symbol.size());
  const bool whole = take(text, "', positive=True, integer=True)") && text == end;
  return whole && !expression.symbol.empty() ? std::optional(expression) : std::nullopt;
}

}  // namespace

std::int64_t BatchSymbol::bind(const nlohmann::json& size) {
  const auto [tag, value] = json_fields::tagged(size);
  if (tag == "as_int") return json_fields::integer(value);
  if (tag == "as_expr") return evaluate(value);
  throw Malformed("a size must be as_int or as_expr, found " + tag);
}

std::int64_t BatchSymbol::evaluate(const nlohmann::json& value) {
  const std::string& text = json_fields::text(json_fields::field(value, "expr_str"));
  const std::optional<Expression> expression = parsed(text);
  if (!expression)
    throw Malformed("size '" + text.substr(0, 100) + "' is not the batch size or a multiple of it" +
                    kRemedy);
  if (symbol_.empty()) {
    symbol_ = expression->symbol;
    if (!size_) {
      const std::int64_t hint =
          json_fields::integer(json_fields::field(json_fields::field(value, "hint"), "as_int"));
      size_ = hint / expression->factor;
      if (hint % expression->factor != 0 || *size_ < 1)
        throw Malformed("the example size " + std::to_string(hint) + " does not fit '" +
                        text.substr(0, 100) + "'");
    }
  }
  if (symbol_ != expression->symbol)
    throw Malformed("two sizes are open, '" + symbol_ + "' and '" +
                    std::string(expression->symbol) + "'; only the batch size may be" + kRemedy);
  std::int64_t product = 0;
  if (__builtin_mul_overflow(expression->factor, *size_, &product))
    throw Malformed("size '" + text.substr(0, 100) + "' does not fit into 64 bits");
  return product;
}

}  // namespace pfeife
