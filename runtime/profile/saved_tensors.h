// Told of every tensor that autograd keeps for backward.
#pragma once

#include <functional>

#include "runtime/device/aten.h"

namespace pfeife {

/// While it lives, `note` is called for every tensor that this thread's forward saves: parameters,
/// buffers and inputs as well, a tensor as often as it is saved. Not for stages that split their
/// backward: there, gradients are added to the saved parameter, which is a copy while this lives.
class SavedTensorNotes {
 public:
  explicit SavedTensorNotes(std::function<void(const at::Tensor&)> note);
  ~SavedTensorNotes();
  SavedTensorNotes(const SavedTensorNotes&) = delete;
  SavedTensorNotes& operator=(const SavedTensorNotes&) = delete;

 private:
  std::function<void(const at::Tensor&)> note_;
};

}  // namespace pfeife
