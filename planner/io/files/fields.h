// A map of a file as a list of fields, each a row written once: the list reads the map, refuses
// keys that it does not have, writes the map, and prints the table of its keys
// (configs/reference).
//
//   FieldList<StepSettings> fields{
//       field("optimizer", &StepSettings::optimizer, word(words_of({Optimizer::Sgd, ...})),
//       "rule")};
//   fields.read(root.at("training"), training);
//
// The default of a key is what its member has in a new object. Which keys exclude one another is
// checked elsewhere (planner/ir/request/check.h).
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/io/files/yaml.h"

namespace pfeife {

/// A value as YAML in one line. What is quoted in it stands in double quotes.
std::string one_line(const YamlValue& value);
/// Text in double quotes.
std::string quoted(const std::string& text);

/// Which values a key may have, and how they are read and written.
template <class T>
struct Kind {
  std::string values = {};  ///< for the reference, in Markdown
  std::function<T(const YamlNode&)> read = {};
  std::function<YamlValue(const T&)> value = {};  ///< null: the key is left out
  bool takes_list = false;
  std::vector<std::string> keys = {};  ///< of the maps that are its values
  std::string schema = "{}";           ///< JSON Schema of its values; {} = any
};

/// A row of the reference's table.
struct FieldRow {
  std::string key, values, usual, about;
};

/// A key of the map that says an Object.
template <class Object>
struct Field {
  std::string key, values, about;  ///< `values` and `about` are Markdown
  std::function<void(const YamlNode&, Object&)> read;
  std::function<YamlValue(const Object&)> value;  ///< null: the key is left out
  bool takes_list = false;
  std::vector<std::string> keys = {};  ///< of the maps below it, where there are any
  bool takes_paths = false;            ///< those maps have other keys, too: paths of keys
  bool takes_names = false;            ///< those maps stand below names
  bool written_always = false, required = false;
  std::string usual = {};     ///< what the reference says of the default, if not the member's value
  std::string schema = "{}";  ///< JSON Schema of its values; {} = any

  /// Also written where the value is the default.
  Field always() && { return written_always = true, std::move(*this); }
  Field below_names() && { return takes_names = true, std::move(*this); }
  Field needed() && { return required = true, std::move(*this); }
  Field by_default(std::string words) && { return usual = std::move(words), std::move(*this); }
  Field with_values(std::string words) && { return values = std::move(words), std::move(*this); }
  Field with_schema(std::string json) && { return schema = std::move(json), std::move(*this); }
};

template <class Object, class T>
Field<Object> field(std::string key, T Object::*member, Kind<T> kind, std::string about) {
  return {std::move(key),
          std::move(kind.values),
          std::move(about),
          [member, read = std::move(kind.read)](const YamlNode& node, Object& object) {
            object.*member = read(node);
          },
          [member, value = std::move(kind.value)](const Object& object) {
            return value(object.*member);
          },
          kind.takes_list,
          std::move(kind.keys),
          false,
          false,
          false,
          false,
          {},
          std::move(kind.schema)};
}

/// A key that may be absent, and is then no value.
template <class Object, class T>
Field<Object> field(std::string key, std::optional<T> Object::*member, Kind<T> kind,
                    std::string about) {
  return {std::move(key),
          std::move(kind.values),
          std::move(about),
          [member, read = std::move(kind.read)](const YamlNode& node, Object& object) {
            object.*member = read(node);
          },
          [member, value = std::move(kind.value)](const Object& object) {
            return object.*member ? value(*(object.*member)) : YamlValue{};
          },
          kind.takes_list,
          std::move(kind.keys),
          false,
          false,
          false,
          false,
          {},
          std::move(kind.schema)};
}

/// A member of a base; Object is to be named.
template <class Object, class Base, class T>
requires(std::derived_from<Object, Base> &&
         !std::same_as<Object, Base>) Field<Object> field(std::string key, T Base::*member,
                                                          Kind<T> kind, std::string about) {
  return field(std::move(key), static_cast<T Object::*>(member), std::move(kind), std::move(about));
}

/// The field of a part, as one of the whole.
template <class Object, class Part>
Field<Object> of_part(Part Object::*part, Field<Part> field) {
  return {
      std::move(field.key),
      std::move(field.values),
      std::move(field.about),
      [part, read = std::move(field.read)](const YamlNode& node, Object& object) {
        read(node, object.*part);
      },
      [part, value = std::move(field.value)](const Object& object) { return value(object.*part); },
      field.takes_list,
      std::move(field.keys),
      field.takes_paths,
      field.takes_names,
      field.written_always,
      field.required,
      std::move(field.usual),
      std::move(field.schema)};
}

/// The part is a member of a base; Object is to be named.
template <class Object, class Base, class Part>
requires(std::derived_from<Object, Base> &&
         !std::same_as<Object, Base>) Field<Object> of_part(Part Base::*part, Field<Part> field) {
  return of_part(static_cast<Part Object::*>(part), std::move(field));
}

// JSON Schemas (draft 2020-12), as text.

struct SchemaEntry {
  std::string key, schema, about;
  bool required = false;
};
/// A map of these keys; with other keys, too, if `open`.
std::string map_schema(const std::vector<SchemaEntry>& entries, bool open = false);
std::string words_schema(const std::vector<std::string>& words);
std::string range_schema(bool whole, double least, double most);
/// A text that matches a regular expression.
std::string pattern_schema(const std::string& pattern);
/// A value, or a list of such values.
std::string list_schema(const std::string& item);
std::string either_schema(const std::vector<std::string>& schemas);
inline constexpr double kMostSchema = std::numeric_limits<double>::infinity();
inline constexpr const char* kAnySchema = "{}";
inline constexpr const char* kTextSchema = R"({"type":"string"})";

template <class Object>
class FieldList {
 public:
  FieldList() = default;
  FieldList(std::initializer_list<Field<Object>> fields) : fields_(fields) {}

