#include "planner/io/files/yaml_document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <set>
#include <sstream>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/yaml_path.h"
#include "planner/ir/basics/utf8.h"

namespace pfeife {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostValues = 1'000'000;
constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;

/// Where the events come from: a file with lines, or a setting that is one place as a whole.
struct Origin {
  std::string name;
  bool has_lines = true;

  SourceLocation at(const YAML::Mark& mark) const {
    return has_lines ? SourceLocation{name, mark.line + 1, mark.column + 1}
                     : SourceLocation{name, 0, 0};
  }
};

/// Builds the value from the parser's events and refuses what is not plain data, before it can
/// grow.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(Origin origin) : origin_(std::move(origin)) {}
  YamlValue take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "aliases (*name) are not allowed; write the value out");
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse(mark, "", anchor);
    add(start(mark, YamlValue::Kind::Null));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse(mark, tag, anchor);
    YamlValue value = start(mark, YamlValue::Kind::Scalar);
    value.text = text;
    value.quoted = tag == "!";
    add(std::move(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlValue::Kind::Sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlValue::Kind::Map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlValue value;
    std::set<std::string> keys;
    std::optional<YamlEntry> pending;  // a key that waits for its value
  };

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw ConfigError(origin_.at(mark), message);
  }

  void refuse(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor)
      fail(mark, "anchors (&name) are not allowed; write the value out");
    if (!tag.empty() && tag != "?" && tag != "!") fail(mark, "tags (!" + tag + ") are not allowed");
  }

  YamlValue start(const YAML::Mark& mark, YamlValue::Kind kind) {
    if (++count_ > kMostValues) fail(mark, "the file has more than a million values");
    YamlValue value;
    value.kind = kind;
    value.where = origin_.at(mark);
    return value;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlValue::Kind kind) {
    refuse(mark, tag, anchor);
    if (stack_.size() >= kDeepest) fail(mark, "nested more than 64 levels deep");
    if (expects_key())
      fail(mark, "a key must be a word, not a map or a sequence (or a bracket is not closed)");
    stack_.push_back({start(mark, kind), {}, std::nullopt});
  }

  void close() {
    YamlValue value = std::move(stack_.back().value);
    stack_.pop_back();
    add(std::move(value));
  }

  bool expects_key() const {
    return !stack_.empty() && stack_.back().value.kind == YamlValue::Kind::Map &&
           !stack_.back().pending;
  }

  void add(YamlValue value) {
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (expects_key()) {
      add_key(value);
    } else if (Frame& top = stack_.back(); top.value.kind == YamlValue::Kind::Map) {
      top.pending->value = std::move(value);
      top.value.entries.push_back(std::move(*top.pending));
      top.pending.reset();
    } else {
      top.value.items.push_back(std::move(value));
    }
  }

  void add_key(const YamlValue& key) {
    Frame& top = stack_.back();
    if (key.kind != YamlValue::Kind::Scalar) throw ConfigError(key.where, "a key is missing here");
    if (!top.keys.insert(key.text).second)
      throw ConfigError(key.where, "the key \"" + key.text + "\" is here twice; remove one");
    top.pending = YamlEntry{key.text, {}, key.where};
  }

  Origin origin_;
  YamlValue root_;
  std::vector<Frame> stack_;
  std::size_t count_ = 0;
};

/// The parser takes some control characters for the end of the file, and guesses encodings; neither
/// is left to it.
void check_characters(std::string_view text, const Origin& origin) {
  YAML::Mark mark;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) throw ConfigError(origin.at(mark), "a byte that is not UTF-8 text");
    if (is_control(text[i]))
      throw ConfigError(origin.at(mark),
                        "a control character (code " + std::to_string(int{text[i]}) + ")");
    const bool ends_line = text[i] == '\n';
    i += length;
    if (ends_line) {
      ++mark.line, mark.column = 0;
    } else {
      ++mark.column;
    }
  }
}

YamlValue parse_value(std::string_view text, const Origin& origin) {
  if (std::ssize(text) > kMostBytes)
    throw ConfigError({origin.name, 0, 0}, "the file is larger than 16 MiB");
  check_characters(text, origin);
  Builder builder(origin);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    YamlValue value = builder.take_root();
    if (value.where.file.empty()) value.where.file = origin.name;  // nothing in it
    Builder second(origin);
    if (parser.HandleNextDocument(second))
      throw ConfigError(second.take_root().where, "text after the end of the document");
    return value;
  } catch (const YAML::Exception& error) {
    throw ConfigError(origin.at(error.mark),
                      "not valid YAML: " + error.msg +
                          (text.find('\t') == std::string_view::npos
                               ? ""
                               : "; there are tabs in it, YAML indents by blanks only"));
  }
}

}  // namespace

YamlDocument YamlDocument::parse(std::string_view text, const std::string& file) {
  YamlDocument document;
  document.root_ = parse_value(text, {file, true});
  return document;
}

YamlDocument YamlDocument::read(const std::filesystem::path& file) {
  return parse(read_file(file, Bytes{kMostBytes}), file.string());
}

std::pair<std::string, YamlValue> YamlDocument::assignment(const std::string& text) {
  constexpr std::size_t kShown = 200;  // of a setting, in messages
  const std::string label =
      "--set " + (text.size() <= kShown ? text : text.substr(0, kShown) + "...");
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw ConfigError({label, 0, 0}, "expected key.path=value, found no \"=\"");
  return {text.substr(0, equals),
          parse_value(std::string_view(text).substr(equals + 1), {label, false})};
}
void YamlDocument::set(const std::string& text) {
  auto [path, value] = assignment(text);
  const std::string label = to_string(value.where);
  set(path, std::move(value), label);
}

void YamlDocument::set(const std::string& path, YamlValue value, const std::string& label) {
  set_at(root_, path, std::move(value), label);
}

}  // namespace pfeife
