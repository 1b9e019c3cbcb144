#include "experiments/sweep/output_digests.h"

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/text_file.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/result/case_files.h"

namespace pfeife {
namespace {

constexpr std::size_t kDigits = 64;
constexpr std::string_view kBetween = "  ";

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

}  // namespace

void write_digests(const std::filesystem::path& folder, const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files)
    if (is_file(folder / file))
      text += sha256_file(folder / file) + std::string(kBetween) + file + "\n";
  write_file(folder / case_file::kDigests, text);
}

std::vector<std::string> digested_files(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  if (!is_file(folder / case_file::kDigests)) return files;
  try {
    const std::string text = read_file(folder / case_file::kDigests);
    for (const TextLine& line : lines_of(text))
      if (line.text.size() > kDigits + kBetween.size())
        files.emplace_back(line.text.substr(kDigits + kBetween.size()));
  } catch (const ConfigError&) {  // cannot be read
    files.clear();
  }
  return files;
}

bool is_undamaged(const std::filesystem::path& folder, const std::string& last) {
  if (!is_file(folder / case_file::kDigests)) return false;
  try {
    const std::string text = read_file(folder / case_file::kDigests);
    for (const TextLine& line : lines_of(text)) {
      if (line.text.size() <= kDigits + kBetween.size()) return false;
      const std::filesystem::path file = folder / line.text.substr(kDigits + kBetween.size());
      if (!is_file(file) || sha256_file(file) != line.text.substr(0, kDigits)) return false;
    }
    return text.ends_with(std::string(kBetween) + last + "\n");
  } catch (const ConfigError&) {
    return false;  // cannot be read
  }
}

}  // namespace pfeife
