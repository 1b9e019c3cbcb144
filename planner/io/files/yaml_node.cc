#include <algorithm>

#include "planner/io/files/quantity.h"
#include "planner/io/files/yaml.h"

namespace pfeife {
namespace {

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& words) {
  const std::string nearest = nearest_spelling(word, words);
  return nearest.empty() ? "." : "; did you mean \"" + nearest + "\"?";
}

std::string found(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::Null:
      return "nothing";
    case YamlValue::Kind::Sequence:
      return "a sequence";
    case YamlValue::Kind::Map:
      return "a map";
    case YamlValue::Kind::Scalar:
      break;
  }
  constexpr std::size_t kLongest = 60;
  const bool cut = value.text.size() > kLongest;
  return "\"" + value.text.substr(0, kLongest) + (cut ? "..." : "") + "\"";
}

/// Behind what was found in the place of a number.
std::string zero_in_front(const std::string& text) {
  const std::size_t at = text.starts_with('-') ? 1 : 0;
  const bool zero =
      text.size() > at + 1 && text[at] == '0' && text[at + 1] >= '0' && text[at + 1] <= '9';
  return zero ? "; leave out the zero in front" : "";
}

std::string shown(double number) {
  std::string text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

void YamlNode::fail(const std::string& message) const {
  throw ConfigError(where(), path_.empty() ? message : path_ + ": " + message);
}

void YamlNode::fail_at_key(const std::string& key, const std::string& message) const {
  for (const YamlEntry& entry : value_->entries)
    if (entry.key == key)
      throw ConfigError(entry.where, path_.empty() ? message : path_ + ": " + message);
  fail(message);
}

void YamlNode::refuse_old(const std::string& old_key, const std::string& key) const {
  if (is_map() && find(old_key))
    fail_at_key(old_key, "\"" + old_key + "\" is called \"" + key + "\" now");
}

void YamlNode::check_version(std::int64_t version) const {
  const auto found = find("version");
  if (!found)
    fail("the key \"version\" is missing; add the line \"version: " + std::to_string(version) +
         "\"");
  const std::int64_t number = found->as_int();
  if (number == version) return;
  found->fail("this program reads version " + std::to_string(version) + ", found " +
              found->as_string() +
              (number > version ? "; take a newer pfeife, or make the file again with this one"
                                : "; make the file again with this program"));
}

YamlNode YamlNode::child(const YamlEntry& entry) const {
  return YamlNode(entry.value, path_.empty() ? entry.key : path_ + "." + entry.key);
}

void YamlNode::check_keys(const std::vector<std::string>& allowed) const {
  if (!is_map())
    fail("expected a map with keys such as \"" + (allowed.empty() ? "" : allowed.front()) +
         ": ...\", found " + found(*value_) + "; keys allowed: " + listed(allowed));
  for (const YamlEntry& entry : value_->entries) {
    if (std::find(allowed.begin(), allowed.end(), entry.key) != allowed.end()) continue;
    fail_at_key(entry.key, "unknown key \"" + entry.key + "\"" + suggestion(entry.key, allowed) +
                               " Keys allowed here: " + listed(allowed));
  }
}

YamlNode YamlNode::at(const std::string& key) const {
  if (const auto node = find(key)) return *node;
  fail("the key \"" + key + "\" is missing" + (path_.empty() ? " at the top of the file" : ""));
}

std::optional<YamlNode> YamlNode::find(const std::string& key) const {
  if (!is_map())
    fail(path_.empty() && is_null()
             ? "is empty; its first line is a key and its value, such as version: 1"
             : "expected a map, found " + found(*value_));
  for (const YamlEntry& entry : value_->entries)
    if (entry.key == key) return child(entry);
  return std::nullopt;
}

std::vector<std::pair<std::string, YamlNode>> YamlNode::entries() const {
  if (!is_map()) fail("expected a map, found " + found(*value_));
  std::vector<std::pair<std::string, YamlNode>> nodes;
  for (const YamlEntry& entry : value_->entries) nodes.emplace_back(entry.key, child(entry));
  return nodes;
}

std::vector<YamlNode> YamlNode::items() const {
  if (!is_sequence()) fail("expected a sequence [..., ...], found " + found(*value_));
  std::vector<YamlNode> nodes;
  for (std::size_t i = 0; i < value_->items.size(); ++i)
    nodes.emplace_back(value_->items[i], path_ + "[" + std::to_string(i) + "]");
  return nodes;
}

std::vector<YamlNode> YamlNode::items_or_self() const {
  return is_sequence() ? items() : std::vector<YamlNode>{*this};
}

const std::string& YamlNode::scalar(const char* expected) const {
  if (!is_scalar()) fail("expected " + std::string(expected) + ", found " + found(*value_));
  return value_->text;
}

const std::string& YamlNode::unquoted(const char* expected) const {
  scalar(expected);
  if (value_->quoted)
    fail("expected " + std::string(expected) + ", found the string " + found(*value_) +
         "; write it without quotes");
  return value_->text;
}

std::string YamlNode::as_string() const { return scalar("a word or text"); }

bool YamlNode::as_bool() const {
  const std::string& text = unquoted("true or false");
  if (text != "true" && text != "false") fail("expected true or false, found " + found(*value_));
  return text == "true";
}

std::int64_t YamlNode::as_int(std::int64_t least, std::int64_t most) const {
  const auto number = parse_integer(unquoted("a whole number"));
  if (!number)
    fail("expected a whole number, found " + found(*value_) + zero_in_front(value_->text));
  if (*number >= least && *number <= most) return *number;
  const bool open = most == std::numeric_limits<std::int64_t>::max();
  fail("expected a whole number " +
       (open ? "not below " + std::to_string(least)
             : "from " + std::to_string(least) + " to " + std::to_string(most)) +
       ", found " + found(*value_));
}

std::size_t YamlNode::as_count(std::int64_t least, std::int64_t most) const {
  return static_cast<std::size_t>(as_int(std::max<std::int64_t>(least, 0), most));
}

double YamlNode::as_double(double least, double most) const {
  const auto number = parse_number(unquoted("a number"));
  if (!number) fail("expected a number, found " + found(*value_) + zero_in_front(value_->text));
  if (*number >= least && *number <= most) return *number;
  const bool open = most == std::numeric_limits<double>::max();
  fail("expected a number " +
       (open ? "not below " + shown(least) : "from " + shown(least) + " to " + shown(most)) +
       ", found " + found(*value_));
}

Bytes YamlNode::as_bytes() const {
  const auto quantity = parse_bytes(scalar("an amount of memory such as \"24 GiB\""));
  if (!quantity.value) fail(quantity.error);
  return *quantity.value;
}

BytesPerSecond YamlNode::as_bytes_per_second() const {
  const auto quantity = parse_bytes_per_second(scalar("a bandwidth such as \"300 GB/s\""));
  if (!quantity.value) fail(quantity.error);
  // Beyond, times are no numbers of nanoseconds any more.
  if (!(quantity.value->value >= 1e3 && quantity.value->value <= 1e18))
    fail("a bandwidth must be from 1 KB/s to 1e9 GB/s, found " + found(*value_));
  return *quantity.value;
}

Flops YamlNode::as_flops() const {
  const auto quantity = parse_flops(scalar("an amount of work such as \"2.1 GFLOP\""));
  if (!quantity.value) fail(quantity.error);
  return *quantity.value;
}

FlopsPerSecond YamlNode::as_flops_per_second() const {
  const auto quantity = parse_flops_per_second(scalar("a speed such as \"35.6 TFLOP/s\""));
  if (!quantity.value) fail(quantity.error);
  if (!(quantity.value->value >= 1e3 && quantity.value->value <= 1e21))
    fail("a speed must be from 1 KFLOP/s to 1e9 TFLOP/s, found " + found(*value_));
  return *quantity.value;
}

Nanoseconds YamlNode::as_duration() const {
  const auto quantity = parse_duration(scalar("a time such as \"5 us\""));
  if (!quantity.value) fail(quantity.error);
  if (*quantity.value > Nanoseconds{100'000'000'000'000})
    fail("a time must be at most 100000 s, found " + found(*value_));
  return *quantity.value;
}

std::size_t YamlNode::index_of(const std::vector<std::string>& words) const {
  const std::string& text = scalar(("one of " + listed(words)).c_str());
  const auto it = std::find(words.begin(), words.end(), text);
  if (it == words.end())
    fail("found " + found(*value_) + suggestion(text, words) + " Allowed: " + listed(words));
  return static_cast<std::size_t>(it - words.begin());
}

}  // namespace pfeife
