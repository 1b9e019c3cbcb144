// Tensors in every form that LibTorch describes without moving memory, and what they hold, read
// element by element: from sizes, strides and the two bits, with no operator of LibTorch's.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/basics/error.h"
#include "runtime/device/aten.h"

namespace pfeife::testing {

struct TensorForm {
  std::string name;
  at::Tensor tensor;
};

/// All types of elements but those of quantised tensors, which have more than elements.
inline std::vector<at::ScalarType> element_types() {
  std::vector<at::ScalarType> types;
  for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); ++i)
    if (const auto type = static_cast<at::ScalarType>(i);
        type != at::ScalarType::Undefined && !at::isQIntType(type))
      types.push_back(type);
  return types;
}

/// With bytes that are no NaN, nor anything else that arithmetic would change.
inline at::Tensor numbered(at::IntArrayRef sizes, at::ScalarType type,
                           at::Device device = at::kCPU) {
  const at::Tensor tensor = at::empty(sizes, type);
  auto* at = static_cast<unsigned char*>(tensor.mutable_data_ptr());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i)
    at[i] = static_cast<unsigned char>(type == at::kBool ? i % 2 : (7 * i + 1) % 60);
  return tensor.to(device);
}

inline std::vector<TensorForm> forms_of(at::ScalarType type, at::Device device = at::kCPU) {
  const auto numbered = [&](at::IntArrayRef sizes) {
    return testing::numbered(sizes, type, device);
  };
  const at::Tensor table = numbered({4, 6}), line = numbered({8});
  std::vector<TensorForm> forms{{"row-major", table},
                                {"transposed", table.t()},
                                {"permuted", numbered({2, 3, 4}).permute({2, 0, 1})},
                                {"part of a row", line.narrow(0, 2, 3)},
                                {"every second column", table.slice(0, 1, 3).slice(1, 0, 6, 2)},
                                {"expanded", numbered({1, 6}).expand({4, 6})},
                                {"expanded from a number", numbered({}).expand({2, 3})},
                                {"overlapping", line.as_strided({3, 4}, {2, 1}, 0)},
                                {"zero-dimensional", numbered({})},
                                {"zero-dimensional in a larger one", line.select(0, 3)},
                                {"empty", numbered({0, 3})},
                                {"empty part", table.narrow(1, 2, 0)}};
  const bool floats = type == at::kHalf || type == at::kBFloat16 || type == at::kFloat ||
                      type == at::kDouble || at::isComplexType(type);
  const auto add = [&](const std::string& prefix, at::Tensor (*view)(const at::Tensor&)) {
    for (std::size_t i = 0; i < 12; ++i)
      forms.push_back({prefix + forms[i].name, view(forms[i].tensor)});
  };
  if (floats) add("negated ", [](const at::Tensor& t) { return at::_neg_view(t); });
  if (!at::isComplexType(type)) return forms;
  add("conjugated ", [](const at::Tensor& t) { return t.conj(); });
  add("imaginary part of the conjugated ", [](const at::Tensor& t) { return at::imag(t.conj()); });
  if (type != at::kComplexHalf)  // for which LibTorch has no kernel
    add("conjugated negated ", [](const at::Tensor& t) { return at::_neg_view(t.conj()); });
  return forms;
}

/// The bytes of its elements, row-major. Of a device whose memory is the host's.
inline std::string elements_of(const at::Tensor& tensor) {
  const auto* storage = static_cast<const char*>(tensor.storage().data());
  const std::size_t width = tensor.itemsize(), part = tensor.is_complex() ? width / 2 : width;
  std::string all;
  for (std::int64_t element = 0; element < tensor.numel(); ++element) {
    std::int64_t place = tensor.storage_offset(), rest = element;
    for (std::int64_t d = tensor.dim(); d-- > 0;) {
      place += rest % tensor.size(d) * tensor.stride(d);
      rest /= tensor.size(d);
    }
    std::string bytes(storage + static_cast<std::size_t>(place) * width, width);
    const auto negate = [&](std::size_t end) {  // IEEE 754: the sign is the highest bit
      bytes[end - 1] = static_cast<char>(bytes[end - 1] ^ 0x80);
    };
    if (tensor.is_neg()) negate(part);
    if (tensor.is_complex() && tensor.is_neg() != tensor.is_conj()) negate(width);
    all += bytes;
  }
  return all;
}

/// "" if `received` holds what `sent` describes, in as many elements of the same type.
inline std::string difference_in(const TensorForm& sent, const at::Tensor& received) {
  const std::string name = stream_all(sent.tensor.scalar_type(), ", ", sent.name, ": ");
  if (!received.defined()) return name + "undefined";
  if (received.scalar_type() != sent.tensor.scalar_type()) return name + "of another type";
  if (received.sizes() != sent.tensor.sizes()) return name + "of another shape";
  return elements_of(received) == elements_of(sent.tensor) ? "" : name + "other values";
}

}  // namespace pfeife::testing
