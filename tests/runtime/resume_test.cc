// --resume and --save of pfeife-run as a user gives them.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cmath>
#include <functional>
#include <sstream>

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
    write_data(name, samples, [&](std::int64_t) { return value; });
  }
  /// `value_of`: of a sample's elements.
  void write_data(const char* name, std::int64_t samples,
                  const std::function<std::int64_t(std::int64_t)>& value_of) const {
    std::filesystem::create_directories(folder_ / name);
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < samples * 12; ++i) values.push_back(value_of(i / 12));
    for (const char* input : {"ids", "labels"})
      write_npy<std::int64_t>(folder_ / name / (std::string(input) + ".npy"), "<i8", {samples, 12},
                              values);
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

/// Losses and learning rates by step, as --out has them.
std::vector<std::pair<std::string, std::string>> losses_and_rates(
    const std::filesystem::path& file) {
  std::vector<std::pair<std::string, std::string>> found;
  std::istringstream lines(content_of(file));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "step,time_ns,loss,learning_rate");
  while (std::getline(lines, line)) {
    const std::size_t loss = line.find(',', line.find(',') + 1), rate = line.rfind(',');
    found.emplace_back(line.substr(loss + 1, rate - loss - 1), line.substr(rate + 1));
  }
  return found;
}

// 20 samples in steps of 8: the run that continues begins in the middle of an epoch. Rates by hand:
// a half and the whole of 0.01 in the warm-up; then (1 + cos(pi x)) / 2 of it, x = 0, 1/4, ...
TEST_F(Resume, ARunThatContinuesNeedsNoOptionOfTheUpdateAgain) {
  write_data("varied", 20, [](std::int64_t sample) { return sample * 3; });
  const auto out = [&](const char* name) { return (folder_ / name).string(); };
  const std::vector<std::string> update{"--shuffle", "--seed",         "5",    "--learning-rate",
                                        "0.01",      "--warmup-steps", "2",    "--lr-schedule",
                                        "cosine",    "--beta1",        "0.8",  "--beta2",
                                        "0.95",      "--eps",          "1e-3", "--weight-decay",
                                        "0.1",       "--clip-norm",    "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), update.begin(), update.end());
    return more;
  };
  const Ended whole = train("varied", with({"--out", out("whole.csv")}), false, "6");
  ASSERT_EQ(whole.code, 0) << whole.text;
  EXPECT_THAT(whole.text, HasSubstr("learning rate 0.005,"));
  const auto expected = losses_and_rates(out("whole.csv"));
  ASSERT_EQ(expected.size(), 6u);
  const double half_root = std::sqrt(0.5);
  const std::vector<double> rates{0.5, 1, 1, (1 + half_root) / 2, 0.5, (1 - half_root) / 2};
  for (std::size_t i = 0; i < rates.size(); ++i)
    EXPECT_NEAR(std::stod(expected[i].second), 0.01 * rates[i], 1e-15);
  std::filesystem::remove_all(folder_ / "save");
  ASSERT_EQ(train("varied", with({"--lr-decay-steps", "6"}), false, "2").code, 0);
  const Ended rest = train("varied", {"--out", out("rest.csv")}, true, "4");
  ASSERT_EQ(rest.code, 0) << rest.text;
  EXPECT_EQ(losses_and_rates(out("rest.csv")),
            decltype(expected)(expected.begin() + 2, expected.end()));
}

TEST_F(Resume, ShufflingBeginsBetweenEpochs) {
  ASSERT_EQ(train("data", {}, false).code, 0);
  const Ended refused = train("data", {"--shuffle"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.text, HasSubstr("is at sample 8 of 64"));
  ASSERT_EQ(train("data", {}, true, "7").code, 0);
  EXPECT_EQ(train("data", {"--shuffle"}).code, 0);
}

TEST_F(Resume, AWrongOptionOfTheUpdateSaysWhatIsAllowed) {
  struct Wrong {
    std::vector<std::string> options;
    const char* text;
  };
  for (const auto& [options, text] : {
           Wrong{{"--lr-schedule", "step"},
                 "unknown schedule 'step'; use constant, linear or cosine"},
           {{"--lr-schedule", "linear", "--warmup-steps", "1"},
            "--warmup-steps: is 1, the decay ends after 1 steps: give fewer, or more"},
           {{"--lr-schedule", "cosine", "--min-lr", "0.1"},
            "--min-lr: is 0.1; give at most the learning rate, 0.001"},
           {{"--min-lr", "0.1"}, "--min-lr: is where a decay ends, and --lr-schedule is constant"},
           {{"--lr-decay-steps", "9"}, "--lr-decay-steps: is where a decay ends"},
           {{"--warmup-steps", "-1"}, "--warmup-steps: is -1; give 0 or more"},
           {{"--learning-rate", "-1"}, "--learning-rate: is -1; give a number of at least 0"},
           {{"--beta1", "1"}, "--beta1: is 1; give a number of at least 0 and less than 1"},
           {{"--beta2", "nan"}, "--beta2: is nan; give a number of at least 0 and less than 1"},
           {{"--eps", "-1e-8"}, "--eps: is -1e-08; give a number of at least 0"},
           {{"--momentum", "0.5"}, "is of the optimizer momentum; the plan trains with adam"},
       }) {
    const Ended refused = train("data", options, false);
    EXPECT_EQ(refused.code, 2) << text;
    EXPECT_THAT(refused.text, HasSubstr(text));
  }
  const Ended synthetic =
      start(arguments({"train", "--threads", "--steps", "1", "--shuffle"}))->wait(kLong);
  EXPECT_EQ(synthetic.code, 2);
  EXPECT_THAT(synthetic.text, HasSubstr("--shuffle: is of the samples of --data"));
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
