#include "planner/ir/basics/printable.h"

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "planner/ir/basics/run_main.h"

namespace pfeife {
namespace {

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

}  // namespace
}  // namespace pfeife
