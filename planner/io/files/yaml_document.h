// A YAML file read strictly: one document, plain data, no key twice. Settings given on the command
// line replace values.
//
// Refused with the place: anchors, aliases and tags (no expansion, so no bomb), nesting deeper than
// 64, files above 16 MiB or a million values, bytes that are not printable UTF-8, keys that are not
// words. Reading is in yaml_node.h.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "planner/io/files/yaml_node.h"
#include "planner/io/files/yaml_value.h"

namespace pfeife {

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

}  // namespace pfeife
