#include "planner/io/traces/inflated_stream.h"

#include <zlib.h>

#include <array>
#include <streambuf>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

class InflatedBuffer : public std::streambuf {
 public:
  explicit InflatedBuffer(const std::filesystem::path& file)
      : name_(file.string()), file_(gzopen(file.c_str(), "rb"), &gzclose_r) {
    if (std::filesystem::is_directory(file) || !file_)
      throw ConfigError({name_}, "is no file that can be read");
    gzbuffer(file_.get(), kSize);
  }

 protected:
  int_type underflow() override {
    const int count = gzread(file_.get(), buffer_.data(), kSize);
    int problem = Z_OK;
    gzerror(file_.get(), &problem);
    if (problem == Z_BUF_ERROR)
      throw ConfigError({name_}, "the packed file ends too early; copy it again");
    if (count < 0) throw ConfigError({name_}, "the packed file is damaged; copy it again");
    if (count == 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(buffer_[0]);
  }

 private:
  static constexpr unsigned kSize = 1U << 18;
  std::string name_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::array<char, kSize> buffer_{};
};

class InflatedStream : public std::istream {
 public:
  explicit InflatedStream(const std::filesystem::path& file)
      : std::istream(nullptr), buffer_(file) {
    rdbuf(&buffer_);
  }

 private:
  InflatedBuffer buffer_;
};

}  // namespace

std::unique_ptr<std::istream> open_inflated(const std::filesystem::path& file) {
  return std::make_unique<InflatedStream>(file);
}

}  // namespace pfeife
