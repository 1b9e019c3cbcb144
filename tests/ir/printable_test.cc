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
