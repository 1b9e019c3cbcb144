#include "runtime/model/loss_scale.h"

#include <cmath>

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

}  // namespace pfeife
