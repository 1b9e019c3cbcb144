#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <iomanip>
#include <optional>
#include <set>
#include <sstream>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/yaml.h"
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

/// What the parser's words mean, and what to write instead.
struct Explanation {
  std::string_view beginning;  ///< how its message begins
  std::string_view means;
};
constexpr Explanation kExplanations[] = {
    {"illegal map value",
     "no key can stand here: it is indented further than the line before allows, that line lacks "
     "its \":\", or the text contains \": \"; begin the keys of one map in one column, and put a "
     "text with \": \" into "
     "quotes, as in notes: \"a: b\""},
    {"illegal map key", "no key can stand here; begin the keys of one map in one column"},
    {"end of map not found",
     "this line does not begin where the lines of its map do: begin the keys of one map in one "
     "column, with a \":\" and a blank behind each, as in devices: 4"},
    {"end of sequence not found",
     "this line does not begin where the items of its list do: begin each \"- item\" in one "
     "column, "
     "or write the list as [a, b]"},
    {"end of map flow not found",
     "a bracket { is not closed, or a comma is missing, as in {devices: 4, microbatches: 8}"},
    {"end of sequence flow not found",
     "a bracket [ is not closed, or a comma is missing, as in [1f1b, zb_h1]"},
    {"illegal flow end", "a bracket is closed that was not opened; remove it"},
    {"illegal block entry",
     "no \"- item\" can stand here; begin each in a line of its own, or write the list as [a, b]"},
    {"illegal EOF in scalar", "a quote is not closed before the end of the file"},
    {"illegal document indicator in scalar", "a quote is not closed before the line --- or ..."},
    {"illegal tab", "YAML indents by blanks only; replace the tab by blanks"},
    {"unknown escape character",
     "no such escape in double quotes: write \\\\ for \\, or use single quotes, as in 'C:\\data'"},
    {"bad character found while scanning hex number",
     "an escape with too few hexadecimal digits: write \\x41, \\u00e9 or \\U0001f600"},
    {"invalid unicode", "an escape that is no character of Unicode; write the character itself"},
    {"unknown token", "no value begins so; put it into quotes"},
    {"the referenced anchor is not defined",
     "aliases (*name) are not allowed; write the value out, or put a text with * into quotes"},
};

/// The line with the mark, for messages.
std::string line_at(std::string_view text, const YAML::Mark& mark) {
  for (int line = 0; line < mark.line && !text.empty(); ++line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  if (const std::size_t begin = line.find_first_not_of(' '); begin != line.npos)
    line.remove_prefix(begin);
  constexpr std::size_t kShown = 60;
  const bool cut = line.size() > kShown;
  return std::string(line.substr(0, kShown)) + (cut ? "..." : "");
}

std::string explained(const YAML::Exception& error, std::string_view text, const Origin& origin) {
  std::string message = "not valid YAML: " + error.msg;
  for (const Explanation& explanation : kExplanations)
    if (error.msg.starts_with(explanation.beginning)) message = explanation.means;
  const std::string line = line_at(text, error.mark);
  if (origin.has_lines && !line.empty()) message += "; found '" + line + "'";
  if (text.find('\t') != text.npos && message.find("tab") == message.npos)
    message += "; there are tabs in it, YAML indents by blanks only";
  return message;
}

int hexadecimal(std::string_view digits) {
  int value = 0;
  const char* end = digits.data() + digits.size();
  return std::from_chars(digits.data(), end, value, 16).ptr == end ? value : -1;
}

/// The text with JSON's way to write a character beyond U+FFFF, a pair of \u, as YAML's own, in
/// double quotes.
std::string with_pairs_joined(std::string_view text) {
  std::string out;
  char quote = 0, before = '\n';  // `before`: the last character of the line that is no blank
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '"' && c == '\\') {
      const int high = text.substr(i).size() >= 12 && text[i + 1] == 'u' && text[i + 6] == '\\' &&
                               text[i + 7] == 'u'
                           ? hexadecimal(text.substr(i + 2, 4))
                           : -1;
      const int low = high < 0 ? -1 : hexadecimal(text.substr(i + 8, 4));
      if (high >= 0xD800 && high < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
        std::ostringstream escape;
        escape << "\\U" << std::hex << std::setw(8) << std::setfill('0')
               << 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        out += escape.str();
        i += 11;
      } else {
        out += text.substr(i, 2);
        ++i;
      }
      continue;
    }
    out += c;
    if (quote != 0) {
      if (c == quote) quote = 0, before = c;
      continue;
    }
    // A quote within a word is a letter of it.
    const bool begins = std::string_view("\n:-,[{?").find(before) != std::string_view::npos;
    if (c == '#' && begins) {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      out += text.substr(i + 1, end - i - 1);
      i = end - 1;
    } else if ((c == '"' || c == '\'') && begins) {
      quote = c;
    } else if (c != ' ' && c != '\r') {
      before = c;
    }
  }
  return out;
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
    if (error.msg.starts_with("invalid unicode"))
      if (const std::string joined = with_pairs_joined(text); joined != text)
        return parse_value(joined, origin);
    throw ConfigError(origin.at(error.mark), explained(error, text, origin));
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
