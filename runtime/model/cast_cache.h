// Autocast, with casts of parameters that belong to one stage.
//
// LibTorch keeps them in one map for the process, and whoever ends a forward empties it: with ranks
// as threads, how often a parameter is cast, and so the last bits of its gradient, would be by
// chance. So that map is not used. As in torch, a cast is made once a microbatch's forward and
// dropped with it: it is never older than its parameter. Not here: casts inside an operator that
// autocast has no kernel for (lstm); they are made each time.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "runtime/device/aten.h"

namespace pfeife {

/// Autocast on `device` makes the operator read all its tensors in the narrow type, as far as this
/// can be told by LibTorch's list for all devices.
bool reads_narrow(const c10::OperatorHandle& op, at::DeviceType device);

class CastCache {
 public:
  /// `to` nothing: no autocast.
  CastCache(std::optional<at::ScalarType> to, at::DeviceType device) : to_(to), device_(device) {}

  /// For the time of a forward, on this thread: operators run under autocast, narrow() keeps what
  /// it casts.
  class Forward {
   public:
    explicit Forward(CastCache& casts);
    ~Forward();
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;

   private:
    CastCache& casts_;
    bool was_on_ = false, used_cache_ = false;
    at::ScalarType was_to_ = at::kFloat;
  };

  /// What autocast makes of the parameter for an operator that reads_narrow(): the same tensor each
  /// time, with history where history is recorded.
  at::Tensor narrow(const at::Tensor& parameter);

  std::size_t kept() const { return kept_.size(); }

 private:
  std::optional<at::ScalarType> to_;
  at::DeviceType device_;
  std::map<std::pair<const at::TensorImpl*, bool>, at::Tensor> kept_;  ///< (of, with history)
};

}  // namespace pfeife
