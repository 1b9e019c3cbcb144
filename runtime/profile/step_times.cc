#include "runtime/profile/step_times.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "planner/ir/basics/error.h"
#include "runtime/profile/statistics.h"

namespace pfeife {
namespace {

double count_of(Nanoseconds time) { return static_cast<double>(time.count()); }

/// The p-quantile, linear between order statistics.
double quantile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

constexpr double kNormal95 = 1.6448536;  // 95 % of a normal variate lie below so many deviations

/// The deviation of the normal variate with the same 5th and 95th percentile.
double deviation(std::vector<double> values) {
  std::ranges::sort(values);
  return (quantile(values, 0.95) - quantile(values, 0.05)) / (2 * kNormal95);
}

/// The factors of the steps of one round each.
using Rounds = std::vector<std::vector<double>>;

/// What factors of steps deviate by from their round's median; 0 where each round is one step.
double within(const Rounds& rounds) {
  std::vector<double> residuals;
  for (const std::vector<double>& round : rounds) {
    const double middle = quantile(round, 0.5);
    for (const double factor : round) residuals.push_back(factor - middle);
  }
  const std::size_t freedom = residuals.size() - rounds.size();
  if (freedom == 0) return 0;
  const auto all = static_cast<double>(residuals.size());
  return deviation(std::move(residuals)) * std::sqrt(all / static_cast<double>(freedom));
}

/// The deviation of the next round's median from these, `noise` of whose variance is that of steps
/// within a round.
double between(const Rounds& rounds, double noise) {
  const auto count = static_cast<double>(rounds.size());
  if (rounds.size() < 2) return 0;
  double sum = 0, squares = 0;
  for (const std::vector<double>& round : rounds) sum += quantile(round, 0.5);
  for (const std::vector<double>& round : rounds)
    squares += std::pow(quantile(round, 0.5) - sum / count, 2);
  const double known = boost::math::quantile(boost::math::students_t(count - 1), 0.95);
  return std::sqrt(std::max(0.0, squares / (count - 1) - noise) * (1 + 1 / count)) * known /
         kNormal95;
}

}  // namespace

Nanoseconds StepTimes::typical(std::size_t kind) const {
  std::vector<Nanoseconds> means;
  for (const auto& step : steps_) {
    Nanoseconds sum{0};
    std::int64_t count = 0;
    for (const Pass& pass : step)
      if (pass.kind == kind) sum += pass.time, ++count;
    if (count > 0) means.push_back(sum / count);
  }
  return median(std::move(means));
}

void StepTimes::append(const StepTimes& other) {
  for (const std::size_t first : other.rounds_) rounds_.push_back(steps_.size() + first);
  steps_.insert(steps_.end(), other.steps_.begin(), other.steps_.end());
}

std::vector<double> StepTimes::means() const {
  std::vector<double> sums;
  std::vector<std::size_t> counts;
  for (const auto& step : steps_)
    for (const Pass& pass : step) {
      sums.resize(std::max(sums.size(), pass.kind + 1));
      counts.resize(sums.size());
      sums[pass.kind] += count_of(pass.time);
      ++counts[pass.kind];
    }
  for (std::size_t k = 0; k < sums.size(); ++k)
    if (counts[k] > 0) sums[k] /= static_cast<double>(counts[k]);
  return sums;
}

MeasuredVariation StepTimes::found() const {
  PFEIFE_CHECK(steps_.size() >= 2, "variation of ", steps_.size(), " steps");
  const std::vector<double> mean = means();
  Rounds rounds;
  std::vector<double> residuals;
  double freedom = 0;  // of the residuals, a share of one each
  double left = 0;     // of cv^2 in the variance of a factor, sum over steps
  double steps = 0;
  auto next = rounds_.begin();
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (next != rounds_.end() && s == *next) rounds.emplace_back(), ++next;
    double sum = 0, expected = 0, squares = 0;
    for (const Pass& pass : steps_[s]) {
      sum += count_of(pass.time);
      expected += mean[pass.kind];
      squares += mean[pass.kind] * mean[pass.kind];
    }
    if (expected <= 0) continue;
    const double factor = sum / expected;
    rounds.back().push_back(factor);
    for (const Pass& pass : steps_[s])
      residuals.push_back(count_of(pass.time) / mean[pass.kind] - factor);
    const double share = squares / (expected * expected);
    left += share;
    ++steps;
    // Sum over passes i with shares w_i of the variance of e_i - sum w_j e_j, in units of cv^2.
    freedom += static_cast<double>(steps_[s].size()) * (1 + share) - 2;
  }
  std::erase_if(rounds, [](const std::vector<double>& round) { return round.empty(); });
  for (std::vector<double>& round : rounds) std::ranges::sort(round);
  if (steps < 2 || freedom <= 0) return {};
  const double cv =
      deviation(residuals) * std::sqrt(static_cast<double>(residuals.size()) / freedom);
  const double passes = cv * cv * left / steps;  // the variance that they leave of a factor
  const double inner = within(rounds);
  const double outer =
      between(rounds, std::max(inner * inner, passes) * static_cast<double>(rounds.size()) / steps);
  return {std::min(cv, 1.0),
          std::min(std::sqrt(std::max(0.0, inner * inner - passes) + outer * outer), 1.0)};
}

}  // namespace pfeife
