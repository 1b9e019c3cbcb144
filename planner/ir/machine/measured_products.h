// Times of matrix products and of fused attention as measured on a device, by their shapes.
//   products.find("bf16", {.pass = ProductPass::Weight, .groups = 1, .m = 4096, .n = 1024, .k =
//   8192})
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pfeife {

enum class ProductOperator {
  Product,          ///< `groups` products of [m, k] by [k, n] in one kernel
  Attention,        ///< fused: `groups` heads x samples, m queries, n keys, k the mean head size
  CausalAttention,  ///< likewise, half of the scores hidden by a mask
};
/// "product", "attention", "causal_attention".
std::string to_string(ProductOperator op);

/// Which of a linear layer's products y = x W^T; backward of attention is Input.
enum class ProductPass {
  Any,        ///< of a measured row: the pass makes no difference
  Forward,    ///< m tokens, n outputs, k inputs
  Input,      ///< gradient of x: m tokens, n inputs, k outputs
  Weight,     ///< gradient of W: m outputs, n inputs, k tokens
  WeightSum,  ///< likewise, and the kernel adds it to the sum over microbatches
};
/// "forward", "input", "weight", "weight_sum"; of Any "".
std::string to_string(ProductPass pass);

struct ProductShape {
  ProductOperator op = ProductOperator::Product;
  ProductPass pass = ProductPass::Any;
  std::int64_t groups = 0;  ///< 0 = no product
  std::int64_t m = 0, n = 0, k = 0;
  std::array<std::int64_t, 3> sides() const { return {m, n, k}; }
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

struct MeasuredProduct {
  std::string precision;  ///< as in DeviceKind::peak
  ProductShape shape;
  double seconds = 0;
  friend bool operator==(const MeasuredProduct&, const MeasuredProduct&) = default;
};

/// Where the time of a product comes from.
enum class ProductSource { Measured, Interpolated, Curve };

struct ProductTime {
  double seconds = 0;
  ProductSource source = ProductSource::Measured;
};

struct MeasuredProducts {
  std::string file;  ///< an absolute path; "" = there are none
  std::vector<MeasuredProduct> rows;

  /// The time of the row with this precision, operator, groups and shape: of the pass, else of
  /// Any. Without such a row, interpolated: of a row that differs in one side by at most 1 %, in
  /// proportion; else between the nearest shapes below and above that are at most four times apart,
  /// log(time) linear in log(side), along the one side in which both differ from `shape`, else
  /// between all corners of the box around it. Nothing if there are no such rows. Linear in the
  /// rows.
  std::optional<ProductTime> find(const std::string& precision, const ProductShape& shape) const;
  friend bool operator==(const MeasuredProducts&, const MeasuredProducts&) = default;
};

/// A shape that a model needs, and how often.
struct ProductUse {
  std::string precision;
  ProductShape shape;
  std::int64_t times = 1;  ///< for one microbatch
  ProductSource source = ProductSource::Curve;
};

/// "of a microbatch's 84 products 80 as measured, 4 interpolated between measured ones".
std::string coverage_text(const std::vector<ProductUse>& uses);

}  // namespace pfeife
