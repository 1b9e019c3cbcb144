// Pipelined training gives the loss and the gradients of the unsplit model: every family at every
// accepted point of D in {1, 2, 3, 4}, N in {1, 2, 3, 8}, V in {1, 2, 3}, ranks as threads.
//
// Tolerance in float64: |g - g0| <= 1e-12 |g0| for each tensor. Pipelines add the same
// microbatches' gradients in another order; N <= 8 additions and a reduction over ranks cost a few
// units of 1.1e-16.
#include <gtest/gtest.h>

#include "tests/runtime/same.h"

namespace pfeife {
namespace {

using namespace testing;

class Equivalence : public ::testing::TestWithParam<std::string> {};

TEST_P(Equivalence, EveryFamilyGivesTheGradientsOfTheUnsplitModel) {
  const Model model(GetParam());
  std::map<std::size_t, Outcome> whole;
  for (const std::size_t n : {1, 2, 3, 8}) whole[n] = run(model.unsplit(n), model.source);
  const auto points = accepted_points({1, 2, 3, 4}, {1, 2, 3, 8}, {1, 2, 3});
  for (const ScheduleSpec& spec : points) {
    const Pipeline pipeline = model.pipeline(spec);
    expect_same(pipeline, run(pipeline, model.source), whole.at(spec.microbatches), 1e-12,
                name_of(spec));
  }
  EXPECT_GT(points.size(), 150u);
  RecordProperty("points", static_cast<int>(points.size()));
}

// Momentum keeps relative differences as they are. Adam divides by sqrt(v) + 1e-8: where the true
// gradient is zero (a bias before batch norm, the bias of attention's keys), g is rounding of a sum
// over samples and positions, 1e-17 to 1e-15, its quotient up to 1e-7, and ten updates of 1e-3
// times that are up to 1e-9 beside parameters of norm 1.
TEST_P(Equivalence, TenStepsOfTrainingStayAsClose) {
  const Model model(GetParam());
  const auto points = accepted_points({2, 4}, {3}, {1, 2, 3});
  for (const Optimizer optimizer : {Optimizer::Momentum, Optimizer::AdamW}) {
    RunOptions options{.steps = 10};
    options.rank.update = true;
    options.rank.optimizer.kind = optimizer;
    const double tolerance = optimizer == Optimizer::Momentum ? 1e-12 : 1e-9;
    const Outcome whole = run(model.unsplit(3), model.source, options);
    for (const ScheduleSpec& spec : points) {
      const Outcome split = run(model.pipeline(spec), model.source, options);
      EXPECT_LE(largest_difference(split.parameters, whole.parameters), tolerance) << name_of(spec);
      EXPECT_LE(largest_difference(split.buffers, whole.buffers), tolerance) << name_of(spec);
      EXPECT_EQ(split.replica_difference, 0) << name_of(spec);
    }
    const Outcome before = run(model.unsplit(3), model.source);
    EXPECT_GT(largest_difference(whole.parameters, before.parameters), 1e-3)
        << "nothing was updated";
  }
}

// float32 (u = 6e-8), against the unsplit model in float32: the microbatches' gradients are added
// in another order (N - 1 roundings each way), and so are the parts of a parameter that several
// stages use, the gradients that several readers of a value send back, and the rows of a product
// that W computes by itself. For each of these sums the error is at most (terms - 1) u times the
// sum of the terms' norms. With G = the sum over microbatches of |g_m|, N + 12 terms
// (microbatches; 12 uses of a tied weight), and what comes from above in the backward with its own
// error of the same kind, 2 * 2 * (N + 12) * u * G bounds them all. Roundings have random signs:
// sums of twenty terms leave a quarter of that, which is what is allowed here.
//
// A bias in front of a batch norm has gradient zero: sums over positions that cancel, of which
// rounding is all that is left. Its terms are those that its layer's weight sums, times inputs of
// about 1, so the weight's norm stands for theirs where it is larger.
TEST_P(Equivalence, Float32DiffersByRoundingOnly) {
  constexpr double kRounding = 6.0e-8;
  const Model model(GetParam());
  RunOptions options;
  options.rank.placing.double_precision = false;
  std::map<std::size_t, Outcome> whole;
  std::map<std::size_t, std::map<ParameterId, double>> terms;
  for (const std::size_t n : {1, 2, 3, 8}) {
    whole[n] = run(model.unsplit(n), model.source, options);
    terms[n] = norms_of_microbatches(model, n, options);
  }
  std::map<std::string, ParameterId> named;
  for (const auto& [p, norm] : terms.at(1))
    named.emplace(model.graph.parameters[p.index()].names.front(), p);
  for (auto& [n, norms] : terms)
    for (auto& [p, norm] : norms) {
      const std::string& name = model.graph.parameters[p.index()].names.front();
      if (!name.ends_with(".bias")) continue;
      const auto weight = named.find(name.substr(0, name.size() - 4) + "weight");
      if (weight != named.end()) norm = std::max(norm, norms.at(weight->second));
    }
  for (const ScheduleSpec& spec : accepted_points({1, 2, 3, 4}, {1, 2, 3, 8}, {1, 2, 3})) {
    const Outcome split = run(model.pipeline(spec), model.source, options);
    const double n = static_cast<double>(spec.microbatches);
    for (const auto& [p, expected] : whole.at(spec.microbatches).gradients) {
      const double part = distance(split.gradients.at(p), expected) /
                          ((n + 12) * kRounding * terms.at(spec.microbatches).at(p));
      EXPECT_LE(part, 1) << name_of(spec) << " " << model.graph.parameters[p.index()].names.front();
    }
    EXPECT_EQ(split.replica_difference, 0) << name_of(spec);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Equivalence, ::testing::ValuesIn(tiny_models()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace pfeife
