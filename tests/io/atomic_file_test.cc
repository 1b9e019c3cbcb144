#include "planner/io/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "planner/ir/basics/error.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  fs::path folder_ =
      fs::path(::testing::TempDir()) / ("pfeife_atomic_file." + std::to_string(::getpid()));
};

TEST_F(AtomicFile, MakesFoldersAndReplacesWhatWasThere) {
  write_file(folder_ / "a" / "b.txt", "first");
  write_file(folder_ / "a" / "b.txt", "second");
  EXPECT_EQ(read_file(folder_ / "a" / "b.txt"), "second");
}

// Through a link of the test's own, so that no mistake reaches the device.
TEST_F(AtomicFile, ADeviceIsWrittenToNotReplaced) {
  fs::create_directories(folder_);
  fs::create_symlink("/dev/null", folder_ / "nothing");
  write_file(folder_ / "nothing", "text");
  EXPECT_TRUE(fs::is_symlink(folder_ / "nothing"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(files(), 1u);
}

// A link under the name that a writer would take, by whoever knows the number of its process.
TEST_F(AtomicFile, ALinkThatWaitsForTheWriterIsNotFollowed) {
  fs::create_directories(folder_);
  write_file(folder_ / "victim", "untouched");
  fs::create_symlink("victim", folder_ / (".pfeife-tmp-" + std::to_string(::getpid()) + "-a.txt"));
  write_file(folder_ / "a.txt", "text");
  EXPECT_EQ(read_file(folder_ / "victim"), "untouched");
  EXPECT_EQ(read_file(folder_ / "a.txt"), "text");
  EXPECT_FALSE(fs::is_symlink(folder_ / "a.txt"));
}

// A limit on the size of files stands for a full disk: the write is cut short, then fails.
TEST_F(AtomicFile, AWriteThatFailsLeavesTheOldFileAndNothingElse) {
  write_file(folder_ / "a.txt", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write_file(folder_ / "a.txt", std::string(100'000, 'x')), RuntimeFault);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(read_file(folder_ / "a.txt"), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFile, AFolderInTheWayIsReportedAndLeftAlone) {
  write_file(folder_ / "a.txt" / "inside", "x");
  const std::string file = (folder_ / "a.txt").string(),
                    why =
                        ": Is a directory; a folder stands where a file belongs: remove or rename "
                        "it, or choose another folder with --out";
  EXPECT_EQ(message_of<RuntimeFault>([&] { write_file(file, "x"); }), "cannot write " + file + why);
  EXPECT_EQ(message_of<RuntimeFault>([&] { remove_file(file); }), "cannot remove " + file + why);
  EXPECT_EQ(read_file(folder_ / "a.txt" / "inside"), "x");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFile, IsRemovedIfItIsThere) {
  write_file(folder_ / "a.txt", "x");
  remove_file(folder_ / "a.txt");
  EXPECT_EQ(files(), 0u);
  remove_file(folder_ / "a.txt");
  remove_file(folder_ / "nowhere" / "a.txt");
}

TEST_F(AtomicFile, LeftoversOfAKilledProcessAreRemovedAndNothingElse) {
  write_file(folder_ / ".pfeife-tmp-1-a.txt", "half");
  write_file(folder_ / "a.txt", "whole");
  remove_leftovers(folder_);
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(read_file(folder_ / "a.txt"), "whole");
}

std::string read_refusal(const fs::path& file, Bytes most = Bytes{1 << 20}) {
  try {
    read_file(file, most);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// The file has 3 GB, but nothing on the disk.
TEST_F(AtomicFile, OneThatIsTooLargeIsRefusedBeforeItIsRead) {
  write_file(folder_ / "large", "");
  fs::resize_file(folder_ / "large", 3'000'000'000);
  const std::string message = read_refusal(folder_ / "large");
  EXPECT_EQ(message,
            (folder_ / "large").string() + ": is larger than the 1 MiB that such a file may have");
  write_file(folder_ / "whole", std::string(1 << 20, 'a'));
  EXPECT_EQ(read_refusal(folder_ / "whole"), "");
}

TEST_F(AtomicFile, NothingThatHasNoEndIsRead) {
  fs::create_directories(folder_);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const fs::path& file : {folder_, folder_ / "pipe", fs::path("/dev/zero")}) {
    EXPECT_EQ(read_refusal(file),
              file.string() + ": is not a file but a folder, a device or a pipe");
    EXPECT_THROW(read_pieces(file, [](std::string_view) {}), ConfigError);
  }
}

}  // namespace
}  // namespace pfeife
