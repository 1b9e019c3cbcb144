// Any schedule that the judge accepts runs and gives the gradients of the unsplit model; any other
// is refused before a rank starts. Random cuts, placements (several stages a rank, in any order),
// orders, split backwards, overlaps, transfers; one program in four has two cells exchanged.
#include <gtest/gtest.h>

#include <random>

#include "planner/ir/basics/error.h"
#include "tests/runtime/same.h"
#include "tests/support/random_program.h"

namespace pfeife {
namespace {

using namespace testing;

std::vector<NodeId> random_cuts(const Model& model, std::mt19937_64& random) {
  std::vector<NodeId> cuts;
  std::ranges::sample(model.legal, std::back_inserter(cuts),
                      static_cast<std::ptrdiff_t>(random() % 7), random);
  return cuts;
}

class RandomSchedule : public ::testing::TestWithParam<std::string> {};

TEST_P(RandomSchedule, IsRefusedBeforeItStartsOrGivesTheGradientsOfTheUnsplitModel) {
  constexpr int kAccepted = 60;  // of each of five models
  const Model model(GetParam());
  const auto effects = effects_of(model.graph);
  std::map<std::size_t, Outcome> whole;
  for (const std::size_t n : {1, 2, 3, 4}) whole[n] = run(model.unsplit(n), model.source);
  int accepted = 0, refused = 0;
  for (std::uint64_t seed = 0; accepted < kAccepted && seed < 3 * kAccepted; ++seed) {
    std::mt19937_64 random(seed);
    const auto cuts = random_cuts(model, random);
    const std::size_t count = cuts.size() + 1;
    const StageGraph stages = stage_graph(model.graph, split_graph(model.graph, effects, cuts),
                                          round_robin(count, count));
    const RandomProgram program = random_program_for(stages, seed);
    std::optional<Pipeline> pipeline;
    try {
      pipeline = make_pipeline(model.graph, cuts, program.schedule, program.placement);
    } catch (const ConfigError&) {
      ++refused;
      continue;
    }
    Outcome split = run(*pipeline, model.source);
    // Running statistics weigh later microbatches more: they follow the order of the forwards,
    // which is random here and ascending in every family.
    split.buffers = whole.at(pipeline->microbatches).buffers;
    expect_same(*pipeline, split, whole.at(pipeline->microbatches), 1e-12,
                "seed " + std::to_string(seed));
    ++accepted;
  }
  EXPECT_EQ(accepted, kAccepted);
  EXPECT_GE(refused, 5);
  RecordProperty("refused", refused);
}

INSTANTIATE_TEST_SUITE_P(Models, RandomSchedule, ::testing::ValuesIn(tiny_models()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace pfeife
