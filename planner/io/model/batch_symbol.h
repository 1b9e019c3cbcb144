// The one open size of an exported graph, bound to a number while the graph is read.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace pfeife {

/// Name of the only symbol in `text` ("" if there is none); nothing if `text` is no expression of
/// Integer, Symbol (positive, integer), Add, Mul, Min and Max, nested at most 16 deep, or if it has
/// two symbols.
std::optional<std::string> symbol_of(std::string_view text);

/// Value with `symbol` for its symbol; nothing if it does not fit into 64 bits. `text` must be one
/// that symbol_of accepts.
std::optional<std::int64_t> evaluate_size(std::string_view text, std::int64_t symbol);

/// Replaces the batch symbol by a number. Sizes are sympy expressions as `srepr` prints them, such
/// as "Mul(Integer(4), Symbol('s34', positive=True, integer=True))"; understood are sums, products,
/// minima and maxima of integers and of one symbol. Whatever else torch may write is Malformed
/// (json_fields.h), with the remedy.
class BatchSymbol {
 public:
  /// Binds to `size` samples, or, without one, to the example batch of the export ("hint").
  explicit BatchSymbol(std::optional<std::int64_t> size) : size_(size) {}

  /// Number that a size of a tensor, {"as_int": n} or {"as_expr": {"expr_str": ..., "hint": ...}},
  /// stands for.
  std::int64_t bind(const nlohmann::json& size);

  /// The size grows with the batch, in whatever way.
  static bool is_open(const nlohmann::json& size);
  /// The size is the number of samples.
  static bool is_samples(const nlohmann::json& size);

  bool found() const { return !symbol_.empty(); }
  std::optional<std::int64_t> size() const { return size_; }

 private:
  std::int64_t evaluate(const nlohmann::json& expression);
  /// Notes the symbol; takes its size from the example if it is not yet known and stands alone.
  void meet(const std::string& symbol, const std::string& text, const nlohmann::json& value);

  std::optional<std::int64_t> size_;
  std::string symbol_;
};

}  // namespace pfeife
