// ZIP archives of stored entries written byte by byte from the format's description (PKWARE
// APPNOTE 6.3.10, sections 4.3.7 to 4.3.16), to test a reader with what libraries seldom write:
// padding, 64-bit fields, holes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace pfeife {

class ZipByHand {
 public:
  /// With `zip64`, sizes and offsets stand in 64-bit fields.
  explicit ZipByHand(const std::filesystem::path& path, bool zip64 = false)
      : file_(path, std::ios::binary), zip64_(zip64) {}

  /// Returns where the content lies. `padding` = bytes of an extra field in front of it.
  std::uint64_t add(const std::string& name, const std::string& content,
                    std::uint16_t padding = 0) {
    const std::uint64_t at = begin(name, content.size(), checksum(content), padding);
    file_ << content;
    return at;
  }
  /// An entry of zeros that takes no room on the disk.
  std::uint64_t add_hole(const std::string& name, std::uint64_t size) {
    const std::uint64_t at = begin(name, size, 0, 0);
    file_.seekp(static_cast<std::streamoff>(at + size));
    return at;
  }
  /// Writes the directory. The archive is whole only now.
  void finish() {
    const auto start = static_cast<std::uint64_t>(file_.tellp());
    file_ << directory_;
    if (zip64_) {
      const std::uint64_t end = start + directory_.size();
      file_ << number(0x06064b50, 4) << number(44, 8) << number(45, 2) << number(45, 2)
            << number(0, 8) << number(entries_, 8) << number(entries_, 8)
            << number(directory_.size(), 8) << number(start, 8);
      file_ << number(0x07064b50, 4) << number(0, 4) << number(end, 8) << number(1, 4);
    }
    const std::uint64_t count = zip64_ ? 0xffff : entries_;
    file_ << number(0x06054b50, 4) << number(0, 4) << number(count, 2) << number(count, 2)
          << number(zip64_ ? 0xffffffff : directory_.size(), 4)
          << number(zip64_ ? 0xffffffff : start, 4) << number(0, 2);
    file_.close();
  }

  static std::string number(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
    return text;
  }

 private:
  static std::uint32_t checksum(const std::string& content) {  // CRC-32, bit by bit
    std::uint32_t sum = 0xffffffff;
    for (const char c : content) {
      sum ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
    }
    return ~sum;
  }

  std::uint64_t begin(const std::string& name, std::uint64_t size, std::uint32_t sum,
                      std::uint16_t padding) {
    const auto start = static_cast<std::uint64_t>(file_.tellp());
    const std::string common =
        number(45, 2) + number(0, 2) + number(0, 2) /* stored */ + number(0, 4) + number(sum, 4);
    const std::string sizes = number(size, 4) + number(size, 4);
    const std::string lengths = number(name.size(), 2) + number(padding, 2);
    file_ << number(0x04034b50, 4) << common << sizes << lengths << name;
    if (padding >= 4)  // an extra field that nobody knows
      file_ << number(0x4650, 2) << number(padding - 4u, 2) << std::string(padding - 4u, 'x');
    const std::string extra =
        zip64_ ? number(1, 2) + number(24, 2) + number(size, 8) + number(size, 8) + number(start, 8)
               : "";
    directory_ += number(0x02014b50, 4) + number(45, 2) + common +
                  (zip64_ ? std::string(8, '\xff') : sizes) + number(name.size(), 2) +
                  number(extra.size(), 2) + number(0, 2) + number(0, 2) + number(0, 2) +
                  number(0, 4) + (zip64_ ? std::string(4, '\xff') : number(start, 4)) + name +
                  extra;
    ++entries_;
    return static_cast<std::uint64_t>(file_.tellp());
  }

  std::ofstream file_;
  bool zip64_;
  std::string directory_;
  std::uint64_t entries_ = 0;
};

}  // namespace pfeife
