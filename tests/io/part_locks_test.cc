#include "planner/io/files/part_locks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/support/scratch_folder.h"

namespace pfeife {
namespace {

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
