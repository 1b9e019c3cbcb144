// --resume and --save of pfeife-run as a user gives them.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "tests/runtime/npy_file.h"
#include "tests/runtime/processes.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using namespace testing;

class Resume : public ProcessTest {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    write_data("data", 64, 3);
    write_data("shorter", 16, 3);
    write_data("other", 64, 4);
  }
  void write_data(const char* name, std::int64_t samples, std::int64_t value) const {
    std::filesystem::create_directories(folder_ / name);
    for (const char* input : {"ids", "labels"})
      write_npy<std::int64_t>(
          folder_ / name / (std::string(input) + ".npy"), "<i8", {samples, 12},
          std::vector<std::int64_t>(static_cast<std::size_t>(samples * 12), value));
  }
  Ended train(const std::string& data, std::vector<std::string> more, bool resumes = true,
              const char* steps = "1") const {
    more.insert(more.begin(), {"train", "--threads", "--steps", steps, "--data",
                               (folder_ / data).string(), "--save", (folder_ / "save").string()});
    if (resumes) more.insert(more.end(), {"--resume", (folder_ / "save").string()});
    return start(arguments(more))->wait(kLong);
  }
  /// The content of the checkpoint after so many steps.
  std::filesystem::path checkpoint(int steps) const {
    return folder_ / "save" / ("step-0000000" + std::to_string(steps));
  }
};

TEST_F(Resume, OtherDataAreRefusedUnlessTheyAreSaidToBeNew) {
  ASSERT_EQ(train("data", {}, false).code, 0);
  for (const char* other : {"shorter", "other"}) {
    const Ended refused = train(other, {});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.text, HasSubstr("was trained on 64 samples"));
    EXPECT_THAT(refused.text, HasSubstr("--new-data"));
  }
  const Ended same = train("data", {});
  EXPECT_EQ(same.code, 0) << same.text;
  const Ended renewed = train("shorter", {"--new-data"});
  EXPECT_EQ(renewed.code, 0) << renewed.text;
  EXPECT_THAT(renewed.text, HasSubstr("step 3: loss"));
}

TEST_F(Resume, EveryDamagedFileIsRefusedByNameBeforeTheStart) {
  ASSERT_EQ(train("data", {}, false).code, 0);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint(1))) {
    ++files;
    const std::string whole = content_of(entry.path());
    std::string damaged = whole;
    damaged[whole.size() - 9] = static_cast<char>(damaged[whole.size() - 9] ^ 1);
    std::ofstream(entry.path(), std::ios::binary) << damaged;
    const Ended refused = train("data", {});
    EXPECT_EQ(refused.code, 2) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr(entry.path().filename().string()));
    EXPECT_THAT(refused.text, HasSubstr("damaged"));
    std::ofstream(entry.path(), std::ios::binary) << whole;
  }
  EXPECT_EQ(files, 8);
  EXPECT_EQ(train("data", {}).code, 0);
}

TEST_F(Resume, ALossThatIsNoNumberEndsWithFour) {
  const Ended ended = train("data", {"--learning-rate", "1e30"}, false, "60");
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, ::testing::ContainsRegex("the loss of step [0-9]+ is (nan|-?inf):"));
}

/// A file system that has room for one checkpoint and a half; skipped where none may be mounted.
TEST_F(Resume, AFullDiskIsSaidWithWhatToDoAndTheCheckpointBeforeItStays) {
  ASSERT_EQ(train("data", {}, false).code, 0);
  std::uintmax_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint(1)))
    pages += 1 + entry.file_size() / 4096;
  std::filesystem::remove_all(folder_ / "save");
  std::filesystem::create_directories(folder_ / "save");
  const std::string size = "size=" + std::to_string(pages * 3 / 2 * 4096);
  if (mount("tmpfs", (folder_ / "save").c_str(), "tmpfs", 0, size.c_str()) != 0)
    GTEST_SKIP() << "mounting a small file system is not allowed here";
  const Ended first = train("data", {}, false), second = train("data", {});
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "save"))
    left.push_back(entry.path().filename());
  umount((folder_ / "save").c_str());
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_EQ(second.code, 4) << second.text;
  EXPECT_THAT(
      second.text,
      HasSubstr("No space left on device; free some space, or choose another folder with --save"));
  // What the failed save wrote has another name, and goes with the next save.
  std::erase_if(left, [](const std::string& name) { return name.starts_with(".partial-"); });
  EXPECT_THAT(left, ::testing::ElementsAre("step-00000001"));
}

TEST_F(Resume, ALimitOfFileSizesIsAnErrorOfTheWrite) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Ended threads = train("data", {}, false);
  const Ended processes =
      start(arguments({"train", "--steps", "1", "--save", (folder_ / "save").string()}))
          ->wait(kLong);
  setrlimit(RLIMIT_FSIZE, &before);
  for (const Ended& ended : {threads, processes}) {
    EXPECT_EQ(ended.code, 4);
    EXPECT_THAT(ended.text, HasSubstr("File too large; raise the limit of file sizes (ulimit -f)"));
  }
}

TEST_F(Resume, TwoTrainingsIntoOneFolderAreRefused) {
  const auto first = start(arguments({"train", "--steps", "1000000", "--save-every", "1", "--save",
                                      (folder_ / "save").string()}),
                           {}, "first");
  ASSERT_TRUE(holds_within(kLong, [&] {
    return first->text().find("step 1:") != std::string::npos;
  })) << first->text();
  const Ended refused = train("data", {}, false);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.text, HasSubstr("another training saves there"));
  kill(first->process(), SIGKILL);
  ASSERT_TRUE(holds_within(kLong, [&] { return ranks().empty(); }));
  const Ended after = train("data", {}, false);
  EXPECT_EQ(after.code, 0) << after.text;
}

}  // namespace
}  // namespace pfeife
