#include <algorithm>
#include <array>
#include <cstdio>

#include "planner/io/files/yaml.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

bool is_plain_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("_./+-^%()<> ").find(c) != std::string_view::npos;
}

/// Can stand without quotes in any position, brackets included, and come back unchanged.
bool is_plain(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return false;
  if (!std::all_of(text.begin(), text.end(), is_plain_character)) return false;
  if (text.front() == ' ' || text.back() == ' ' || text.front() == '%' || text.front() == '>')
    return false;
  // "-", "- x" and "---" are structure; "-1" and "--x" are not.
  return text != "-" && !text.starts_with("- ") && !text.starts_with("---") &&
         !text.starts_with("...");
}

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (code < 0x20 || code == 0x7f) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(code));
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string scalar_text(const YamlValue& value) {
  return !value.quoted && is_plain(value.text) ? value.text : in_quotes(value.text);
}

bool holds_a_map(const YamlValue& value) {
  if (value.kind == YamlValue::Kind::Map) return !value.entries.empty();
  return std::any_of(value.items.begin(), value.items.end(), holds_a_map);
}

/// On one line, in brackets; for values that hold no map.
std::string inline_text(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::Null:
      return "null";
    case YamlValue::Kind::Scalar:
      return scalar_text(value);
    case YamlValue::Kind::Map:
      return "{}";
    case YamlValue::Kind::Sequence:
      break;
  }
  std::string out = "[";
  for (std::size_t i = 0; i < value.items.size(); ++i)
    out += (i > 0 ? ", " : "") + inline_text(value.items[i]);
  return out + "]";
}

/// Appends a map or a sequence that holds maps. The first line continues what is there already.
void append_block(const YamlValue& value, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  bool first = true;
  for (const YamlEntry& entry : value.entries) {
    out += (first ? "" : margin) + (is_plain(entry.key) ? entry.key : in_quotes(entry.key)) + ":";
    first = false;
    if (holds_a_map(entry.value)) {
      out += "\n" + margin + "  ";
      append_block(entry.value, indent + 2, out);
    } else {
      out += " " + inline_text(entry.value) + "\n";
    }
  }
  for (const YamlValue& item : value.items) {
    out += (first ? "- " : margin + "- ");
    first = false;
    if (holds_a_map(item)) {
      append_block(item, indent + 2, out);
    } else {
      out += inline_text(item) + "\n";
    }
  }
}

/// In the large unit, if that reads as the same number; else in the unit itself.
YamlValue exact_amount(double value, double scale, const std::string& large,
                       const std::string& unit) {
  const double scaled = value / scale;
  return yaml_scalar(scaled * scale == value ? shortest(scaled) + large : shortest(value) + unit);
}

}  // namespace

YamlValue yaml_scalar(std::string text, SourceLocation where) {
  YamlValue value;
  value.kind = YamlValue::Kind::Scalar;
  value.text = std::move(text);
  value.where = std::move(where);
  return value;
}

YamlValue yaml_string(std::string text, SourceLocation where) {
  YamlValue value = yaml_scalar(std::move(text), std::move(where));
  value.quoted = true;
  return value;
}

YamlValue yaml_sequence(std::vector<YamlValue> items, SourceLocation where) {
  YamlValue value;
  value.kind = YamlValue::Kind::Sequence;
  value.items = std::move(items);
  value.where = std::move(where);
  return value;
}

YamlValue yaml_map(std::vector<YamlEntry> entries) {
  YamlValue value;
  value.kind = YamlValue::Kind::Map;
  value.entries = std::move(entries);
  return value;
}

YamlValue yaml_amount(Nanoseconds time) {
  return yaml_scalar(std::to_string(time.count()) + " ns");
}

YamlValue yaml_amount(BytesPerSecond rate) {
  return exact_amount(rate.value, 1e9, " GB/s", " B/s");
}

YamlValue yaml_amount(Flops work) { return exact_amount(work.value, 1e9, " GFLOP", " FLOP"); }

YamlValue yaml_amount(FlopsPerSecond speed) {
  return exact_amount(speed.value, 1e12, " TFLOP/s", " FLOP/s");
}

YamlValue yaml_amount(Bytes bytes) { return yaml_scalar(std::to_string(bytes.value) + " B"); }

const YamlValue* find_entry(const YamlValue& map, const std::string& key) {
  for (const YamlEntry& entry : map.entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

std::string to_text(const YamlValue& value) {
  if (!holds_a_map(value)) return inline_text(value) + "\n";
  std::string out;
  append_block(value, 0, out);
  return out;
}

}  // namespace pfeife
