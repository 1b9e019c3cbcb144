#include "planner/io/model/batch_symbol.h"

#include <nlohmann/json.hpp>

#include "planner/io/files/json_fields.h"
#include "planner/io/model/size_expression.h"

namespace pfeife {
namespace {

using json_fields::Malformed;

constexpr const char* kRemedy =
    "; export with a fixed batch size (export_models.py --microbatch N, or torch.export.export "
    "without dynamic_shapes)";

std::string shown(const std::string& text) { return "size '" + text.substr(0, 120) + "' "; }

}  // namespace

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
