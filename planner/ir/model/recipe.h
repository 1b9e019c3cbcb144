// Formats below 16 bits in which products of linear layers run, and what training keeps in each.
//   find_recipe(Format::MxFp8)->weight_bytes  // 2.0625
//
// One table (recipe.cc), a row a format, each with its source. In a format run the products of
// linear layers and of experts, forward and both backward. In 16 bits stay embedding, head, router,
// norms, attention, what collectives and messages move, and gradients between layers; optimizer
// states, and gradients as they are reduced, are those of a 16-bit run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pfeife {

enum class Format {
  Wide,      ///< none: all products in 16 bits
  Fp8,       ///< a scale a tensor (current scaling)
  Fp8Block,  ///< a scale for 128 elements, of weights for 128 x 128
  MxFp8,     ///< a scale for 32 elements
  NvFp4,     ///< a scale for 16 elements, and one a tensor
};
/// "fp8", "fp8_block", "mxfp8", "nvfp4"; of Wide "wide".
std::string to_string(Format format);

struct Recipe {
  Format format = Format::Wide;
  std::vector<std::string> peaks;   ///< keys of DeviceKind::peak that are its own, first wins
  std::vector<std::string> curves;  ///< of DeviceKind::gemm_efficiency, whose times hold a cast
  double element_bytes = 1;         ///< of a cast element, its part of the scales included
  double weight_bytes = 2;       ///< held of a weight: casts in two layouts, a 16-bit one if kept
  double amax_bytes = 0;         ///< read of an operand before it is cast, for its scale
  std::int64_t wide_layers = 0;  ///< at each end of the model, in 16 bits
  std::string source;
};

/// nullptr for Wide.
const Recipe* find_recipe(Format format);
std::span<const Recipe> known_recipes();

}  // namespace pfeife
