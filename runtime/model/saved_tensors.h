// Told of every tensor that autograd keeps for backward.
#pragma once

#include <functional>

#include "runtime/device/aten.h"

namespace pfeife {

/// While it lives, `note` is called for every tensor that this thread's forward saves: parameters,
/// buffers and inputs as well, a tensor as often as it is saved. It is given the tensor that
/// autograd holds in the place of the saved one: over the same storage, without history, and gone
/// when autograd lets go of it.
class SavedTensorNotes {
 public:
  explicit SavedTensorNotes(std::function<void(const at::Tensor& held)> note);
  ~SavedTensorNotes();
  SavedTensorNotes(const SavedTensorNotes&) = delete;
  SavedTensorNotes& operator=(const SavedTensorNotes&) = delete;

 private:
  std::function<void(const at::Tensor&)> note_;
};

}  // namespace pfeife
