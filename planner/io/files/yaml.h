// YAML that is read strictly and written: values, nodes, documents; each is in a source of its
// name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

// What a YAML file says, as a plain value: maps in file order, scalars as text, each with its
// place. No anchors, tags or several documents: YamlDocument refuses them.

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

// Reading a YAML value strictly: every getter names place, key, what was found and what is allowed.

/// A value of a document together with the path of keys that leads to it. Borrows the document's
/// value. Every getter throws ConfigError "file:line:column: path: ..." if the value is not what it
/// asks for.
class YamlNode {
 public:
  explicit YamlNode(const YamlValue& value, std::string path = "")
      : value_(&value), path_(std::move(path)) {}

  const YamlValue& value() const { return *value_; }
  const SourceLocation& where() const { return value_->where; }
  const std::string& path() const { return path_; }  ///< "links[0].bandwidth"; "" at the top

  bool is_null() const { return value_->kind == YamlValue::Kind::Null; }
  bool is_scalar() const { return value_->kind == YamlValue::Kind::Scalar; }
  bool is_sequence() const { return value_->kind == YamlValue::Kind::Sequence; }
  bool is_map() const { return value_->kind == YamlValue::Kind::Map; }

  // Maps.

  /// Refuses a value that is no map, and any key that is not in `allowed` (with the nearest one,
  /// and the list).
  void check_keys(const std::vector<std::string>& allowed) const;
  /// Refuses a key by an old name, with the one that it has now.
  void refuse_old(const std::string& old_key, const std::string& key) const;
  /// Refuses a file (this is its top) whose `version` is another than the one that is read.
  void check_version(std::int64_t version) const;
  /// The value of `key`, which must be there.
  YamlNode at(const std::string& key) const;
  /// The value of `key` if it is there. A key without a value is a null node.
  std::optional<YamlNode> find(const std::string& key) const;
  std::vector<std::pair<std::string, YamlNode>> entries() const;
  /// Fails at the key itself.
  [[noreturn]] void fail_at_key(const std::string& key, const std::string& message) const;

  // Sequences.

  std::vector<YamlNode> items() const;
  /// A single value counts as a sequence of one.
  std::vector<YamlNode> items_or_self() const;

  // Scalars. Numbers and booleans must stand without quotes.

  std::string as_string() const;  ///< any scalar's text
  bool as_bool() const;           ///< true or false
  std::int64_t as_int(std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  std::size_t as_count(std::int64_t least = 0, std::int64_t most = 1'000'000'000) const;
  double as_double(double least = -std::numeric_limits<double>::max(),
                   double most = std::numeric_limits<double>::max()) const;
  Bytes as_bytes() const;                      ///< "24 GiB"
  BytesPerSecond as_bytes_per_second() const;  ///< "300 GB/s", above 0
  Flops as_flops() const;                      ///< "2.1 GFLOP"
  FlopsPerSecond as_flops_per_second() const;  ///< "35.6 TFLOP/s", above 0
  Nanoseconds as_duration() const;             ///< "5 us"

  /// The value that belongs to the word found; other words are refused with the nearest one, and
  /// the list.
  template <class T>
  T as_one_of(const std::vector<std::pair<std::string, T>>& words) const;

  /// Throws ConfigError at this value.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  const std::string& scalar(const char* expected) const;
  const std::string& unquoted(const char* expected) const;
  std::size_t index_of(const std::vector<std::string>& words) const;
  YamlNode child(const YamlEntry& entry) const;

  const YamlValue* value_;
  std::string path_;
};

template <class T>
T YamlNode::as_one_of(const std::vector<std::pair<std::string, T>>& words) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : words) names.push_back(name);
  return words[index_of(names)].second;
}

// A YAML file read strictly: one document, plain data, no key twice. Settings given on the command
// line replace values.
//
// Refused with the place: anchors, aliases and tags (no expansion, so no bomb), nesting deeper than
// 64, files above 16 MiB or a million values, bytes that are not printable UTF-8, keys that are not
// words. YamlNode reads.

class YamlDocument {
 public:
  /// Reads text; `file` is the name for messages. Errors: ConfigError with line and column.
  static YamlDocument parse(std::string_view text, const std::string& file);
  /// Reads a file. Errors: ConfigError, also if it is missing or no file.
  static YamlDocument read(const std::filesystem::path& file);

  /// Applies "key.path=value", as given to --set: the value is read as YAML. Maps that are missing
  /// on the way are made; items of sequences are named by [index],
  /// those that have a `name` by that, too. Where a map has a key with dots
  /// in it, the longest key that fits is meant; a new one is put in quotes:
  /// cases."training.precision"=[tf32, fp32]. Errors: ConfigError located as "--set
  /// key.path=value", also later when the value turns out to be wrong.
  void set(const std::string& assignment);
  /// The path and the value of an assignment; located as there.
  static std::pair<std::string, YamlValue> assignment(const std::string& text);
  /// Sets the value at `path`, written as an assignment's left side; errors are located at `label`.
  void set(const std::string& path, YamlValue value, const std::string& label);

  YamlNode root() const { return YamlNode(root_); }
  /// See to_text: equal values give equal bytes.
  std::string text() const { return to_text(root_); }

 private:
  YamlValue root_;
};

// Paths of keys such as cases.devices or links[0].bandwidth, and putting a value where one leads.

/// Puts `value` at `path` below `root`, as YamlDocument::set says. Errors: ConfigError located at
/// `label` if the path is not well formed, an index does not exist, or the way leads through a
/// value that is no map.
void set_at(YamlValue& root, const std::string& path, YamlValue value, const std::string& label);

}  // namespace pfeife
