// Shares of a profile put together, and kept in a file between them.

#include "runtime/profile/profile_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/error.h"
#include "runtime/profile/part_steps.h"
#include "tests/support/message_of.h"
#include "tests/support/scratch_folder.h"

namespace pfeife {
namespace {

constexpr std::size_t kNodes = 3, kParameters = 2;

/// Adds steps with times between 1 and 2 us times `slower`, some of them interrupted.
void add_share(ProfileSamples& samples, int steps, double slower, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(1000, 2000);
  const auto time = [&] { return Nanoseconds{std::llround(slower * uniform(random))}; };
  samples.steps.begin_round();
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
    samples.parts.begin_step();
    for (std::size_t kind = 0; kind < 9; ++kind) samples.parts.add(kind, time());
    samples.turns.begin_step();
    for (std::size_t turn = 0; turn < PartSteps::kTurns; ++turn) samples.turns.add(turn, time());
  }
}

Profile profile_of(const ProfileSamples& samples) {
  NodeMemory memory;
  memory.saved.resize(kNodes), memory.weight_saved.resize(kNodes), memory.temporary.resize(kNodes);
  return report_of(samples, memory, {}).profile;
}

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

// By hand: one share takes 1 / 1.05 of the mean, the other 1.1 / 1.05, and nothing varies within
// them: a deviation of 0.1 / 1.05 / sqrt(2). Of two rounds Student's 95th percentile is 6.3138, a
// normal variate's 1.6449; sqrt(3 / 2) for the mean of two, which is not known better either.
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
  EXPECT_NEAR(profile_of(both).variation->drift,
              0.1 / 1.05 / std::sqrt(2) * std::sqrt(1.5) * 6.3138 / 1.6449, 1e-4);
  EXPECT_NEAR(profile_of(both).variation->cv, 0, 1e-9);
}

TEST(ProfileSamples, AFileHoldsAllOfThem) {
  ProfileSamples samples(kNodes, kParameters);
  std::mt19937 random(5);
  add_share(samples, 7, 1.0, random);
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "samples", again = folder.path() / "again";
  write_samples(file, "a model", samples);
  const auto found = read_samples(file, "a model", kNodes, kParameters);
  ASSERT_TRUE(found);
  EXPECT_EQ(profile_of(*found), profile_of(samples));
  EXPECT_EQ(found->forward.ran, samples.forward.ran);
  EXPECT_EQ(found->whole(Whole::Backward).interrupted(),
            samples.whole(Whole::Backward).interrupted());
  write_samples(again, "a model", *found);
  EXPECT_EQ(read_file(again), read_file(file));
  EXPECT_FALSE(read_samples(folder.path() / "missing", "a model", kNodes, kParameters));
}

TEST(ProfileSamples, FilesOfSomethingElseOrCutShortAreRefused) {
  ProfileSamples samples(kNodes, kParameters);
  std::mt19937 random(6);
  add_share(samples, 3, 1.0, random);
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "samples";
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
        std::string("pfeife profile samples 4\na model\n"),
        std::string("pfeife profile samples 3") + text.substr(text.find('\n')), std::string()}) {
    write_file(file, broken);
    EXPECT_THAT(message("a model"), ::testing::HasSubstr("no whole samples"));
  }
}

// By hand: F takes 1000 in one and 400 + 500 + 700 in three parts, 600 / 2 more for each of the two
// that were added; I 2000 and 2301, 301 / 2 more, rounded down; W less in parts than in one, which
// is no overhead.
TEST(ProfileSamples, OverheadIsWhatEachFurtherPartAdds) {
  ProfileSamples samples(kNodes, kParameters);
  std::mt19937 random(9);
  add_share(samples, 2, 1.0, random);
  samples.parts = {};
  for (const std::int64_t late : {0, 0, 9000}) {  // one step of three is late in all it does
    const auto time = [&](std::int64_t ns) { return Nanoseconds{ns + late}; };
    samples.parts.begin_step();
    for (int m = 0; m < 2; ++m) {
      const std::int64_t in_one[] = {990 + 20 * m, 2000, 500};
      for (std::size_t pass = 0; pass < 3; ++pass)
        samples.parts.add(ProfileSamples::part_kind(pass, {}), time(in_one[pass]));
    }
    samples.parts.begin_step();
    for (int m = 0; m < 2; ++m) {
      const std::int64_t parts[][3] = {{400, 1000, 100}, {500, 1000, 100}, {700, 301, 100}};
      for (std::size_t part = 0; part < 3; ++part)
        for (std::size_t pass = 0; pass < 3; ++pass)
          samples.parts.add(ProfileSamples::part_kind(pass, part), time(parts[part][pass]));
    }
  }
  const StageOverheads found = profile_of(samples).stage_overheads.value();
  EXPECT_EQ(found, (StageOverheads{Nanoseconds{300}, Nanoseconds{150}, Nanoseconds{0}}));
  EXPECT_EQ(each_action(found), Nanoseconds{225});
  samples.parts = {};
  EXPECT_EQ(profile_of(samples).stage_overheads, std::nullopt);
}

// By hand: a message is gone on with after 110 us, on average, of which handing it over took 20;
// one between idle processes takes 30; after the wait a pass takes 45 longer than without: 105 us.
// One step of three is late in all.
TEST(ProfileSamples, AMessageCostsWhatItsLinkAndItsPassesDoNotTake) {
  ProfileSamples samples(kNodes, kParameters);
  std::mt19937 random(9);
  add_share(samples, 2, 1.0, random);
  const auto add_steps = [&](std::int64_t after_wait) {
    samples.turns = {};
    for (const std::int64_t late : {0, 0, 9000}) {
      const auto add = [&](PartSteps::Turn turn, std::int64_t us) {
        samples.turns.add(turn, Nanoseconds{1000 * (us + (turn == PartSteps::Echo ? 0 : late))});
      };
      samples.turns.begin_step();
      add(PartSteps::Arrival, 100), add(PartSteps::Arrival, 120);
      add(PartSteps::Sending, 20);
      add(PartSteps::AfterWait, after_wait), add(PartSteps::AfterWait, after_wait + 400);
      add(PartSteps::WithoutWait, 500), add(PartSteps::WithoutWait, 900);
      add(PartSteps::Echo, 31), add(PartSteps::Echo, 29);
    }
  };
  add_steps(545);
  EXPECT_EQ(profile_of(samples).message_overhead, Nanoseconds{105'000});
  add_steps(300);
  EXPECT_EQ(profile_of(samples).message_overhead, Nanoseconds{0}) << "noise takes no time away";
  samples.turns = {};
  EXPECT_EQ(profile_of(samples).message_overhead, std::nullopt);
}

// A kind of pass that takes no time has no variation: 0 / 0.
TEST(ProfileSamples, APassThatTookNoTimeIsRefused) {
  ProfileSamples samples(kNodes, kParameters);
  std::mt19937 random(7);
  add_share(samples, 3, 1.0, random);
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "samples";
  write_samples(file, "a model", samples);
  const std::string text = read_file(file);
  write_file(file, text.substr(0, text.rfind(' ')) + " 0\n");  // the last step's last pass
  EXPECT_EQ(message_of([&] { read_samples(file, "a model", kNodes, kParameters); }),
            file.string() + ": says that a whole pass took 0 ns; remove it and profile anew");
}

}  // namespace
}  // namespace pfeife
