// ZIP archives: where their entries lie, and what is in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct zip;

namespace pfeife {

// Where the entries of a ZIP archive lie in its file, for mapping stored ones into memory.

struct ZipPlace {
  std::uint64_t size = 0;    ///< bytes, unpacked
  bool stored = false;       ///< not packed: the content is in the file as it is
  std::uint64_t offset = 0;  ///< of the first byte of the content in the file, if stored
  friend bool operator==(const ZipPlace&, const ZipPlace&) = default;
};

/// Places of all entries by name, ZIP64 included. ConfigError if the file is no whole archive or a
/// stored entry does not lie within it. (libzip reads entries but does not tell where they are.)
std::map<std::string, ZipPlace> zip_places(const std::filesystem::path& path);

// Reading entries of a ZIP archive, with limits on what they may unpack to.
//
// Nothing is ever unpacked to disk, so entry names cannot lead anywhere.

class ZipArchive {
 public:
  /// Opens the archive at `path`. ConfigError if it is missing, cut off or no ZIP archive.
  explicit ZipArchive(const std::filesystem::path& path);
  /// The archive in `bytes`, which must outlive it; `name` stands for it in messages.
  ZipArchive(std::string_view bytes, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& entries() const { return entries_; }
  bool contains(const std::string& entry) const;

  /// Content of an entry, checked against its CRC. ConfigError if there is none or two of that
  /// name, if it is damaged, larger than `limit` bytes, or unpacks to more than kFreeBytes plus
  /// kLargestRatio times its packed size.
  std::string read(const std::string& entry, std::uint64_t limit) const;

  static constexpr std::uint64_t kFreeBytes = std::uint64_t{8} << 20;
  static constexpr std::uint64_t kLargestRatio = 200;  // graphs pack about 1 : 40

 private:
  struct Close {
    void operator()(zip* archive) const;
  };
  void list_entries();

  std::string name_;
  std::unique_ptr<zip, Close> archive_;
  std::vector<std::string> entries_;
};

}  // namespace pfeife
