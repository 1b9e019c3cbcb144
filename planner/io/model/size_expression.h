// Integer expressions of one unknown, as sympy's `srepr` prints them: "Add(Integer(1), Symbol('s0',
// ...))".
#pragma once

#include <cstdint>
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

}  // namespace pfeife
