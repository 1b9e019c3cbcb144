#include "tests/fuzz/mutator.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tests/support/zip_bytes.h"

namespace pfeife {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 30> kTokens = {
    ",",    "\n",   "\"",           "'",    ":",  "- ", "{",     "}", "[",  "]", "#",  "\t",
    "\r\n", "null", "true",         "nan",  "&a", "*a", "!!int", "|", "..", "/", "%s", "\xff",
    "\xc3", "\x01", "\xe2\x80\xa8", " -- ", ";",  "=",
};
constexpr std::array<std::string_view, 16> kNumbers = {
    "0",
    "-1",
    "1",
    "0.5",
    "1e308",
    "1e-308",
    "1e9999",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775808",
    "2147483648",
    "1e17",
    "0x10",
    "007",
    "inf",
};

bool is_number_character(char c) { return (c >= '0' && c <= '9') || c == '.'; }

/// Begins and ends of lines.
std::vector<std::size_t> line_starts(const std::string& text) {
  std::vector<std::size_t> starts{0};
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') starts.push_back(i + 1);
  return starts;
}

Json extreme(std::size_t choice) {
  switch (choice) {
    case 0:
      return nullptr;
    case 1:
      return -1;
    case 2:
      return std::uint64_t{18446744073709551615u};
    case 3:
      return std::int64_t{9223372036854775807};
    case 4:
      return 1e300;
    case 5:
      return "";
    case 6:
      return Json::array();
    case 7:
      return Json::object();
    case 8:
      return true;
    case 9:
      return "Infinity";
    case 10:
      return {{"as_int", std::int64_t{4611686018427387904}}};
    default:
      return 0;
  }
}

}  // namespace

std::string Mutator::mutate(const std::vector<std::string>& seeds, InputKind kind) {
  if (below(50) == 0) return random_bytes();
  std::string input = one_of(seeds);
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    if (kind == InputKind::Zip) {
      change_zip(input);
    } else if (kind == InputKind::Json && below(3) > 0) {
      change_json(input);
    } else {
      change_text(input);
    }
  }
  return input;
}

std::string Mutator::random_bytes() {
  std::string bytes(below(300), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random_());
  return bytes;
}

void Mutator::change_bytes(std::string& bytes) {
  if (bytes.empty()) return;
  const std::size_t at = below(bytes.size()),
                    length = 1 + below(std::min<std::size_t>(64, bytes.size() - at));
  switch (below(6)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(random_());
      break;
    case 2:
      bytes.erase(at, length);
      break;
    case 3:
      bytes.insert(below(bytes.size()), bytes.substr(at, length));
      break;
    case 4:
      bytes.resize(at);
      break;
    default:
      for (std::size_t i = 0; i < std::min<std::size_t>(4, length); ++i)
        bytes[at + i] = below(2) ? '\xff' : '\0';
  }
}

void Mutator::change_text(std::string& text) {
  switch (below(6)) {
    case 0:
      change_bytes(text);
      break;
    case 1:
      text.insert(below(text.size() + 1), one_of(kTokens));
      break;
    case 2:
      replace_number(text);
      break;
    case 3:
      copy_word(text);
      break;
    default:
      change_lines(text);
  }
}

/// One word replaces another, so that names stay names but mean something else.
void Mutator::copy_word(std::string& text) {
  const auto word_at = [&](std::size_t begin) {
    constexpr const char* kBetween = ", \t\r\n:;[]{}()\"'=<>";
    begin = text.find_first_not_of(kBetween, begin);
    if (begin == std::string::npos) return std::pair{text.size(), std::size_t{0}};
    const std::size_t end = text.find_first_of(kBetween, begin);
    return std::pair{begin, (end == std::string::npos ? text.size() : end) - begin};
  };
  const auto [from, length] = word_at(below(text.size() + 1));
  const auto [to, replaced] = word_at(below(text.size() + 1));
  text.replace(to, replaced, text.substr(from, length));
}

void Mutator::replace_number(std::string& text) {
  std::size_t begin = below(text.size() + 1);
  while (begin < text.size() && !is_number_character(text[begin])) ++begin;
  std::size_t end = begin;
  while (end < text.size() && is_number_character(text[end])) ++end;
  text.replace(begin, end - begin, one_of(kNumbers));
}

void Mutator::change_lines(std::string& text) {
  const std::vector<std::size_t> starts = line_starts(text);
  const std::size_t first = one_of(starts), second = one_of(starts);
  const std::size_t length = text.find('\n', first) == std::string::npos
                                 ? text.size() - first
                                 : text.find('\n', first) + 1 - first;
  const std::string line = text.substr(first, length);
  switch (below(4)) {
    case 0:
      text.erase(first, length);
      break;
    case 1:
      text.insert(second, line);
      break;
    case 2:
      text.insert(first, std::string(1 + below(6), below(2) ? ' ' : '\t'));
      break;
    default:
      text.erase(first, length);
      text.insert(std::min(second, text.size()), line);
  }
}

void Mutator::change_json(std::string& text) {
  Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded()) return change_text(text);
  const auto pick = [this](Json& from) {
    Json* node = &from;
    while (node->is_structured() && !node->empty() && below(8) > 0)
      node = &*std::next(node->begin(), static_cast<std::ptrdiff_t>(below(node->size())));
    return node;
  };
  Json* node = pick(root);
  switch (below(6)) {
    case 0:
      *node = extreme(below(12));
      break;
    case 1:
      *node = Json(*pick(root));
      break;
    case 2:
      *node = Json(*pick(*node));
      break;
    case 3:
      if (node->is_array() && !node->empty()) node->push_back(Json(one_of(*node)));
      break;
    case 4:
      if (node->is_object() && !node->empty()) {
        const auto member =
            std::next(node->begin(), static_cast<std::ptrdiff_t>(below(node->size())));
        const Json value = *member;
        const std::string key = member.key();
        node->erase(key);
        if (below(2)) (*node)[key + "x"] = value;
      }
      break;
    default:
      if (node->is_string()) {
        std::string content = node->get<std::string>();
        change_bytes(content);
        *node = content;
      } else if (node->is_number()) {
        *node = extreme(1 + below(4));
      }
  }
  text = root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void Mutator::change_zip(std::string& bytes) {
  if (below(4) == 0) return change_bytes(bytes);
  ZipEntries entries = unzipped_bytes(bytes);
  if (entries.empty()) return change_bytes(bytes);
  const auto entry = std::next(entries.begin(), static_cast<std::ptrdiff_t>(below(entries.size())));
  std::string* changed = &entry->second;
  if (below(4) > 0) {  // most often one of the JSON entries, which hold nearly all that is read
    std::vector<std::string*> texts;
    for (auto& [name, content] : entries)
      if (name.ends_with(".json")) texts.push_back(&content);
    if (!texts.empty()) changed = one_of(texts);
  }
  if (below(12) == 0) {
    entries.erase(entry);
  } else if (below(12) == 0) {
    entries["../" + entry->first] = entry->second;
  } else if (changed->starts_with('{')) {
    change_json(*changed);
  } else {
    change_bytes(*changed);
  }
  bytes = zipped(entries, below(2) == 0);
}

}  // namespace pfeife
