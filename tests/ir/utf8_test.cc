#include "planner/ir/basics/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace pfeife {
namespace {

/// The shortest form of a code point, by the definition.
std::string encoded(unsigned code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCharacterHasItsLengthAndIsNoneIfCutOff) {
  for (unsigned code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;  // halves of UTF-16 pairs
    const std::string text = encoded(code);
    ASSERT_EQ(utf8_length(text), text.size()) << code;
    ASSERT_EQ(utf8_length(text + "x"), text.size()) << code;
    for (std::size_t n = 1; n < text.size(); ++n)
      ASSERT_EQ(utf8_length(std::string_view(text).substr(0, n)), 0U) << code;
  }
}

// All first and second bytes, third and fourth ones at the ends of what may follow: a character
// only if it is the shortest form of the code point that its bits spell.
TEST(Utf8, NothingElseIsACharacter) {
  constexpr unsigned kEdges[] = {0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
  for (unsigned a = 0x80; a < 0x100; ++a)
    for (unsigned b = 0; b < 0x100; ++b)
      for (const unsigned c : kEdges)
        for (const unsigned d : kEdges) {
          const std::string text{static_cast<char>(a), static_cast<char>(b), static_cast<char>(c),
                                 static_cast<char>(d)};
          const unsigned two = (a & 0x1F) << 6 | (b & 0x3F), three = two << 6 | (c & 0x3F),
                         four =
                             ((a & 0x07) << 18) | (b & 0x3F) << 12 | (c & 0x3F) << 6 | (d & 0x3F);
          std::size_t length = 0;
          for (const unsigned code : {two, three & 0xFFFF, four})
            if (code <= 0x10FFFF && (code < 0xD800 || code >= 0xE000) &&
                text.starts_with(encoded(code)))
              length = encoded(code).size();
          ASSERT_EQ(utf8_length(text), length) << std::hex << a << ' ' << b << ' ' << c << ' ' << d;
        }
}

TEST(Utf8, ControlCharactersAreAllButTabAndLineEnds) {
  for (int c = 0; c < 0x100; ++c)
    EXPECT_EQ(is_control(static_cast<char>(c)),
              (c <= 0x1F && c != 9 && c != 10 && c != 13) || c == 127)
        << c;
}

}  // namespace
}  // namespace pfeife
