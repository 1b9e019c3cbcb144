#include <gtest/gtest.h>

#include <iostream>
#include <limits>
#include <sstream>
#include <string>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/printable.h"
#include "planner/ir/basics/run_main.h"
#include "planner/ir/basics/utf8.h"

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

TEST(Printable, ControlCharactersAndLineEndsOfNamesAreWrittenOut) {
  EXPECT_EQ(printable("\"a\x1b[31m\nb\"\nc\x7f\t"), "\"a\\x1b[31m\\nb\"\nc\\x7f\\x09");
  EXPECT_EQ(printable_line("\"a\nb\"\nc"), "\"a\\nb\"\\nc");
  EXPECT_EQ(printable("größer"), "größer");
}

// The characters of Unicode Standard Annex 9, table 4, and the C1 controls of ISO 6429; what is
// written from right to left by itself stays.
TEST(Printable, WhatTurnsTheDirectionOfReadingIsWrittenOut) {
  EXPECT_EQ(printable("a\u202Eb\u2066c\u200F"), "a\\u202eb\\u2066c\\u200f");
  EXPECT_EQ(printable("a\u009B31mb\u2028c"), "a\\x9b31mb\\u2028c");
  EXPECT_EQ(printable("שלום 😀"), "שלום 😀");
}

TEST(Printable, BytesThatAreNoTextAreWrittenOut) {
  EXPECT_EQ(printable("a\xff\xe2\x80"), "a\\xff\\xe2\\x80");
}

// An apostrophe opens no quote; a name in quotes has no line of its own in the message.
TEST(Printable, LineEndsOfNamesInSingleQuotesAreWrittenOut) {
  EXPECT_EQ(printable("the model's entry 'a\nb' is\nno"), "the model's entry 'a\\nb' is\nno");
}

TEST(Printable, AFilesNameIsOneLine) {
  EXPECT_EQ(to_string(SourceLocation{"a\nb\x1b.yaml", 3, 1}), "a\\nb\\x1b.yaml:3:1");
}

/// What a main says when it ends with this exception.
template <class Error>
std::string said(const Error& error) {
  std::ostringstream text;
  std::streambuf* const before = std::cerr.rdbuf(text.rdbuf());
  run_main("program", [&]() -> int { throw error; });
  std::cerr.rdbuf(before);
  return text.str();
}

TEST(RunMain, FaultsAreOneLineWithoutControlCharacters) {
  EXPECT_EQ(said(RuntimeFault("node 'a\x1b[2J\nb' failed")),
            "program: node 'a\\x1b[2J\\nb' failed\n");
  EXPECT_EQ(said(std::runtime_error("a\x1b\nb")), "program: a\\x1b\nb\n");
}

TEST(NearestSpelling, IsAtMostAThirdOfTheLettersAway) {
  EXPECT_EQ(nearest_spelling("tf23", {"fp32", "tf32"}), "tf32");
  EXPECT_EQ(nearest_spelling("FP32", {"fp32", "tf32"}), "fp32");
  EXPECT_EQ(nearest_spelling("blue", {"fp32", "tf32"}), "");
}

TEST(NearestSpelling, OrALongerFormOfTheWord) {
  EXPECT_EQ(nearest_spelling("bf16", {"fp32", "tf32", "bf16_amp", "fp16_amp"}), "bf16_amp");
  EXPECT_EQ(nearest_spelling("family", {"search", "families", "cuts"}), "families");
  EXPECT_EQ(nearest_spelling("b", {"bf16_amp"}), "");
}

TEST(NearestSpelling, IsNeverTheWordItself) {
  EXPECT_EQ(nearest_spelling("step_below", {"step_below", "training"}), "");
}

TEST(Ids, AreMadeOfAnyIntegerThat32BitsHold) {
  EXPECT_EQ(StageId{std::size_t{7}}.value, 7);
  EXPECT_EQ(StageId{std::int64_t{-1}}.value, -1);
  EXPECT_EQ(StageId{std::uint8_t{255}}.index(), 255U);
  EXPECT_EQ(StageId{2147483647L}.value, std::numeric_limits<std::int32_t>::max());
}

TEST(Ids, OfWhat32BitsDoNotHoldAreRefusedRatherThanCut) {
  EXPECT_THROW(StageId{2147483648L}, InternalError);
  EXPECT_THROW(StageId{std::numeric_limits<std::size_t>::max()}, InternalError);
  EXPECT_THROW(StageId{std::numeric_limits<std::int64_t>::min()}, InternalError);
}

}  // namespace
}  // namespace pfeife
