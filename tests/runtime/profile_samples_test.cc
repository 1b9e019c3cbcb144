// Shares of a profile put together, and kept in a file between them.
#include "runtime/profile/profile_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/error.h"
#include "runtime/profile/profile_samples_file.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

constexpr std::size_t kNodes = 3, kParameters = 2;

/// Adds steps with times between 1 and 2 us times `slower`, some of them interrupted.
void add_share(ProfileSamples& samples, int steps, double slower, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(1000, 2000);
  const auto time = [&] { return Nanoseconds{std::llround(slower * uniform(random))}; };
  for (int s = 0; s < steps; ++s) {
    samples.steps.begin_step();
    for (const Whole pass : {Whole::Forward, Whole::Backward, Whole::SplitForward,
                             Whole::BackwardInput, Whole::BackwardWeight, Whole::Optimizer})
      samples.add(pass, time(), random() % 3 == 0);
    for (auto* passes : {&samples.forward, &samples.input, &samples.weight})
      passes->add({.nodes = {time(), time(), Nanoseconds{0}},
                   .ran = {true, s > 0, false},
                   .outside = time(),
                   .interrupted = random() % 3 == 0});
    for (Samples& update : samples.updates) update.add(time(), false);
  }
}

Profile profile_of(const ProfileSamples& samples) {
  NodeMemory memory;
  memory.saved.resize(kNodes), memory.weight_saved.resize(kNodes), memory.temporary.resize(kNodes);
  return report_of(samples, memory, {}).profile;
}

std::string scratch(const std::string& name) { return ::testing::TempDir() + "pfeife_" + name; }

TEST(ProfileSamples, TwoSharesAreAsOneProfileOfBoth) {
  ProfileSamples first(kNodes, kParameters), second(kNodes, kParameters),
      whole(kNodes, kParameters);
  std::mt19937 a(3), b(4), again_a(3), again_b(4);
  add_share(first, 9, 1.0, a), add_share(second, 4, 1.3, b);
  add_share(whole, 9, 1.0, again_a), add_share(whole, 4, 1.3, again_b);
  first.append(second);
  EXPECT_EQ(profile_of(first), profile_of(whole));
  EXPECT_NE(profile_of(second), profile_of(whole));
}

// By hand: half of the steps take 1 / 1.05 of the mean, half 1.1 / 1.05, none varies within; the
// 5th and 95th percentile of a normal variate are 2 x 1.6449 standard deviations apart.
TEST(ProfileSamples, ASlowerShareIsDrift) {
  const auto share = [](std::int64_t time) {
    ProfileSamples samples(kNodes, kParameters);
    for (int step = 0; step < 8; ++step) {
      samples.steps.begin_step();
      for (int pass = 0; pass < 4; ++pass) samples.add(Whole::Forward, Nanoseconds{time}, false);
    }
    return samples;
  };
  ProfileSamples both = share(1'000'000);
  EXPECT_EQ(profile_of(both).variation, MeasuredVariation{});
  both.append(share(1'100'000));
  EXPECT_NEAR(profile_of(both).variation->drift, 0.1 / 1.05 / (2 * 1.6449), 1e-5);
  EXPECT_NEAR(profile_of(both).variation->cv, 0, 1e-9);
}

TEST(ProfileSamples, AFileHoldsAllOfThem) {
  ProfileSamples samples(kNodes, kParameters);
  std::mt19937 random(5);
  add_share(samples, 7, 1.0, random);
  const std::string file = scratch("samples"), again = scratch("samples_again");
  write_samples(file, "a model", samples);
  const auto found = read_samples(file, "a model", kNodes, kParameters);
  ASSERT_TRUE(found);
  EXPECT_EQ(profile_of(*found), profile_of(samples));
  EXPECT_EQ(found->forward.ran, samples.forward.ran);
  EXPECT_EQ(found->whole(Whole::Backward).interrupted(),
            samples.whole(Whole::Backward).interrupted());
  write_samples(again, "a model", *found);
  EXPECT_EQ(read_file(again), read_file(file));
  EXPECT_FALSE(read_samples(scratch("samples_missing"), "a model", kNodes, kParameters));
}

TEST(ProfileSamples, FilesOfSomethingElseOrCutShortAreRefused) {
  ProfileSamples samples(kNodes, kParameters);
  std::mt19937 random(6);
  add_share(samples, 3, 1.0, random);
  const std::string file = scratch("samples_broken");
  write_samples(file, "a model", samples);
  const auto message = [&](const std::string& timed) {
    return message_of<ConfigError>([&] { read_samples(file, timed, kNodes, kParameters); });
  };
  EXPECT_THAT(message("another"), ::testing::HasSubstr("was timed of \"a model\""));
  const std::string text = read_file(file);
  // Cut between two numbers, with something after the last, or with a pass of 300 years.
  for (const std::string& broken :
       {text.substr(0, text.rfind(' ')), text.substr(0, text.size() / 2), text + "7\n",
        text.substr(0, text.rfind(' ')) + " 9223372036854775807\n",
        std::string("pfeife profile samples 2\na model\n"), std::string()}) {
    write_file(file, broken);
    EXPECT_THAT(message("a model"), ::testing::HasSubstr("no whole samples"));
  }
}

// A kind of pass that takes no time has no variation: 0 / 0.
TEST(ProfileSamples, APassThatTookNoTimeIsRefused) {
  ProfileSamples samples(kNodes, kParameters);
  std::mt19937 random(7);
  add_share(samples, 3, 1.0, random);
  const std::string file = scratch("samples_of_no_time");
  write_samples(file, "a model", samples);
  const std::string text = read_file(file);
  write_file(file, text.substr(0, text.rfind(' ')) + " 0\n");  // the last step's last pass
  EXPECT_EQ(message_of([&] { read_samples(file, "a model", kNodes, kParameters); }),
            file + ": says that a whole pass took 0 ns; remove it and profile anew");
}

}  // namespace
}  // namespace pfeife
