#include "planner/io/plan/repeats.h"

#include <algorithm>
#include <charconv>

namespace pfeife {
namespace {

constexpr std::size_t kLongest = 12;  ///< letters that are looked at as one part that repeats

/// How often the `length` letters from `at` on come one after the other.
std::size_t repeats(std::string_view word, std::size_t at, std::size_t length) {
  std::size_t count = 1;
  while (word.substr(at + count * length, length) == word.substr(at, length)) ++count;
  return count;
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

std::string fold_repeats(std::string_view word) {
  std::string text;
  for (std::size_t at = 0; at < word.size();) {
    std::string best(1, word[at]);
    std::size_t covered = 1, saved = 0;
    for (std::size_t length = 1; length <= std::min(kLongest, word.size() - at); ++length) {
      const std::size_t count = repeats(word, at, length);
      const std::string part(word.substr(at, length));
      const std::string folded = std::to_string(count) + (length == 1 ? part : "(" + part + ")");
      if (count == 1 || count * length <= folded.size() + saved) continue;
      best = folded, covered = count * length, saved = covered - folded.size();
    }
    text += best, at += covered;
  }
  return text;
}

std::optional<std::string> unfold_repeats(std::string_view text, std::size_t most) {
  std::string word;
  while (!text.empty()) {
    std::size_t count = 1;
    if (!is_letter(text[0])) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
      if (error != std::errc() || count < 2) return std::nullopt;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    }
    const bool bracket = count > 1 && text.starts_with('(');
    text.remove_prefix(bracket);
    const std::size_t length = bracket ? std::min(text.find(')'), text.size()) : 1;
    const std::string_view part = text.substr(0, length);
    if (part.empty() || !std::ranges::all_of(part, is_letter)) return std::nullopt;
    if (bracket && length == text.size()) return std::nullopt;
    if (count > most || part.size() * count > most - word.size()) return std::nullopt;
    for (std::size_t k = 0; k < count; ++k) word += part;
    text.remove_prefix(length + bracket);
  }
  return word;
}

}  // namespace pfeife
