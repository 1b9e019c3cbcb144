#include "planner/io/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "planner/ir/error.h"

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
  fs::create_directories(folder_ / "a.txt");
  EXPECT_THROW(write_file(folder_ / "a.txt", "x"), RuntimeFault);
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFile, LeftoversOfAKilledProcessAreRemovedAndNothingElse) {
  write_file(folder_ / ".pfeife-tmp-1-a.txt", "half");
  write_file(folder_ / "a.txt", "whole");
  remove_leftovers(folder_);
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(read_file(folder_ / "a.txt"), "whole");
}

}  // namespace
}  // namespace pfeife
