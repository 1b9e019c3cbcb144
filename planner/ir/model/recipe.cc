#include "planner/ir/model/recipe.h"

#include <algorithm>

namespace pfeife {
namespace {

constexpr double kSixteenBits = 2;             // bytes of a 16-bit element
constexpr double kBlockOf128 = 1 + 4.0 / 128;  // an fp32 scale for 128 elements
constexpr double kBlockOf32 = 1 + 1.0 / 32;    // an E8M0 scale for 32
constexpr double kBlockOf16 = 0.5 + 1.0 / 16;  // an E4M3 scale for 16

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> table = {
      {Format::Fp8,
       {"fp8"},
       {"fp8"},
       1,
       2,
       kSixteenBits,
       1,
       "Transformer Engine Float8CurrentScaling; Megatron-Bridge "
       "bf16_with_fp8_current_scaling_mixed: weights held in fp8 alone, first and last layer bf16"},
      {Format::Fp8Block,
       {"fp8_block", "fp8"},
       {"fp8_block", "fp8"},
       kBlockOf128,
       kSixteenBits + 2 * (1 + 4.0 / (128 * 128)),
       0,
       0,
       "Transformer Engine Float8BlockScaling; Megatron-Bridge "
       "bf16_with_fp8_subchannel_scaling_mixed: 16-bit weights beside casts; DeepSeek-V3, arXiv "
       "2412.19437, sec. 3.3"},
      {Format::MxFp8,
       {"mxfp8"},
       {"mxfp8", "fp8_block"},
       kBlockOf32,
       2 * kBlockOf32,
       0,
       0,
       "Transformer Engine MXFP8BlockScaling; Megatron-Bridge bf16_with_mxfp8_mixed: weights held "
       "in mxfp8 alone, in two layouts"},
      {Format::NvFp4,
       {"nvfp4"},
       {"nvfp4"},
       kBlockOf16,
       kSixteenBits + 2 * kBlockOf16,
       kSixteenBits,
       0,
       "Transformer Engine NVFP4BlockScaling; Megatron-Bridge refuses fp4 parameters: 16-bit "
       "weights beside casts"},
  };
  return table;
}

}  // namespace

std::string to_string(Format format) {
  switch (format) {
    case Format::Wide:
      return "wide";
    case Format::Fp8:
      return "fp8";
    case Format::Fp8Block:
      return "fp8_block";
    case Format::MxFp8:
      return "mxfp8";
    case Format::NvFp4:
      return "nvfp4";
  }
  return "";
}

std::span<const Recipe> known_recipes() { return recipes(); }

const Recipe* find_recipe(Format format) {
  const auto found = std::ranges::find(recipes(), format, &Recipe::format);
  return found == recipes().end() ? nullptr : &*found;
}

}  // namespace pfeife
