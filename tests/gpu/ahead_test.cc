// The host gives work to a device ahead of time: where a step waits for the device, and where not.
// On the stand-in, which counts what a card would have made the host wait for.
#include <gtest/gtest.h>

#include <barrier>

#include "tests/gpu/fake_card.h"
#include "tests/runtime/pipelines.h"

namespace pfeife {
namespace {

using namespace testing;

/// After all tests of the program: no stream has used what another one may still write or read.
class NoRaces : public ::testing::Environment {
  void TearDown() override {
    for (const std::string& race : take_races()) ADD_FAILURE() << race;
  }
};
const ::testing::Environment* const no_races = ::testing::AddGlobalTestEnvironment(new NoRaces);

/// What two ranks on the stand-in do in their second step of training; the inputs are there.
CardLog log_of_a_step(const RankOptions& options, const std::string& name) {
  const Model model(name);
  const Pipeline pipeline = model.pipeline({"1f1b", 2, 4, 1, {}, {}});
  std::barrier together(2);
  RandomTurns turns;
  CardLog log;
  run_ranks(2, options.placing.device, [&](RankId rank, Transport& transport) {
    RankPipeline own(pipeline, rank, model.source, options, turns, transport);
    const StepInputs inputs = inputs_of(pipeline, 0, options.placing);
    own.step(inputs);
    together.arrive_and_wait();
    if (rank == RankId{0}) take_card_log();
    together.arrive_and_wait();
    EXPECT_EQ(own.step(inputs).empty(), !options.time_actions);
    together.arrive_and_wait();
    if (rank == RankId{0}) log = take_card_log();
    together.arrive_and_wait();
  });
  return log;
}

// Times come from events, which are read at the end: two waits a rank, however many actions (nine
// here), before the first and after the last.
TEST(Step, WaitsForTheDeviceAtItsEndsOnlyAndOnlyIfTheActionsAreTimed) {
  const at::Device card = fake_card();
  EXPECT_EQ(log_of_a_step({.placing = {.device = card}}, "tiny_mlp").finished.size(), 2u * 2u);
  const CardLog ahead =
      log_of_a_step({.placing = {.device = card}, .time_actions = false}, "tiny_mlp");
  EXPECT_EQ(ahead.finished.size(), 0u);
  EXPECT_EQ(ahead.reads, 0u);
  EXPECT_GT(ahead.kernels, 0u);
}

// Clipping needs the norm of all gradients, which a rank reads once, however many parameters it
// has.
TEST(Step, ReadsTheNormOfItsGradientsOnce) {
  RankOptions options{.placing = {.device = fake_card()}, .time_actions = false};
  options.optimizer.clip_norm = 1e-3;
  for (const char* name : {"tiny_mlp", "tiny_gpt"})
    EXPECT_EQ(log_of_a_step(options, name).reads, 2u) << name;
}

// Memory that is not page-locked makes the host wait until it has been read.
TEST(Inputs, GoToTheDeviceByWayOfPageLockedMemory) {
  const at::Device card = fake_card();
  const at::Tensor numbers = at::arange(5, at::kLong);
  take_card_log();
  numbers.to(card);
  EXPECT_EQ(take_card_log().awaited_copies, 1u);
  const at::Tensor there = copied_ahead(numbers, card, at::kDouble);
  EXPECT_EQ(take_card_log().awaited_copies, 0u);
  EXPECT_EQ(there.device(), card);
  EXPECT_TRUE(at::equal(there.cpu(), numbers.to(at::kDouble)));
  const Model model("tiny_mlp");
  const auto inputs = synthetic_inputs(model.graph, 1, MicrobatchId{0}, {.device = card});
  EXPECT_EQ(take_card_log().awaited_copies, 0u);
  for (const auto& [id, tensor] : inputs) EXPECT_EQ(tensor.device(), card);
}

}  // namespace
}  // namespace pfeife
