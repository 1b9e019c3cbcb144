// Where the entries of a ZIP archive lie in its file, for mapping stored ones into memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace pfeife {

struct ZipPlace {
  std::uint64_t size = 0;    ///< bytes, unpacked
  bool stored = false;       ///< not packed: the content is in the file as it is
  std::uint64_t offset = 0;  ///< of the first byte of the content in the file, if stored
  friend bool operator==(const ZipPlace&, const ZipPlace&) = default;
};

/// Places of all entries by name, ZIP64 included. ConfigError if the file is no whole archive or a
/// stored entry does not lie within it. (libzip reads entries but does not tell where they are.)
std::map<std::string, ZipPlace> zip_places(const std::filesystem::path& path);

}  // namespace pfeife
