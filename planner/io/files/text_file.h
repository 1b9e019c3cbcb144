// Text that came from a file, with the name to show in messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

struct TextFile {
  std::string name;
  std::string text;
};

/// Reads a whole text file, without a byte order mark. ConfigError if it is missing, larger than 64
/// MiB, or not plain text.
TextFile read_text_file(const std::filesystem::path& path);

/// The same of a stream, such as standard input, called `name`.
TextFile read_text_stream(std::istream& stream, const std::string& name);

/// ConfigError at the first byte that is not UTF-8, and at control characters other than tab and
/// line ends.
void require_plain_text(const TextFile& file);

/// A line of a file without its end (LF or CRLF), counted from 1.
struct TextLine {
  int number = 0;
  std::string_view text;
};
/// The lines of `text`, which must outlive them.
std::vector<TextLine> lines_of(std::string_view text);

/// A number of milliseconds as a duration; ConfigError at `where`, naming `what`, unless it is a
/// finite number between 0 and 10^8.
Nanoseconds checked_milliseconds(double number, const SourceLocation& where,
                                 const std::string& what);
/// A number of bytes, rounded to whole ones; ConfigError unless it is between 0 and 2^44.
Bytes checked_bytes(double number, const SourceLocation& where, const std::string& what);

}  // namespace pfeife
