#include "planner/io/files/fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/io/files/quantity.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

bool has(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

/// The section that has the key: a map before an item of a list, which is rarer.
const Section* section_of(const std::string& key, const std::vector<Section>& sections) {
  for (const bool is_list : {false, true})
    for (const Section& section : sections)
      if (section.is_list == is_list && has(section.keys, key)) return &section;
  return nullptr;
}

void refuse_misplaced(const YamlNode& node, const Section& here,
                      const std::vector<Section>& sections) {
  if (!node.is_map()) return;
  for (const auto& [key, value] : node.entries()) {
    // A slip of the pen for a key of this map is said where the map is read.
    if (has(here.keys, key) || !nearest_spelling(key, here.keys).empty()) continue;
    const Section* const section = section_of(key, sections);
    if (section == nullptr) continue;
    if (section->key.empty())
      node.fail_at_key(key, "\"" + key + "\" stands at the top of the file, not below \"" +
                                here.key + "\"; move it there");
    std::string map = "{" + key + ": ...}";
    if (section->is_list) map = "[" + map + "]";
    if (section->takes_names) map = "{NAME: " + map + "}";
    node.fail_at_key(
        key, "\"" + key + "\" stands below \"" + section->key + "\": " + section->key + ": " + map);
  }
}

}  // namespace

using Json = nlohmann::ordered_json;

std::string map_schema(const std::vector<SchemaEntry>& entries, bool open) {
  Json properties = Json::object(), required = Json::array();
  for (const SchemaEntry& entry : entries) {
    Json schema = Json::parse(entry.schema);
    if (!entry.about.empty()) schema["description"] = entry.about;
    properties[entry.key] = std::move(schema);
    if (entry.required) required.push_back(entry.key);
  }
  Json schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  if (!open) schema["additionalProperties"] = false;
  return schema.dump();
}

std::string words_schema(const std::vector<std::string>& words) {
  if (words.empty()) return kTextSchema;  // they are known elsewhere
  Json values = Json::array();
  for (const std::string& word : words)
    if (word == "true" || word == "false")
      values.push_back(word == "true");
    else
      values.push_back(word);
  return Json{{"enum", std::move(values)}}.dump();
}

std::string range_schema(bool whole, double least, double most) {
  Json schema{{"type", whole ? "integer" : "number"}};
  const auto number = [&](double value) {
    return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
  };
  schema["minimum"] = number(least);
  if (most < static_cast<double>(kAnyMore)) schema["maximum"] = number(most);
  return schema.dump();
}

std::string pattern_schema(const std::string& pattern) {
  return Json{{"type", "string"}, {"pattern", pattern}}.dump();
}

std::string list_schema(const std::string& item) {
  return either_schema({item, Json{{"type", "array"}, {"items", Json::parse(item)}}.dump()});
}

std::string either_schema(const std::vector<std::string>& schemas) {
  Json choices = Json::array();
  for (const std::string& schema : schemas) choices.push_back(Json::parse(schema));
  return Json{{"anyOf", std::move(choices)}}.dump();
}

Words<std::string> words_of(const std::vector<std::string>& names) {
  Words<std::string> words;
  for (const std::string& name : names) words.emplace_back(name, name);
  return words;
}

std::string listed_values(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "`" : ", `") + word + "`";
  return text;
}

std::string range_values(std::int64_t least, std::int64_t most) {
  const std::string from = std::to_string(least);
  return most == kAnyMore ? from + " or more" : from + " to " + std::to_string(most);
}

Kind<double> real(double least, double most) {
  return {shortest(least) + " to " + shortest(most),
          [least, most](const YamlNode& node) { return node.as_double(least, most); },
          [](double value) { return yaml_scalar(shortest(value)); },
          false,
          {},
          range_schema(false, least, most)};
}

Kind<bool> flag() {
  return {"`true`, `false`",
          [](const YamlNode& node) { return node.as_bool(); },
          [](bool value) { return yaml_scalar(value ? "true" : "false"); },
          false,
          {},
          R"({"type":"boolean"})"};
}

Kind<Nanoseconds> duration() {
  return {"a time, `5 us`",
          [](const YamlNode& node) { return node.as_duration(); },
          [](Nanoseconds time) { return yaml_amount(time); },
          false,
          {},
          pattern_schema(pattern_of(Dimension::Time))};
}

Kind<Bytes> memory() {
  return {"memory, `2 GiB`",
          [](const YamlNode& node) { return node.as_bytes(); },
          [](Bytes bytes) { return yaml_amount(bytes); },
          false,
          {},
          pattern_schema(pattern_of(Dimension::Memory))};
}

Kind<BytesPerSecond> bandwidth() {
  return {"a bandwidth, `300 GB/s`",
          [](const YamlNode& node) { return node.as_bytes_per_second(); },
          [](BytesPerSecond rate) { return yaml_amount(rate); },
          false,
          {},
          pattern_schema(pattern_of(Dimension::Bandwidth))};
}

Kind<FlopsPerSecond> speed() {
  return {"a speed, `35.6 TFLOP/s`",
          [](const YamlNode& node) { return node.as_flops_per_second(); },
          [](FlopsPerSecond rate) { return yaml_amount(rate); },
          false,
          {},
          pattern_schema(pattern_of(Dimension::Speed))};
}

Kind<std::string> any_text() {
  return {"text",
          [](const YamlNode& node) { return node.as_string(); },
          [](const std::string& text) { return yaml_string(text); },
          false,
          {},
          kTextSchema};
}

Kind<std::string> free_text() {
  return {"text",
          [](const YamlNode& node) { return node.as_string(); },
          [](const std::string& text) { return text.empty() ? YamlValue{} : yaml_string(text); },
          false,
          {},
          kTextSchema};
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += (c == '"' || c == '\\') ? std::string{'\\', c} : std::string{c};
  return out + '"';
}

std::string one_line(const YamlValue& value) {
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  switch (value.kind) {
    case YamlValue::Kind::Null:
      return "null";
    case YamlValue::Kind::Scalar:
      return value.quoted ? quoted(value.text) : value.text;
    case YamlValue::Kind::Sequence:
      for (const YamlValue& item : value.items) add(one_line(item));
      return "[" + text + "]";
    case YamlValue::Kind::Map:
      for (const YamlEntry& entry : value.entries) add(entry.key + ": " + one_line(entry.value));
      return "{" + text + "}";
  }
  return "";
}

std::vector<Section> joined(std::vector<Section> sections, const std::vector<Section>& more) {
  const auto& top = more.front().keys;
  sections.front().keys.insert(sections.front().keys.end(), top.begin(), top.end());
  sections.insert(sections.end(), more.begin() + 1, more.end());
  return sections;
}

void check_sections(const YamlNode& root, const std::vector<Section>& sections) {
  refuse_misplaced(root, sections.front(), sections);
  root.check_keys(sections.front().keys);
  for (const Section& section : sections) {
    if (section.key.empty()) continue;
    const auto node = root.find(section.key);
    if (!node || section.takes_paths) continue;
    if (section.takes_names && node->is_map())
      for (const auto& [name, map] : node->entries()) refuse_misplaced(map, section, sections);
    if (section.takes_names) continue;
    for (const YamlNode& item : node->items_or_self()) refuse_misplaced(item, section, sections);
  }
}

std::string table_text(const std::vector<FieldRow>& rows) {
  std::string text = "| key | values | default | meaning |\n|---|---|---|---|\n";
  for (const FieldRow& row : rows)
    text += "| `" + row.key + "` | " + row.values + " | " + row.usual + " | " + row.about + " |\n";
  return text;
}

}  // namespace pfeife
