// What pfeife-run says of cards: of none, of those of a driver that is a stand-in, of too few.
#include <gmock/gmock.h>

#include "runtime/device/driver.h"
#include "tests/runtime/processes.h"

namespace pfeife {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Cards : public testing::ProcessTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(PFEIFE_RUN)) GTEST_SKIP() << "the program is where it was built";
    testing::ProcessTest::SetUp();
  }
  testing::Ended doctor(const std::string& device, const testing::Started::Variables& more = {}) {
    return start({PFEIFE_RUN, "doctor", device}, more)->wait(std::chrono::seconds(120));
  }
  /// A driver that shows so many cards, and no NCCL.
  static testing::Started::Variables driver(int cards, testing::Started::Variables more = {}) {
    more["LD_LIBRARY_PATH"] = PFEIFE_FAKE_DRIVER;
    more["PFEIFE_FAKE_CARDS"] = std::to_string(cards);
    more["PFEIFE_NCCL"] = "no/such.so";
    return more;
  }
  /// A tiny GPT on three ranks.
  testing::Ended check(const testing::Started::Variables& variables) {
    return start(arguments({"check", "--device", "cuda"}), variables)->wait(testing::kLong);
  }
};

TEST_F(Cards, DoctorMeasuresWhatRunsOnProcessorsNeed) {
  const testing::Ended ended = doctor("cpu");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, ContainsRegex("LibTorch +2\\.11"));
  EXPECT_THAT(ended.text, ContainsRegex("sockets +measured between two processes: [0-9.]+ us, "
                                        "[0-9.]+ GB/s"));
  EXPECT_THAT(ended.text, HasSubstr("\nfine: runs on cpu can start\n"));
}

TEST_F(Cards, DoctorSaysWhyNoCardCanBeUsed) {
  if (Driver().cards() > 0) GTEST_SKIP() << "there is a card";
  const testing::Ended ended = doctor("cuda");
  EXPECT_EQ(ended.code, 4) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("NOT FINE for runs on cuda:\n"));
  EXPECT_THAT(ended.text, Driver().is_there() ? HasSubstr("the driver shows no card")
                                              : HasSubstr("install NVIDIA's driver"));
  EXPECT_THAT(ended.text, HasSubstr("sockets"));  // the rest is said all the same
}

TEST_F(Cards, DoctorKnowsTwoDevices) {
  const testing::Ended ended = doctor("tpu");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("unknown device 'tpu'; use cpu or cuda"));
}

TEST_F(Cards, DoctorSaysThatADriverIsTooOld) {
  const testing::Ended ended = doctor("cuda", driver(1, {{"PFEIFE_FAKE_CUDA", "12040"}}));
  EXPECT_EQ(ended.code, 4) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("driver      up to CUDA 12.4, shows 1 card\n"));
  EXPECT_THAT(
      ended.text,
      HasSubstr("the driver runs CUDA 12.4, LibTorch needs CUDA 13.0: install a newer one"));
}

// Before anything starts.
TEST_F(Cards, TooFewForThePlanAreRefused) {
  const testing::Ended ended = check(driver(2));
  EXPECT_EQ(ended.code, 2) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("the plan has 3 ranks, this host shows 2 cards: plan for 2,"));
}

TEST_F(Cards, TooFewForTheRanksOfAHostAreRefused) {
  const testing::Ended ended = check(driver(2, {{"RANK", "2"},
                                                {"WORLD_SIZE", "3"},
                                                {"LOCAL_RANK", "2"},
                                                {"MASTER_ADDR", "127.0.0.1"},
                                                {"MASTER_PORT", "1"}}));
  EXPECT_EQ(ended.code, 2) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 2 is number 2 of this host, which shows 2 cards: start "
                                    "at most 2 ranks a host"));
}

TEST_F(Cards, AreNotUsedTogetherWithoutNccl) {
  const testing::Ended ended = check(driver(3));
  EXPECT_EQ(ended.code, 2) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("no/such.so: NCCL cannot be loaded"));
}

}  // namespace
}  // namespace pfeife
