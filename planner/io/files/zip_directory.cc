#include <algorithm>

#include "planner/io/files/open_file.h"
#include "planner/io/files/zip_archive.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kEnd = 0x06054b50, kEnd64Locator = 0x07064b50, kEnd64 = 0x06064b50,
                        kEntry = 0x02014b50, kLocal = 0x04034b50;
constexpr std::uint32_t kIn64 = 0xffffffff;  // the 64-bit field holds the number

/// Little-endian numbers out of a file, every read checked.
class Bytes64 {
 public:
  explicit Bytes64(const std::filesystem::path& path) : name_(path.string()), file_(path) {}
  std::uint64_t size() const { return static_cast<std::uint64_t>(file_.size().value); }
  std::string text(std::uint64_t at, std::uint64_t count) const {
    if (at > size() || count > size() - at) damaged();
    std::string bytes = file_.at(at, count);
    if (bytes.size() < count) damaged();
    return bytes;
  }
  [[noreturn]] void damaged() const {
    throw ConfigError({name_}, "is not a whole ZIP archive; copy or export it again");
  }

 private:
  std::string name_;
  OpenFile file_;
};

std::uint64_t number(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct Directory {
  std::uint64_t entries = 0, size = 0, offset = 0;
};

Directory find_directory(Bytes64& file) {
  constexpr std::uint64_t kEndSize = 22, kLongestComment = 65535, kLocatorSize = 20;
  if (file.size() < kEndSize) file.damaged();
  const std::uint64_t tail_size = std::min(file.size(), kEndSize + kLongestComment);
  const std::string tail = file.text(file.size() - tail_size, tail_size);
  std::size_t at = tail.size() - kEndSize;
  while (number(tail, at, 4) != kEnd)
    if (at-- == 0) file.damaged();
  Directory directory{number(tail, at + 10, 2), number(tail, at + 12, 4), number(tail, at + 16, 4)};
  if (at >= kLocatorSize && number(tail, at - kLocatorSize, 4) == kEnd64Locator) {
    const std::string end = file.text(number(tail, at - kLocatorSize + 8, 8), 56);
    if (number(end, 0, 4) != kEnd64) file.damaged();
    directory = {number(end, 32, 8), number(end, 40, 8), number(end, 48, 8)};
  }
  return directory;
}

/// Replaces fields that say "see the ZIP64 extra field", in the order the format fixes.
void read_zip64(const std::string& extra, std::uint64_t& size, std::uint64_t& packed,
                std::uint64_t& offset) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const std::size_t kind = number(extra, at, 2), length = number(extra, at + 2, 2);
    std::size_t field = at + 4;
    const std::size_t end = std::min(extra.size(), field + length);
    if (kind == 1)
      for (std::uint64_t* value : {&size, &packed, &offset})
        if (*value == kIn64 && field + 8 <= end) *value = number(extra, field, 8), field += 8;
    at = end;
  }
}

}  // namespace

std::map<std::string, ZipPlace> zip_places(const std::filesystem::path& path) {
  Bytes64 file(path);
  const Directory directory = find_directory(file);
  const std::string list = file.text(directory.offset, directory.size);
  std::map<std::string, ZipPlace> places;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (at + 46 > list.size() || number(list, at, 4) != kEntry) file.damaged();
    const std::size_t name = number(list, at + 28, 2), extra = number(list, at + 30, 2),
                      comment = number(list, at + 32, 2);
    if (at + 46 + name + extra + comment > list.size()) file.damaged();
    std::uint64_t packed = number(list, at + 20, 4), size = number(list, at + 24, 4),
                  local = number(list, at + 42, 4);
    read_zip64(list.substr(at + 46 + name, extra), size, packed, local);
    ZipPlace place{size, number(list, at + 10, 2) == 0, 0};
    if (place.stored) {
      const std::string head = file.text(local, 30);  // its own name and extra lengths: the padding
      if (number(head, 0, 4) != kLocal || packed != size) file.damaged();
      place.offset = local + 30 + number(head, 26, 2) + number(head, 28, 2);
      if (place.offset > file.size() || size > file.size() - place.offset) file.damaged();
    }
    places[list.substr(at + 46, name)] = place;
    at += 46 + name + extra + comment;
  }
  return places;
}

}  // namespace pfeife