  friend FieldList operator+(FieldList first, const FieldList& second) {
    first.fields_.insert(first.fields_.end(), second.fields_.begin(), second.fields_.end());
    return first;
  }

  const std::vector<Field<Object>>& fields() const& { return fields_; }
  void fields() && = delete;  // they would be gone
  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& field : fields_) keys.push_back(field.key);
    return keys;
  }
  const Field<Object>* find(const std::string& key) const {
    for (const auto& field : fields_)
      if (field.key == key) return &field;
    return nullptr;
  }
  /// The fields of these keys, in the order of `keys`.
  FieldList only(const std::vector<std::string>& keys) const {
    FieldList list;
    for (const std::string& key : keys) list.fields_.push_back(*find(key));
    return list;
  }

  /// Reads the keys that are there. Errors: ConfigError, also for a key that is not in the list.
  void read(const YamlNode& node, Object& object) const {
    node.check_keys(keys());
    read_known(node, object);
  }
  /// Reads like read(), and ignores other keys, which belong to another reader.
  void read_known(const YamlNode& node, Object& object) const {
    for (const auto& field : fields_)
      if (const auto value = field.required ? node.at(field.key) : node.find(field.key))
        field.read(*value, object);
  }

  /// The map with the keys whose values are not the defaults, and those that are always written.
  YamlValue value(const Object& object) const {
    const Object usual = Object();  // not {}: gcc 12 takes an aggregate for uninitialized
    std::vector<YamlEntry> entries;
    for (const auto& field : fields_) {
      YamlValue value = field.value(object);
      if (value.kind != YamlValue::Kind::Null &&
          (field.written_always || one_line(value) != one_line(field.value(usual))))
        entries.push_back({field.key, std::move(value), {}});
    }
    return yaml_map(std::move(entries));
  }

  std::vector<SchemaEntry> schema_entries() const {
    std::vector<SchemaEntry> entries;
    for (const auto& field : fields_)
      entries.push_back({field.key, field.schema, field.about, field.required});
    return entries;
  }
  /// JSON Schema of the map.
  std::string schema() const { return map_schema(schema_entries()); }

  /// `prefix` stands before each key: "training."; `usual` has the defaults.
  std::vector<FieldRow> rows(const std::string& prefix, const Object& usual = {}) const {
    std::vector<FieldRow> rows;
    for (const auto& field : fields_) {
      std::string otherwise = field.usual;
      if (otherwise.empty() && field.required) otherwise = "required";
      if (otherwise.empty())
        if (const YamlValue value = field.value(usual); value.kind != YamlValue::Kind::Null)
          otherwise = "`" + one_line(value) + "`";
      rows.push_back({prefix + field.key, field.values, otherwise, field.about});
    }
    return rows;
  }

 private:
  std::vector<Field<Object>> fields_;
};

// Kinds.

template <class T>
using Words = std::vector<std::pair<std::string, T>>;

/// The words that to_string() has for the values.
template <class T>
Words<T> words_of(const std::vector<T>& values) {
  Words<T> words;
  for (const T& value : values) words.emplace_back(to_string(value), value);
  return words;
}
Words<std::string> words_of(const std::vector<std::string>& names);

/// "`none`, `edge`"
std::string listed_values(const std::vector<std::string>& words);

