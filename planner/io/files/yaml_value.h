// What a YAML file says, as a plain value: maps in file order, scalars as text, each with its
// place. No anchors, tags or several documents: yaml_document.h refuses them.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

struct YamlEntry;

struct YamlValue {
  enum class Kind { Null, Scalar, Sequence, Map };
  Kind kind = Kind::Null;
  std::string text;                ///< of a scalar
  bool quoted = false;             ///< the scalar was in quotes (or a block), so it is a string
  std::vector<YamlValue> items;    ///< of a sequence
  std::vector<YamlEntry> entries;  ///< of a map, in file order, keys unique
  SourceLocation where;
};

struct YamlEntry {
  std::string key;
  YamlValue value;
  SourceLocation where;  ///< of the key
};

YamlValue yaml_scalar(std::string text, SourceLocation where = {});
YamlValue yaml_string(std::string text,
                      SourceLocation where = {});  ///< quoted: never a number or null
YamlValue yaml_sequence(std::vector<YamlValue> items, SourceLocation where = {});
YamlValue yaml_map(std::vector<YamlEntry> entries);
YamlValue yaml_amount(Nanoseconds time);  ///< "5 ns"
YamlValue yaml_amount(Bytes bytes);       ///< "5 B"
// In the shortest text that reads as the same number.
YamlValue yaml_amount(BytesPerSecond rate);   ///< "300 GB/s"
YamlValue yaml_amount(Flops work);            ///< "2.1 GFLOP"
YamlValue yaml_amount(FlopsPerSecond speed);  ///< "35.6 TFLOP/s"

/// The value of `key` in a map, or nullptr (also if `map` is none).
const YamlValue* find_entry(const YamlValue& map, const std::string& key);

/// Canonical text: block style, maps in their order, sequences without maps in brackets. Reading it
/// gives the same value and the same text again. Ends with a line feed.
std::string to_text(const YamlValue& value);

}  // namespace pfeife
