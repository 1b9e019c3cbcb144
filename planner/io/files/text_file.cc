#include "planner/io/files/text_file.h"

#include <istream>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/utf8.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMostFileBytes = std::int64_t{64} << 20;
constexpr double kMostMilliseconds = 1e8;
constexpr double kMostAmount = static_cast<double>(std::int64_t{1} << 44);

}  // namespace

void require_plain_text(const TextFile& file) {
  const std::string_view text = file.text;
  int line = 1, column = 1;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    const char c = text[i];
    if (length == 0 || is_control(c))
      throw ConfigError({file.name, line, column},
                        stream_all("byte ", static_cast<int>(static_cast<unsigned char>(c)),
                                   " is no UTF-8 text; save the file as plain text (UTF-8)"));
    i += length;
    if (c == '\n') {
      ++line, column = 1;
    } else {
      ++column;
    }
  }
}

/// Without a byte order mark, what some editors put first to say that the rest is UTF-8.
static TextFile checked(TextFile file) {
  if (constexpr std::string_view kMark = "\xEF\xBB\xBF"; file.text.starts_with(kMark))
    file.text.erase(0, kMark.size());
  require_plain_text(file);
  return file;
}

TextFile read_text_file(const std::filesystem::path& path) {
  return checked({path.string(), read_file(path, Bytes{kMostFileBytes})});
}

TextFile read_text_stream(std::istream& stream, const std::string& name) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  TextFile file{name, ""};
  for (std::size_t size = 0; stream; size += static_cast<std::size_t>(stream.gcount())) {
    if (size > std::size_t{kMostFileBytes})
      throw ConfigError({name}, "is larger than the 64 MiB that such a file may have");
    file.text.resize(size + kPiece);
    stream.read(file.text.data() + size, kPiece);
    file.text.resize(size + static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) throw ConfigError({name}, "cannot be read");
  return checked(std::move(file));
}

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({++number, line});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

Nanoseconds checked_milliseconds(double number, const SourceLocation& where,
                                 const std::string& what) {
  if (number >= 0 && number <= kMostMilliseconds) return nanoseconds_from_ms(number);
  throw ConfigError(where, stream_all(what, " is ", number,
                                      ", it must be a time between 0 and 1e8 milliseconds"));
}

Bytes checked_bytes(double number, const SourceLocation& where, const std::string& what) {
  if (number >= 0 && number <= kMostAmount) return Bytes{std::llround(number)};
  throw ConfigError(where,
                    stream_all(what, " is ", number, ", it must be between 0 and 2^44 bytes"));
}

}  // namespace pfeife
