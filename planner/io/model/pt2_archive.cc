#include "planner/io/model/pt2_archive.h"

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::uint64_t kProgramLimit = std::uint64_t{512} << 20;
constexpr std::uint64_t kConfigLimit = std::uint64_t{128} << 20;
constexpr std::uint64_t kFactsLimit = std::uint64_t{1} << 20;
constexpr std::uint64_t kMarkLimit = 64;

// All entries lie in one top folder, whose name is free.
std::string top_folder(const ZipArchive& archive) {
  for (const std::string& entry : archive.entries()) {
    const std::size_t slash = entry.find('/');
    if (slash != std::string::npos &&
        entry.compare(slash, std::string::npos, "/archive_format") == 0)
      return entry.substr(0, slash + 1);
  }
  throw ConfigError(
      {archive.name()},
      "is not an archive of torch.export.save (no entry 'archive_format'); models saved by "
      "torch.save "
      "or torch.jit.save must be exported first, see configs/models/export_models.py");
}

void require_mark(const ZipArchive& archive, const std::string& entry, const std::string& wanted) {
  std::string found = archive.read(entry, kMarkLimit);
  while (!found.empty() && (found.back() == '\n' || found.back() == '\r')) found.pop_back();
  if (found == wanted) return;
  throw ConfigError({archive.name()},
                    "entry '" + entry + "' says '" + found + "', only '" + wanted +
                        "' is understood; export with torch.export.save of torch 2.11");
}

}  // namespace

Pt2Texts read_pt2_texts(const ZipArchive& archive) {
  const std::string top = top_folder(archive);
  require_mark(archive, top + "archive_format", "pt2");
  require_mark(archive, top + "archive_version", "0");
  if (archive.contains(top + "byteorder")) require_mark(archive, top + "byteorder", "little");
  return {archive.read(top + "models/model.json", kProgramLimit),
          archive.read(top + "data/weights/model_weights_config.json", kConfigLimit),
          archive.contains(top + "extra/pfeife.json")
              ? archive.read(top + "extra/pfeife.json", kFactsLimit)
              : ""};
}

}  // namespace pfeife
