#include "runtime/transport/stream_handover.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace pfeife {
namespace {

bool is_on_device(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.device().is_cpu();
}

}  // namespace

StreamHandover::StreamHandover(const Tensors& tensors) {
  const auto found = std::ranges::find_if(tensors, is_on_device);
  if (found == tensors.end()) return;
  const c10::impl::VirtualGuardImpl guard(found->device().type());
  ready_.emplace(found->device().type());
  ready_->record(guard.getStream(found->device()));
}

Tensors StreamHandover::receive(Tensors tensors) const {
  if (!ready_) return tensors;
  const c10::impl::VirtualGuardImpl guard(ready_->device_type());
  const c10::Stream stream = guard.getStream(ready_->device());
  ready_->block(stream);
  for (at::Tensor& tensor : tensors) {
    if (!is_on_device(tensor)) continue;
    const at::Tensor theirs = std::exchange(tensor, tensor.clone());
    // Else its memory could be given to others while the copy is still to come.
    guard.recordDataPtrOnStream(theirs.storage().data_ptr(), stream);
  }
  return tensors;
}

}  // namespace pfeife
