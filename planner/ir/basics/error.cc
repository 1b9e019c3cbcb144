#include "planner/ir/basics/error.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "planner/ir/basics/printable.h"

namespace pfeife {

std::string to_string(const SourceLocation& where) {
  std::string text = printable_line(where.file);
  if (where.line > 0) text += ":" + std::to_string(where.line);
  if (where.line > 0 && where.column > 0) text += ":" + std::to_string(where.column);
  return text;
}

static std::string located(const SourceLocation& where, const std::string& message) {
  const std::string place = to_string(where);
  return place.empty() ? message : place + ": " + message;
}

ConfigError::ConfigError(SourceLocation where, const std::string& message)
    : std::runtime_error(located(where, printable(message))), where_(std::move(where)) {}

void throw_internal_error(const char* condition, const char* file, int line,
                          const std::string& message) {
  throw InternalError(stream_all(file, ":", line, ": internal error: ", condition,
                                 message.empty() ? "" : ": ", message));
}

static std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i])) ==
                        std::tolower(static_cast<unsigned char>(b[j]));
      const std::size_t next = std::min({row[j] + 1, row[j + 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = row[j + 1];
      row[j + 1] = next;
    }
  }
  return row.back();
}

/// The first candidate that begins as `word` does, of which all but a last letter counts:
/// "bf16_amp" for "bf16", "families" for "family".
static std::string with_same_beginning(const std::string& word,
                                       const std::vector<std::string>& candidates) {
  constexpr std::size_t kLeast = 4;
  if (word.size() < kLeast) return "";
  const std::string beginning = word.substr(0, std::max(kLeast, word.size() - 1));
  const auto found = std::ranges::find_if(candidates, [&](const std::string& candidate) {
    return candidate.starts_with(beginning) && candidate != word;
  });
  return found == candidates.end() ? "" : *found;
}

std::string nearest_spelling(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate == word) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best.empty() ? with_same_beginning(word, candidates) : best;
}

}  // namespace pfeife
