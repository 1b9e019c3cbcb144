// Headers of safetensors files, written here by hand: what does not describe the file is refused.
#include "planner/io/tensors/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

/// What reading a file with this header and `bytes` bytes of tensors says; "" = accepted.
std::string weights_refusal(const std::string& json, std::size_t bytes) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / ("safetensors_" + std::to_string(getpid()));
  std::ofstream out(file, std::ios::binary);
  for (std::size_t i = 0; i < 8; ++i) out << static_cast<char>(json.size() >> (8 * i) & 0xff);
  out << json << std::string(bytes, '\0');
  out.close();
  std::string reason;
  try {
    read_safetensors_header(file);
  } catch (const ConfigError& error) {
    reason = error.what();
  }
  std::filesystem::remove(file);
  return reason;
}

/// Two tensors of two float32 each.
std::string two(const char* first, const char* second) {
  return std::string(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": )") + first +
         R"(}, "b": {"dtype": "F32", "shape": [2, 1], "data_offsets": )" + second + "}}";
}

TEST(Safetensors, TensorsMustFillTheFileWithoutGapsAndOverlaps) {
  EXPECT_EQ(weights_refusal(two("[0, 8]", "[8, 16]"), 16), "");
  EXPECT_EQ(weights_refusal(two("[8, 16]", "[0, 8]"), 16), "");
  EXPECT_MESSAGE(weights_refusal(two("[0, 8]", "[4, 12]"), 16));
  EXPECT_MESSAGE(weights_refusal(two("[0, 8]", "[0, 8]"), 16));
  EXPECT_MESSAGE(weights_refusal(two("[0, 8]", "[12, 20]"), 20));
  EXPECT_MESSAGE(weights_refusal(two("[0, 8]", "[8, 12]"), 12));
  EXPECT_MESSAGE(weights_refusal(two("[0, 8]", "[8, 16]"), 15));
  EXPECT_MESSAGE(weights_refusal(two("[0, 8]", "[8, 16]"), 17));
}

}  // namespace
}  // namespace pfeife
