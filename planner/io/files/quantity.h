// Text of quantities with their unit: "24576 MiB", "300 GB/s", "35.6 TFLOP/s", "5 us".
//
// A unit is never implied: "300" is not a bandwidth. KB, MB, GB are powers of ten, KiB, MiB, GiB
// powers of two; "bit" counts an eighth of a byte. Units are case-sensitive.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// What a reader found: the quantity, or why the text is not one (with the units that are allowed).
template <class T>
struct ParsedQuantity {
  std::optional<T> value;
  std::string error;  ///< empty if value is present
};

/// Whole text = number, blanks, unit. Numbers are decimal, not negative and finite. Results are
/// rounded to whole bytes or nanoseconds. Never throws.
ParsedQuantity<Bytes> parse_bytes(std::string_view text);
ParsedQuantity<BytesPerSecond> parse_bytes_per_second(std::string_view text);
ParsedQuantity<Flops> parse_flops(std::string_view text);
ParsedQuantity<FlopsPerSecond> parse_flops_per_second(std::string_view text);
ParsedQuantity<Nanoseconds> parse_duration(std::string_view text);
/// A length of a drawing, in pixels of 1/96 inch: "3.3in", "84mm", "240pt".
ParsedQuantity<double> parse_length(std::string_view text);

enum class Dimension { Memory, Bandwidth, Work, Speed, Time, Length };
/// A regular expression that the texts match which its parser reads.
std::string pattern_of(Dimension dimension);

/// A plain decimal number, the whole text; nothing if it is not one, not finite or out of range.
std::optional<double> parse_number(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace pfeife
