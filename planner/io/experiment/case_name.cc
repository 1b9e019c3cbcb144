// The name of a case, which is also its folder's.
#include <filesystem>

#include "planner/io/experiment/experiment_case.h"
#include "planner/io/files/digest.h"

namespace pfeife {
namespace {

constexpr std::size_t kDigits = 8;  // of a digest in a name

bool is_fit_for_a_folder(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("._+=,-").find(c) != std::string_view::npos;
}

/// "models/vit.pt2" but not "25 GB/s".
bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos && !text.ends_with("/s");
}

std::string shown(const std::string& text) {
  return is_path(text) ? std::filesystem::path(text).stem().string() : text;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) out += (i > 0 ? between : "") + words[i];
  return out;
}

}  // namespace

std::string folder_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !is_fit_for_a_folder(c); }, '_');
  if (text.starts_with('.')) text.front() = '_';
  return text;
}

std::string name_part(const YamlValue& value) {
  std::vector<std::string> words;
  for (const YamlValue& item : value.items) words.push_back(name_part(item));
  for (const YamlEntry& entry : value.entries)
    words.push_back(entry.key + "-" + name_part(entry.value));
  if (value.kind == YamlValue::Kind::Scalar) return shown(value.text);
  return words.empty() ? "none" : joined(words, "+");
}

std::string with_digest(const std::string& name, const std::string& of) {
  return name + "-" + sha256(of).substr(0, kDigits);
}

std::string case_name(const std::vector<SweptKey>& keys) {
  std::string name, exact;
  for (const auto& [key, value] : keys) {
    name += (name.empty() ? "" : ",") + key + "=" + shown(value);
    exact += key + "=" + value + "\n";
  }
  name = folder_name(std::move(name));
  constexpr std::size_t kLongest = 120;
  if (name.size() > kLongest) name = with_digest(name.substr(0, kLongest - kDigits - 1), exact);
  return name;
}

}  // namespace pfeife
