#include "planner/io/traces/inflated_stream.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <streambuf>
#include <string_view>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

class InflatedBuffer : public std::streambuf {
 public:
  explicit InflatedBuffer(const std::filesystem::path& file)
      : name_(file.string()), file_(opened(file), &gzclose_r) {
    if (!file_) throw ConfigError({name_}, "is no file that can be read");
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
    limit_names(std::string_view(buffer_.data(), static_cast<std::size_t>(count)));
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(buffer_[0]);
  }

 private:
  static constexpr unsigned kSize = 1U << 18;
  static constexpr std::size_t kLongestName = std::size_t{1} << 20;  ///< or number, or gap

  static gzFile opened(const std::filesystem::path& file) {
    require_regular_file(file);
    return gzopen(file.c_str(), "rb");
  }
  /// A reader of JSON holds a whole name, and a small packed file may have one of gigabytes.
  void limit_names(std::string_view piece) {
    const std::size_t quote = piece.rfind('"');
    const std::size_t before = unquoted_ + std::min(piece.find('"'), piece.size());
    if (before > kLongestName)
      throw ConfigError({name_},
                        "has more than 1 MiB between two quotes, which no trace of "
                        "torch.profiler has; record it again");
    unquoted_ = quote == std::string_view::npos ? before : piece.size() - quote - 1;
  }

  std::string name_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::array<char, kSize> buffer_{};
  std::size_t unquoted_ = 0;  // bytes since the last quote
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
