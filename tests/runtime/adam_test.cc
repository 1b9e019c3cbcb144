// The update of Adam and AdamW against Kingma & Ba's formulas, computed here in plain doubles.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/model/optimizer.h"

namespace pfeife {
namespace {

struct Moments {
  double first = 0, second = 0;
};

/// torch.optim's step t: theta after the gradient g.
double adam(double theta, double g, Moments& moments, int t, const OptimizerOptions& o) {
  if (o.kind == Optimizer::AdamW)
    theta -= o.learning_rate * o.weight_decay * theta;
  else
    g += o.weight_decay * theta;
  moments.first = o.beta1 * moments.first + (1 - o.beta1) * g;
  moments.second = o.beta2 * moments.second + (1 - o.beta2) * g * g;
  const double first = moments.first / (1 - std::pow(o.beta1, t)),
               second = moments.second / (1 - std::pow(o.beta2, t));
  return theta - o.learning_rate * first / (std::sqrt(second) + o.epsilon);
}

class AdamUpdate : public ::testing::TestWithParam<Optimizer::Kind> {};

TEST_P(AdamUpdate, HasTheBetasEpsilonAndWeightDecayThatAreGiven) {
  const OptimizerOptions options{.kind = GetParam(),
                                 .learning_rate = 0.1,
                                 .beta1 = 0.8,
                                 .beta2 = 0.95,
                                 .epsilon = 0.25,
                                 .weight_decay = 0.3};
  RankTensors tensors;
  at::Tensor theta = at::scalar_tensor(2.0, at::kDouble).view({1});
  tensors.parameters[ParameterId{0}] = theta.requires_grad_();
  OptimizerState state;
  double expected = 2;
  Moments moments;
  for (int t = 1; t <= 4; ++t) {
    const double gradient = 1.5 / t - 1;
    theta.mutable_grad() = at::full({1}, gradient, at::kDouble);
    update(tensors, std::vector<ParameterRange>{{ParameterId{0}, 0, 1}}, state, options, t);
    expected = adam(expected, gradient, moments, t, options);
    EXPECT_NEAR(theta.item<double>(), expected, 1e-14) << "step " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AdamUpdate, ::testing::Values(Optimizer::Adam, Optimizer::AdamW));

}  // namespace
}  // namespace pfeife
