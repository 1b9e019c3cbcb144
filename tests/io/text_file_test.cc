#include "planner/io/files/text_file.h"

#include <gtest/gtest.h>

#include <istream>
#include <sstream>

#include "tests/support/message_of.h"

namespace pfeife {
namespace {

/// A stream that never ends.
class Endless : public std::streambuf {
 public:
  std::size_t given() const { return given_; }

 protected:
  int underflow() override {
    given_ += sizeof letters_;
    setg(letters_, letters_, letters_ + sizeof letters_);
    return 'y';
  }

 private:
  char letters_[4096] = {'y'};
  std::size_t given_ = 0;
};

TEST(TextStream, IsReadWhole) {
  std::string text;
  for (int line = 0; line < 50'000; ++line) text += std::to_string(line) + "\n";
  std::istringstream stream(text);
  const TextFile file = read_text_stream(stream, "standard input");
  EXPECT_EQ(file.name, "standard input");
  EXPECT_EQ(file.text, text);
  std::istringstream nothing("");
  EXPECT_EQ(read_text_stream(nothing, "standard input").text, "");
}

TEST(TextStream, IsReadAsAFileIs) {
  std::istringstream marked(
      "\xEF\xBB\xBF"
      "0F0\n"),
      wrong("0F0\n\xFF");
  EXPECT_EQ(read_text_stream(marked, "standard input").text, "0F0\n");
  EXPECT_EQ(message_of<ConfigError>([&] { read_text_stream(wrong, "standard input"); }),
            "standard input:2:1: byte 255 is no UTF-8 text; save the file as plain text (UTF-8)");
}

TEST(TextStream, WithoutAnEndIsRefusedOnceItIsTooLarge) {
  Endless letters;
  std::istream stream(&letters);
  EXPECT_EQ(message_of<ConfigError>([&] { read_text_stream(stream, "standard input"); }),
            "standard input: is larger than the 64 MiB that such a file may have");
  EXPECT_LE(letters.given(), std::size_t{65} << 20);
}

}  // namespace
}  // namespace pfeife
