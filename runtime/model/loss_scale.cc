#include <cmath>
#include <map>

#include "runtime/model/loss.h"

namespace pfeife {

void LossScale::update(bool finite) {
  if (!finite) {
    scale_ = static_cast<float>(static_cast<double>(scale_) * options_.backoff);
    good_steps_ = 0;
  } else if (++good_steps_ == options_.growth_interval) {
    const auto larger = static_cast<float>(static_cast<double>(scale_) * options_.growth);
    if (std::isfinite(larger)) scale_ = larger;
    good_steps_ = 0;
  }
}

at::Tensor unscale(std::span<const at::Tensor> gradients, float inverse) {
  const at::NoGradGuard no_gradients;
  std::map<at::ScalarType, std::vector<at::Tensor>> by_type;
  for (const at::Tensor& gradient : gradients) by_type[gradient.scalar_type()].push_back(gradient);
  at::Tensor found = at::zeros({1}, at::kFloat);
  for (auto& [type, of_type] : by_type) {
    const auto here = of_type.front().options().dtype(at::kFloat);
    found = found.to(here.device());
    at::_amp_foreach_non_finite_check_and_unscale_(of_type, found, at::full({}, inverse, here));
  }
  return found;
}

}  // namespace pfeife
