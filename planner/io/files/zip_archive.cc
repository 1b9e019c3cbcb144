
#include "planner/io/files/zip_archive.h"

#include <zip.h>

#include <algorithm>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/units.h"

namespace pfeife {
namespace {

[[noreturn]] void throw_not_readable(const std::string& name, zip_error_t& error) {
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  throw ConfigError({name}, "is not a whole ZIP archive (" + reason + "); copy or export it again");
}

zip* opened(const std::string& name, zip_source_t* source, zip_error_t& error) {
  if (source == nullptr) throw_not_readable(name, error);
  zip* archive = zip_open_from_source(source, ZIP_RDONLY, &error);
  if (archive == nullptr) {
    zip_source_free(source);
    throw_not_readable(name, error);
  }
  zip_error_fini(&error);
  return archive;
}

struct CloseFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

}  // namespace

void ZipArchive::Close::operator()(zip* archive) const { zip_discard(archive); }

ZipArchive::ZipArchive(const std::filesystem::path& path) : name_(path.string()) {
  require_regular_file(path);
  zip_error_t error;
  zip_error_init(&error);
  archive_.reset(opened(name_, zip_source_file_create(name_.c_str(), 0, 0, &error), error));
  list_entries();
}

ZipArchive::ZipArchive(std::string_view bytes, std::string name) : name_(std::move(name)) {
  zip_error_t error;
  zip_error_init(&error);
  archive_.reset(
      opened(name_, zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error), error));
  list_entries();
}

void ZipArchive::list_entries() {
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* entry = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    entries_.emplace_back(entry == nullptr ? "" : entry);
  }
}

bool ZipArchive::contains(const std::string& entry) const {
  return std::find(entries_.begin(), entries_.end(), entry) != entries_.end();
}

std::string ZipArchive::read(const std::string& entry, std::uint64_t limit) const {
  const auto fail = [&](const std::string& message) -> void {
    throw ConfigError({name_}, "entry '" + entry + "' " + message);
  };
  const auto found = std::find(entries_.begin(), entries_.end(), entry);
  if (found == entries_.end()) fail("is missing; export the model again");
  if (std::find(found + 1, entries_.end(), entry) != entries_.end())
    fail("is there twice; export the model again");
  const auto index = static_cast<zip_uint64_t>(found - entries_.begin());

  zip_stat_t facts;
  if (zip_stat_index(archive_.get(), index, 0, &facts) != 0 || !(facts.valid & ZIP_STAT_SIZE) ||
      !(facts.valid & ZIP_STAT_COMP_SIZE))
    fail("has no size; the archive is damaged");
  if (facts.size > limit)
    fail(stream_all("unpacks to ", facts.size, " bytes, more than the ", limit, " allowed"));
  if (facts.size > kFreeBytes && (facts.size - kFreeBytes) / kLargestRatio > facts.comp_size)
    fail(stream_all("unpacks from ", facts.comp_size, " to ", facts.size,
                    " bytes, more than any graph does; refused as a ZIP bomb"));

  const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen_index(archive_.get(), index, 0));
  if (!file) fail(stream_all("cannot be opened (", zip_strerror(archive_.get()), ")"));
  std::string content(facts.size, '\0');
  std::uint64_t done = 0;
  while (done < facts.size) {
    const zip_int64_t got = zip_fread(file.get(), content.data() + done, facts.size - done);
    if (got <= 0) fail(stream_all("is damaged (", zip_file_strerror(file.get()), ")"));
    done += static_cast<std::uint64_t>(got);
  }
  char more = 0;  // the read past the end is what checks the CRC
  if (zip_fread(file.get(), &more, 1) != 0)
    fail(stream_all("is damaged (", zip_file_strerror(file.get()), ")"));
  return content;
}

}  // namespace pfeife
