// ZIP archives in memory, for tests that need damaged ones.
#pragma once

#include <zip.h>

#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

namespace pfeife {

using ZipEntries = std::map<std::string, std::string>;

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Entries of an archive by name; none if it cannot be opened. Entries that are damaged, of the
/// wrong size or larger than 16 MiB are left empty.
inline ZipEntries unzipped_bytes(const std::string& bytes) {
  ZipEntries entries;
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, nullptr);
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY, nullptr);
  if (archive == nullptr) {
    zip_source_free(source);
    return entries;
  }
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
    zip_stat_t facts;
    if (zip_stat_index(archive, static_cast<zip_uint64_t>(i), 0, &facts) != 0 ||
        (facts.valid & (ZIP_STAT_NAME | ZIP_STAT_SIZE)) != (ZIP_STAT_NAME | ZIP_STAT_SIZE))
      continue;
    std::string& content = entries[facts.name];
    zip_file_t* file = zip_fopen_index(archive, static_cast<zip_uint64_t>(i), 0);
    if (file == nullptr) continue;
    if (facts.size <= (zip_uint64_t{16} << 20)) content.resize(facts.size);
    if (zip_fread(file, content.data(), content.size()) < 0) content.clear();
    zip_fclose(file);
  }
  zip_discard(archive);
  return entries;
}

inline ZipEntries unzipped(const std::string& path) {
  const ZipEntries entries = unzipped_bytes(file_bytes(path));
  if (entries.empty()) throw std::runtime_error("cannot open " + path);
  return entries;
}

/// An archive of these entries; `stored` without compression, as torch writes it.
inline std::string zipped(const ZipEntries& entries, bool stored = false) {
  zip_source_t* source = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(source);
  zip_t* archive = zip_open_from_source(source, ZIP_CREATE, nullptr);
  for (const auto& [name, content] : entries) {
    zip_source_t* data = zip_source_buffer(archive, content.data(), content.size(), 0);
    const zip_int64_t index = zip_file_add(archive, name.c_str(), data, 0);
    if (stored)
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  if (zip_close(archive) != 0) throw std::runtime_error("cannot write the archive");
  zip_stat_t facts;
  zip_source_stat(source, &facts);
  std::string bytes(facts.size, '\0');
  zip_source_open(source);
  zip_source_read(source, bytes.data(), facts.size);
  zip_source_close(source);
  zip_source_free(source);
  return bytes;
}

}  // namespace pfeife