template <class T>
Kind<T> word(const Words<T>& words) {
  std::vector<std::string> names;
  for (const auto& [name, value] : words) names.push_back(name);
  return {listed_values(names),
          [words](const YamlNode& node) { return node.as_one_of<T>(words); },
          [words](const T& value) {
            for (const auto& [name, of] : words)
              if (of == value) return yaml_scalar(name);
            return YamlValue{};
          },
          false,
          {},
          words_schema(names)};
}

/// "1 to 64", or "1 or more" where nothing but the type limits it.
std::string range_values(std::int64_t least, std::int64_t most);
constexpr std::int64_t kAnyMore = std::numeric_limits<std::int64_t>::max();

template <std::integral Number>
Kind<Number> whole(std::int64_t least, std::int64_t most) {
  return {
      range_values(least, most),
      [least, most](const YamlNode& node) { return static_cast<Number>(node.as_int(least, most)); },
      [](Number value) { return yaml_scalar(std::to_string(value)); },
      false,
      {},
      range_schema(true, static_cast<double>(least), static_cast<double>(most))};
}

Kind<double> real(double least, double most);
Kind<bool> flag();                 ///< true or false
Kind<Nanoseconds> duration();      ///< "5 us"; written in ns
Kind<Bytes> memory();              ///< "2 GiB"; written in B
Kind<BytesPerSecond> bandwidth();  ///< "300 GB/s"
Kind<FlopsPerSecond> speed();      ///< "35.6 TFLOP/s"
Kind<std::string> any_text();      ///< always written, in quotes
Kind<std::string> free_text();     ///< left out where there is none

template <class T, class Value>
YamlValue list_value(const std::vector<T>& values, const Value& value) {
  std::vector<YamlValue> items;
  for (const T& of : values) items.push_back(value(of));
  return yaml_sequence(std::move(items));
}

/// A list of values, or a single one. `values` says what may be in it.
template <class T>
Kind<std::vector<T>> list_of(const Kind<T>& kind) {
  return {kind.values,
          [read = kind.read](const YamlNode& node) {
            std::vector<T> values;
            for (const YamlNode& item : node.items_or_self()) values.push_back(read(item));
            return values;
          },
          [value = kind.value](const std::vector<T>& values) { return list_value(values, value); },
          true,
          kind.keys,
          list_schema(kind.schema)};
}

/// A map of its own.
template <class Object>
Kind<Object> map_of(const FieldList<Object>& fields) {
  const auto list = std::make_shared<const FieldList<Object>>(fields);
  return {"a map",
          [list](const YamlNode& node) {
            Object object;
            list->read(node, object);
            return object;
          },
          [list](const Object& object) { return list->value(object); },
          false,
          fields.keys(),
          fields.schema()};
}

// What a file as a whole has.

/// `version`, which YamlNode::check_version() reads.
template <class Object>
Field<Object> version_field(int version) {
  return Field<Object>{"version", std::to_string(version), "of the keys",
                       [](const YamlNode&, Object&) {},
                       [version](const Object&) { return yaml_scalar(std::to_string(version)); }}
      .always()
      .needed()
      .with_schema(range_schema(true, version, version));
}

/// A map whose keys are members of the same object.
template <class Object>
Field<Object> group(std::string key, const FieldList<Object>& fields, std::string about = "") {
  const auto list = std::make_shared<const FieldList<Object>>(fields);
  return {std::move(key),
          "a map",
          std::move(about),
          [list](const YamlNode& node, Object& object) { list->read(node, object); },
          [list](const Object& object) { return list->value(object); },
          false,
          fields.keys(),
          false,
          false,
          false,
          false,
          {},
          fields.schema()};
}

/// A map that stands below a key at the top of a file; "" = the top itself.
struct Section {
  std::string key;
  std::vector<std::string> keys;
  bool is_list = false;      ///< the map is an item of a list
  bool takes_paths = false;  ///< it also has paths of other keys
  bool takes_names = false;  ///< the maps stand below names
};

template <class Object>
std::vector<Section> sections(const FieldList<Object>& top) {
  std::vector<Section> sections{{"", top.keys()}};
  for (const auto& field : top.fields())
    if (!field.keys.empty())
      sections.push_back(
          {field.key, field.keys, field.takes_list, field.takes_paths, field.takes_names});
  return sections;
}

/// The sections of a file that two lists are about.
std::vector<Section> joined(std::vector<Section> sections, const std::vector<Section>& more);
/// Refuses a key that stands at the top or in a section, but belongs to another place, and an
/// unknown one at the top.
void check_sections(const YamlNode& root, const std::vector<Section>& sections);

/// Markdown: | key | values | default | meaning |.
std::string table_text(const std::vector<FieldRow>& rows);

}  // namespace pfeife
