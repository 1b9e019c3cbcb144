// Whether bytes are UTF-8 text.
#pragma once

#include <cstddef>
#include <string_view>

namespace pfeife {

/// Length in bytes of the UTF-8 character that `text`, which is not empty, begins with; 0 if it is
/// none: a byte that begins no character, one that is cut off, an overlong form, half of a UTF-16
/// pair, or beyond U+10FFFF (The Unicode Standard 15, table 3-7).
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const unsigned second = length > 2 ? byte(1) : 0;
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate_or_beyond =
      (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return overlong || surrogate_or_beyond ? 0 : length;
}

/// Control characters other than tab and line ends, which text files have none of.
inline bool is_control(char character) {
  const auto c = static_cast<unsigned char>(character);
  return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
}

/// The number of a whole UTF-8 character; that of the byte where `character` is a single one.
inline unsigned code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  unsigned code = byte(0) & (0x7FU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

/// Whether a character does something to the text around it where it is shown: control characters,
/// also those of ISO 8859-1 (U+009B begins a sequence as ESC [ does), separators of lines and
/// paragraphs, and what turns the direction of reading (Unicode Standard Annex 9, table 4:
/// embeddings, overrides, isolates and marks).
constexpr bool acts_on_text(unsigned code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || code == 0x200E ||
         code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

}  // namespace pfeife
