// Tensors as bytes: what a message, a checkpoint or a digest holds of one.
//
// LibTorch describes more than memory holds: conj() and the imaginary part of it only set a bit,
// views lie in a larger storage, and expanded ones have elements in common. Whoever reads or sends
// memory gets it here, so that nothing of the description is lost.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/device/aten.h"

namespace pfeife {

/// The same values, without history, on the same device, in memory that holds each element once and
/// as it is. Strides are kept where the elements lie densely (kernels then do the same work), else
/// they are row-major. A copy only where that changes something. Undefined tensors stay so.
at::Tensor as_stored(const at::Tensor& tensor);

/// The memory of a tensor that is as_stored(), which must outlive it.
std::span<const char> stored_bytes(const at::Tensor& stored);

/// A text as a message, and back.
at::Tensor tensor_of_text(std::string_view text);
std::string text_of(const at::Tensor& bytes);

}  // namespace pfeife
