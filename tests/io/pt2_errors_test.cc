// What read_pt2 says to archives that are damaged or hold what it does not understand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"
#include "tests/support/zip_bytes.h"

namespace pfeife {
namespace {

constexpr const char* kProgram = "tiny_mlp/models/model.json";
constexpr const char* kWeights = "tiny_mlp/data/weights/model_weights_config.json";

ZipEntries tiny_mlp() { return unzipped(PFEIFE_SOURCE_DIR "/configs/models/tiny_mlp.pt2"); }

/// The message of the ConfigError, "" if there is none.
std::string error_of_archive(const std::string& bytes, std::optional<std::int64_t> size = {}) {
  try {
    read_pt2_bytes(bytes, "dir/tiny_mlp.pt2", size);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.where().file, "dir/tiny_mlp.pt2");
    return error.what();
  }
  return "";
}

/// The message after the first `from` in `entry` is replaced by `to`.
std::string message_after(const std::string& from, const std::string& to,
                          const char* entry = kProgram) {
  ZipEntries entries = tiny_mlp();
  const std::size_t at = entries[entry].find(from);
  if (at == std::string::npos) throw std::logic_error("nothing to replace: " + from);
  entries[entry].replace(at, from.size(), to);
  return error_of_archive(zipped(entries));
}

TEST(Pt2Reader, ReadsStoredAndDeflatedEntriesAlike) {
  Graph stored = read_pt2_bytes(zipped(tiny_mlp(), true), "x.pt2");
  Graph deflated = read_pt2_bytes(zipped(tiny_mlp(), false), "x.pt2");
  EXPECT_NE(stored.digest, deflated.digest);
  stored.digest = deflated.digest;
  EXPECT_EQ(stored, deflated);
}

TEST(Pt2Reader, DamagedArchives) {
  const std::string bytes = file_bytes(PFEIFE_SOURCE_DIR "/configs/models/tiny_mlp.pt2");
  EXPECT_MESSAGE(error_of_archive(""));
  EXPECT_MESSAGE(error_of_archive(bytes.substr(0, bytes.size() / 2)));
  EXPECT_MESSAGE(error_of_archive("no archive at all"));
  std::string flipped = bytes;
  const std::size_t inside = flipped.find(kProgram) + std::string(kProgram).size() + 40;
  flipped[inside] = static_cast<char>(flipped[inside] ^ 0x10);
  EXPECT_MESSAGE(error_of_archive(flipped));
  EXPECT_THROW(read_pt2("/no/such.pt2"), ConfigError);
}

TEST(Pt2Reader, MissingAndDoubleEntries) {
  ZipEntries entries = tiny_mlp();
  entries.erase(kProgram);
  EXPECT_MESSAGE(error_of_archive(zipped(entries)));
  entries = tiny_mlp();
  entries.erase("tiny_mlp/archive_format");
  EXPECT_MESSAGE(error_of_archive(zipped(entries)));
  // Two entries of one name: rename another of equal length, in its header and in the directory.
  entries = tiny_mlp();
  entries["tiny_mlp/models/other.json"] = entries[kProgram];
  std::string bytes = zipped(entries, true);
  const std::string other = "tiny_mlp/models/other.json", name = kProgram;
  ASSERT_EQ(other.size(), name.size());
  for (std::size_t at = 0; (at = bytes.find(other, at)) != std::string::npos;)
    bytes.replace(at, name.size(), name);
  EXPECT_MESSAGE(error_of_archive(bytes));
}

TEST(Pt2Reader, ZipBombIsRefusedBeforeItIsUnpacked) {
  ZipEntries entries = tiny_mlp();
  entries[kProgram] = std::string(std::size_t{64} << 20, ' ');
  EXPECT_MESSAGE(error_of_archive(zipped(entries)));
}

TEST(Pt2Reader, JsonThatWouldNeedTooMuchMemoryIsRefused) {
  ZipEntries entries = tiny_mlp();
  entries[kProgram] = std::string(100'000, '[');
  EXPECT_MESSAGE(error_of_archive(zipped(entries)));
  entries[kProgram] = "{";
  EXPECT_MESSAGE(error_of_archive(zipped(entries)));
}

TEST(Pt2Reader, OtherVersionsAreRefused) {
  EXPECT_MESSAGE(message_after("\"major\":8", "\"major\":9"));
  EXPECT_MESSAGE(message_after("0", "1", "tiny_mlp/archive_version"));
  EXPECT_MESSAGE(message_after("pt2", "pt3", "tiny_mlp/archive_format"));
  EXPECT_MESSAGE(message_after("little", "big", "tiny_mlp/byteorder"));
}

TEST(Pt2Reader, NodeIsNamedInMessages) {
  EXPECT_MESSAGE(message_after("\"arg\":{\"as_tensor\":{\"name\":\"layer_norm\"}}",
                               "\"arg\":{\"as_tensor\":{\"name\":\"nobody\"}}"));
  EXPECT_MESSAGE(message_after("\"as_bool\":false", "\"as_graph\":{}"));
  EXPECT_MESSAGE(message_after("\"as_bool\":false", "\"as_sym_bool\":{}"));
  EXPECT_MESSAGE(message_after("\"as_bool\":false", "\"as_bool\":3"));
}

TEST(Pt2Reader, NodesThatReadWhatComesLaterAreRefused) {
  // layer_norm reads the result of the linear after it: a cycle.
  EXPECT_MESSAGE(message_after("\"arg\":{\"as_tensor\":{\"name\":\"linear\"}}",
                               "\"arg\":{\"as_tensor\":{\"name\":\"linear_1\"}}"));
}

TEST(Pt2Reader, OperatorsThatAreNoneAreRefused) {
  EXPECT_MESSAGE(message_after("torch.ops.aten.gelu.default", "torch.ops.higher_order.cond"));
  EXPECT_MESSAGE(message_after("torch.ops.aten.gelu.default",
                               "torch.ops.higher_order.wrap_with_set_grad_enabled"));
  EXPECT_MESSAGE(
      message_after("torch.ops.aten.gelu.default", "torch.ops.higher_order.wrap_with_autocast"));
  EXPECT_MESSAGE(message_after("torch.ops.aten.gelu.default", "math.floor"));
  EXPECT_MESSAGE(message_after("torch.ops.aten.gelu.default", "torch.ops.aten.gelu"));
}

TEST(Pt2Reader, DuplicateNamesAreRefused) {
  EXPECT_MESSAGE(message_after("\"outputs\":[{\"as_tensor\":{\"name\":\"gelu\"}}]",
                               "\"outputs\":[{\"as_tensor\":{\"name\":\"linear\"}}]"));
}

TEST(Pt2Reader, AbsurdSizesAreRefused) {
  EXPECT_MESSAGE(message_after("\"gelu\":{\"dtype\":7", "\"gelu\":{\"dtype\":77"));
  EXPECT_MESSAGE(message_after("{\"as_int\":64}", "{\"as_int\":9000000000000000000}"));
  EXPECT_MESSAGE(message_after("{\"as_int\":64}", "{\"as_int\":-64}"));
  EXPECT_MESSAGE(message_after("\"storage_offset\":{\"as_int\":0}",
                               "\"storage_offset\":{\"as_int\":9223372036854775807}"));
  EXPECT_MESSAGE(message_after("{\"as_int\":64}", "{\"as_int\":1e400}"));
  EXPECT_MESSAGE(message_after("{\"as_int\":64}", "{\"as_int\":18446744073709551615}"));
}

TEST(Pt2Reader, OnlyTheBatchSizeMayBeOpen) {
  const std::string symbol = "\"expr_str\":\"Symbol('s77', positive=True, integer=True)\"";
  EXPECT_MESSAGE(message_after(
      symbol, "\"expr_str\":\"FloorDiv(Symbol('s77', positive=True, integer=True), Integer(2))\""));
  EXPECT_MESSAGE(
      message_after(symbol, "\"expr_str\":\"Symbol('s78', positive=True, integer=True)\""));
  EXPECT_MESSAGE(message_after(symbol, "\"expr_str\":\"Symbol('u0', integer=True)\""));
  EXPECT_MESSAGE(message_after(
      symbol, "\"expr_str\":\"Mul(Integer(2), Symbol('s77', positive=True, integer=True))\""));
}

TEST(Pt2Reader, MicrobatchSizesThatCannotBeAreRefused) {
  const std::string bytes = zipped(tiny_mlp());
  EXPECT_MESSAGE(error_of_archive(bytes, 0));
  EXPECT_MESSAGE(error_of_archive(bytes, -3));
  EXPECT_MESSAGE(error_of_archive(bytes, std::int64_t{1} << 60));
  EXPECT_EQ(error_of_archive(bytes, 100), "");
}

TEST(Pt2Reader, FixedBatchHoldsForItsSizeOnly) {
  ZipEntries entries = tiny_mlp();
  std::string& program = entries[kProgram];
  for (std::size_t at; (at = program.find("{\"as_expr\"")) != std::string::npos;)
    program.replace(at, program.find("}}}", at) + 3 - at, "{\"as_int\":4}");
  const Graph graph = read_pt2_bytes(zipped(entries), "x.pt2");
  EXPECT_FALSE(graph.symbolic_batch);
  EXPECT_EQ(graph.microbatch_size, 4);
  EXPECT_EQ(error_of_archive(zipped(entries), 4), "");
  EXPECT_MESSAGE(error_of_archive(zipped(entries), 8));
}

TEST(Pt2Reader, SignatureIsChecked) {
  EXPECT_MESSAGE(message_after("{\"user_output\":{\"arg\"", "{\"buffer_mutation\":{\"arg\""));
  EXPECT_MESSAGE(message_after("{\"parameter\":{\"arg\"", "{\"token\":{\"arg\""));
  EXPECT_MESSAGE(
      message_after("\"parameter_name\":\"embed.weight\"", "\"parameter_name\":\"embed.wait\""));
  EXPECT_MESSAGE(
      message_after("{\"user_output\":{\"arg\":{\"as_tensor\":{\"name\":\"cross_entropy_loss\"}}}}",
                    "{\"user_output\":{\"arg\":{\"as_tensor\":{\"name\":\"gelu\"}}}}"));
}

TEST(Pt2Reader, ParametersThatOverlapAreRefused) {
  EXPECT_MESSAGE(
      message_after("\"path_name\": \"weight_1\"", "\"path_name\": \"weight_0\"", kWeights));
}

}  // namespace
}  // namespace pfeife
