#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <istream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/command_line.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/json_fields.h"
#include "planner/io/files/part_locks.h"
#include "planner/io/files/text_file.h"
#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"
#include "tests/support/scratch_folder.h"

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

TEST(WriteFailure, SaysWhyAndWhatToDo) {
  EXPECT_STREQ(
      write_failure("out/a.csv", ENOSPC).what(),
      "cannot write out/a.csv: No space left on device; free some space, or choose another "
      "folder with --out");
  EXPECT_STREQ(write_failure("save/step", EACCES, "--save").what(),
               "cannot write save/step: Permission denied; choose another folder with --save");
  EXPECT_STREQ(write_failure("out/case.json", EISDIR).what(),
               "cannot write out/case.json: Is a directory; a folder stands where a file belongs: "
               "remove or rename it, or choose another folder with --out");
  EXPECT_EQ(cause_and_remedy(EFBIG), "File too large; raise the limit of file sizes (ulimit -f)");
  EXPECT_EQ(cause_and_remedy(0), "the system does not say why");
}

// FIPS 180-4's examples for SHA-256.
TEST(Digest, PublishedExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, OfAFileIsThatOfItsBytesOverSeveralPieces) {
  const std::string bytes(std::size_t{700'000}, 'x');
  const std::string path =
      testing::TempDir() + "digest_test." + std::to_string(::getpid()) + ".bin";
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(sha256_file(path), sha256(bytes));
}

TEST(Digest, MissingFileAndFolderAreWrongInput) {
  EXPECT_THROW(sha256_file("/no/such/file"), ConfigError);
  EXPECT_THROW(sha256_file(testing::TempDir()), ConfigError);
}

boost::program_options::variables_map read_words(const std::vector<std::string>& arguments) {
  boost::program_options::options_description known;
  known.add_options()("steps", boost::program_options::value<int>(), "number of steps")("threads",
                                                                                        "no value");
  return read_arguments(arguments, known, "plan", "pfeife-run train");
}
std::string refusal(const std::vector<std::string>& arguments) {
  return message_of([&] { read_words(arguments); });
}

TEST(CommandLine, HasOptionsAndOneSubjectInAnyOrder) {
  const auto found = read_words({"--steps", "3", "plan.yaml", "--threads"});
  EXPECT_EQ(found["plan"].as<std::string>(), "plan.yaml");
  EXPECT_EQ(found["steps"].as<int>(), 3);
  EXPECT_EQ(found.count("threads"), 1U);
  EXPECT_EQ(read_words({"--steps", "0"})["steps"].as<int>(), 0);
  EXPECT_EQ(read_words({"007"})["plan"].as<std::string>(), "007") << "a file may be called so";
  EXPECT_TRUE(read_words({}).empty());
}

TEST(CommandLine, RefusalsSayWhatIsWrongAndWhereTheOptionsAre) {
  EXPECT_EQ(refusal({"a.yaml", "b.yaml"}),
            "one plan at a time; options start with --, see pfeife-run train --help");
  EXPECT_EQ(refusal({"--step", "3"}), "unrecognised option '--step'; see pfeife-run train --help");
  EXPECT_EQ(refusal({"--steps", "x"}),
            "the argument ('x') for option '--steps' is invalid; see pfeife-run train --help");
  EXPECT_EQ(refusal({"--steps", "010"}), "--steps: '010' has a zero too many in front");
  EXPECT_EQ(refusal({"--steps=-01"}), "--steps: '-01' has a zero too many in front");
}

std::string json_refusal(const std::string& text) {
  return message_of<json_fields::Malformed>([&] { json_fields::parse(text); });
}

// Lines and columns count from 1, columns in bytes; the mistake is the last character shown.
TEST(JsonFields, AMistakeIsNamedWithItsPlaceAndWhatStandsThere) {
  for (const char* text : {"", "{\"a\": ", "{\"a\": tru}", "[1,\n 2,\n 3 4]", "[1e999]", "[1,]",
                           "[\"a\x01\"]", "{\"a\": 1} x"})
    EXPECT_MESSAGE(json_refusal(text));
}

TEST(JsonFields, NothingIsShownOfALongValueButItsEnd) {
  EXPECT_LT(json_refusal("[\"" + std::string(100'000, 'a') + "\n\"]").size(), 120U);
}

class PartLocksTest : public ::testing::Test {
 protected:
  /// Another process that has `parts` until a file "enough" is there, and says so by "has".
  pid_t other(const std::vector<std::int64_t>& parts) const {
    const pid_t process = fork();
    if (process > 0) return process;
    {
      const PartLocks locks(folder_, parts, [] {});
      std::ofstream(folder_ / "has");
      while (!std::filesystem::exists(folder_ / "enough")) pause_shortly();
    }
    _exit(0);
  }
  static void pause_shortly() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }
  void wait_for(const char* file) const {
    while (!std::filesystem::exists(folder_ / file)) pause_shortly();
  }

  ScratchFolder scratch_;
  const std::filesystem::path& folder_ = scratch_.path();
};

TEST_F(PartLocksTest, AnotherProcessWithAPartIsWaitedFor) {
  const pid_t process = other({2, 4});
  wait_for("has");
  bool told = false;
  const PartLocks apart(folder_, {1, 3}, [&] { told = true; });
  EXPECT_FALSE(apart.waited());
  EXPECT_FALSE(told);
  const PartLocks shared(folder_, {5, 4}, [&] {
    told = true;
    std::ofstream(folder_ / "enough");
  });
  EXPECT_TRUE(shared.waited());
  EXPECT_TRUE(told);
  int status = -1;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
}

TEST_F(PartLocksTest, NothingIsLeftOfThem) {
  {
    const PartLocks locks(folder_, {0, 1}, [] {});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(PartLocksTest, OfAFolderThatIsNotThereNothingIsHeld) {
  EXPECT_FALSE(PartLocks(folder_ / "nowhere", {0}, [] {}).waited());
}

}  // namespace
}  // namespace pfeife
