// Reading a YAML value strictly: every getter names place, key, what was found and what is allowed.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/io/files/yaml_value.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

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

}  // namespace pfeife
