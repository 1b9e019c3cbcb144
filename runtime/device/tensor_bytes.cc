#include "runtime/device/tensor_bytes.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

bool holds_each_element_once(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() || tensor.numel() == 0;
}

/// Copies know no conj and no neg bit, and some types of few bits have none: as integers of the
/// same width they do.
at::Tensor densely_copied(const at::Tensor& plain) {
  if (plain.is_complex()) return plain.contiguous();
  constexpr at::ScalarType kIntegers[] = {at::kByte, at::kShort, at::kInt, at::kLong};
  for (const at::ScalarType integer : kIntegers)
    if (c10::elementSize(integer) == plain.itemsize())
      return plain.view(integer).contiguous().view(plain.scalar_type());
  return plain.contiguous();
}

}  // namespace

at::Tensor as_stored(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const at::Tensor plain = tensor.detach().resolve_conj().resolve_neg();
  return holds_each_element_once(plain) ? plain : densely_copied(plain);
}

std::span<const char> stored_bytes(const at::Tensor& stored) {
  PFEIFE_CHECK(!stored.is_conj() && !stored.is_neg() && holds_each_element_once(stored),
               "a tensor whose memory is not its values");
  return {static_cast<const char*>(stored.const_data_ptr()), stored.nbytes()};
}

at::Tensor tensor_of_text(std::string_view text) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::ranges::copy(text, static_cast<char*>(bytes.mutable_data_ptr()));
  return bytes;
}

std::string text_of(const at::Tensor& bytes) {
  const std::span<const char> text = stored_bytes(bytes);
  return {text.begin(), text.end()};
}

}  // namespace pfeife
