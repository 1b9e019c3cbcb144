// What read_pt2 says to archives that are damaged or hold what it does not understand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/model/pt2_reader.h"
#include "planner/ir/error.h"
#include "tests/support/zip_bytes.h"

namespace pfeife {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kProgram = "tiny_mlp/models/model.json";
constexpr const char* kWeights = "tiny_mlp/data/weights/model_weights_config.json";

ZipEntries tiny_mlp() { return unzipped(PFEIFE_SOURCE_DIR "/configs/models/tiny_mlp.pt2"); }

/// The message of the ConfigError, "" if there is none.
std::string message_of(const std::string& bytes, std::optional<std::int64_t> size = {}) {
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
  return message_of(zipped(entries));
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
  EXPECT_THAT(message_of(""), HasSubstr("not an archive of torch.export.save"));
  EXPECT_THAT(message_of(bytes.substr(0, bytes.size() / 2)), HasSubstr("not a whole ZIP archive"));
  EXPECT_THAT(message_of("no archive at all"), HasSubstr("not a whole ZIP archive"));
  std::string flipped = bytes;
  const std::size_t inside = flipped.find(kProgram) + std::string(kProgram).size() + 40;
  flipped[inside] = static_cast<char>(flipped[inside] ^ 0x10);
  EXPECT_THAT(message_of(flipped), HasSubstr("is damaged"));
  EXPECT_THROW(read_pt2("/no/such.pt2"), ConfigError);
}

TEST(Pt2Reader, MissingAndDoubleEntries) {
  ZipEntries entries = tiny_mlp();
  entries.erase(kProgram);
  EXPECT_THAT(message_of(zipped(entries)), HasSubstr("'tiny_mlp/models/model.json' is missing"));
  entries = tiny_mlp();
  entries.erase("tiny_mlp/archive_format");
  EXPECT_THAT(message_of(zipped(entries)), HasSubstr("torch.export.save"));
  // Two entries of one name: rename another of equal length, in its header and in the directory.
  entries = tiny_mlp();
  entries["tiny_mlp/models/other.json"] = entries[kProgram];
  std::string bytes = zipped(entries, true);
  const std::string other = "tiny_mlp/models/other.json", name = kProgram;
  ASSERT_EQ(other.size(), name.size());
  for (std::size_t at = 0; (at = bytes.find(other, at)) != std::string::npos;)
    bytes.replace(at, name.size(), name);
  EXPECT_THAT(message_of(bytes), HasSubstr("is there twice"));
}

TEST(Pt2Reader, ZipBombIsRefusedBeforeItIsUnpacked) {
  ZipEntries entries = tiny_mlp();
  entries[kProgram] = std::string(std::size_t{64} << 20, ' ');
  EXPECT_THAT(message_of(zipped(entries)), HasSubstr("ZIP bomb"));
}

TEST(Pt2Reader, JsonThatWouldNeedTooMuchMemoryIsRefused) {
  ZipEntries entries = tiny_mlp();
  entries[kProgram] = std::string(100'000, '[');
  EXPECT_THAT(message_of(zipped(entries)), HasSubstr("nested too deeply"));
  entries[kProgram] = "{";
  EXPECT_THAT(message_of(zipped(entries)),
              AllOf(HasSubstr("models/model.json"), HasSubstr("export")));
}

TEST(Pt2Reader, OtherVersionsAreRefused) {
  EXPECT_THAT(message_after("\"major\":8", "\"major\":9"),
              AllOf(HasSubstr("schema version 9"), HasSubstr("export with torch 2.11")));
  EXPECT_THAT(message_after("0", "1", "tiny_mlp/archive_version"),
              AllOf(HasSubstr("says '1', only '0'"), HasSubstr("torch 2.11")));
  EXPECT_THAT(message_after("pt2", "pt3", "tiny_mlp/archive_format"), HasSubstr("only 'pt2'"));
  EXPECT_THAT(message_after("little", "big", "tiny_mlp/byteorder"), HasSubstr("only 'little'"));
}

TEST(Pt2Reader, NodeIsNamedInMessages) {
  EXPECT_THAT(message_after("\"arg\":{\"as_tensor\":{\"name\":\"layer_norm\"}}",
                            "\"arg\":{\"as_tensor\":{\"name\":\"nobody\"}}"),
              AllOf(HasSubstr("node 'linear_1'"), HasSubstr("argument 'input'"),
                    HasSubstr("'nobody' is not made by any earlier node")));
  EXPECT_THAT(
      message_after("\"as_bool\":false", "\"as_graph\":{}"),
      AllOf(HasSubstr("as_graph"), HasSubstr("torch.cond"), HasSubstr("node 'layer_norm'")));
  EXPECT_THAT(message_after("\"as_bool\":false", "\"as_sym_bool\":{}"),
              HasSubstr("without dynamic_shapes"));
  EXPECT_THAT(message_after("\"as_bool\":false", "\"as_bool\":3"),
              HasSubstr("expected true or false, found 3"));
}

TEST(Pt2Reader, NodesThatReadWhatComesLaterAreRefused) {
  // layer_norm reads the result of the linear after it: a cycle.
  EXPECT_THAT(message_after("\"arg\":{\"as_tensor\":{\"name\":\"linear\"}}",
                            "\"arg\":{\"as_tensor\":{\"name\":\"linear_1\"}}"),
              HasSubstr("'linear_1' is not made by any earlier node"));
}

TEST(Pt2Reader, OperatorsThatAreNoneAreRefused) {
  EXPECT_THAT(message_after("torch.ops.aten.gelu.default", "torch.ops.higher_order.cond"),
              AllOf(HasSubstr("node 'gelu'"), HasSubstr("without control flow")));
  EXPECT_THAT(message_after("torch.ops.aten.gelu.default",
                            "torch.ops.higher_order.wrap_with_set_grad_enabled"),
              AllOf(HasSubstr("torch.no_grad"), HasSubstr("export_models.py --module")));
  EXPECT_THAT(message_after("torch.ops.aten.gelu.default", "math.floor"),
              HasSubstr("'math.floor' is not an operator"));
  EXPECT_THAT(message_after("torch.ops.aten.gelu.default", "torch.ops.aten.gelu"),
              HasSubstr("is not an operator"));
}

TEST(Pt2Reader, DuplicateNamesAreRefused) {
  EXPECT_THAT(message_after("\"outputs\":[{\"as_tensor\":{\"name\":\"gelu\"}}]",
                            "\"outputs\":[{\"as_tensor\":{\"name\":\"linear\"}}]"),
              HasSubstr("two values are named 'linear'"));
}

TEST(Pt2Reader, AbsurdSizesAreRefused) {
  EXPECT_THAT(message_after("\"gelu\":{\"dtype\":7", "\"gelu\":{\"dtype\":77"),
              AllOf(HasSubstr("tensor 'gelu'"), HasSubstr("unknown dtype 77")));
  EXPECT_THAT(message_after("{\"as_int\":64}", "{\"as_int\":9000000000000000000}"),
              HasSubstr("more than 16 TiB"));
  EXPECT_THAT(message_after("{\"as_int\":64}", "{\"as_int\":-64}"), HasSubstr("negative size"));
  EXPECT_THAT(message_after("\"storage_offset\":{\"as_int\":0}",
                            "\"storage_offset\":{\"as_int\":9223372036854775807}"),
              HasSubstr("offset 9223372036854775807"));
  EXPECT_THAT(message_after("{\"as_int\":64}", "{\"as_int\":1e400}"), HasSubstr("model.json"));
  EXPECT_THAT(message_after("{\"as_int\":64}", "{\"as_int\":18446744073709551615}"),
              HasSubstr("expected a 64-bit integer"));
}

TEST(Pt2Reader, OnlyTheBatchSizeMayBeOpen) {
  const std::string symbol = "\"expr_str\":\"Symbol('s77', positive=True, integer=True)\"";
  EXPECT_THAT(
      message_after(
          symbol,
          "\"expr_str\":\"FloorDiv(Symbol('s77', positive=True, integer=True), Integer(2))\""),
      AllOf(HasSubstr("is not a sum, product"), HasSubstr("--microbatch N")));
  EXPECT_THAT(message_after(symbol, "\"expr_str\":\"Symbol('s78', positive=True, integer=True)\""),
              HasSubstr("two sizes are open"));
  EXPECT_THAT(message_after(symbol, "\"expr_str\":\"Symbol('u0', integer=True)\""),
              HasSubstr("is not a sum, product"));
  EXPECT_THAT(
      message_after(symbol,
                    "\"expr_str\":\"Mul(Integer(2), Symbol('s77', positive=True, integer=True))\""),
      HasSubstr("comes before the batch size itself"));
}

TEST(Pt2Reader, MicrobatchSizesThatCannotBeAreRefused) {
  const std::string bytes = zipped(tiny_mlp());
  EXPECT_THAT(message_of(bytes, 0), HasSubstr("must be at least 1"));
  EXPECT_THAT(message_of(bytes, -3), HasSubstr("microbatch_size is -3"));
  EXPECT_THAT(message_of(bytes, std::int64_t{1} << 60), HasSubstr("more than 16 TiB"));
  EXPECT_EQ(message_of(bytes, 100), "");
}

TEST(Pt2Reader, FixedBatchHoldsForItsSizeOnly) {
  ZipEntries entries = tiny_mlp();
  std::string& program = entries[kProgram];
  for (std::size_t at; (at = program.find("{\"as_expr\"")) != std::string::npos;)
    program.replace(at, program.find("}}}", at) + 3 - at, "{\"as_int\":4}");
  const Graph graph = read_pt2_bytes(zipped(entries), "x.pt2");
  EXPECT_FALSE(graph.symbolic_batch);
  EXPECT_EQ(graph.microbatch_size, 4);
  EXPECT_EQ(message_of(zipped(entries), 4), "");
  EXPECT_THAT(message_of(zipped(entries), 8),
              AllOf(HasSubstr("for 4 samples only"), HasSubstr("without --microbatch")));
}

TEST(Pt2Reader, SignatureIsChecked) {
  EXPECT_THAT(message_after("{\"user_output\":{\"arg\"", "{\"buffer_mutation\":{\"arg\""),
              AllOf(HasSubstr("buffer_mutation"), HasSubstr("no run_decompositions")));
  EXPECT_THAT(message_after("{\"parameter\":{\"arg\"", "{\"token\":{\"arg\""),
              HasSubstr("'token'"));
  EXPECT_THAT(
      message_after("\"parameter_name\":\"embed.weight\"", "\"parameter_name\":\"embed.wait\""),
      HasSubstr("'embed.wait' is not among the archive's weights"));
  EXPECT_THAT(
      message_after("{\"user_output\":{\"arg\":{\"as_tensor\":{\"name\":\"cross_entropy_loss\"}}}}",
                    "{\"user_output\":{\"arg\":{\"as_tensor\":{\"name\":\"gelu\"}}}}"),
      HasSubstr("must return its loss"));
}

TEST(Pt2Reader, ParametersThatOverlapAreRefused) {
  EXPECT_THAT(message_after("\"path_name\": \"weight_1\"", "\"path_name\": \"weight_0\"", kWeights),
              AllOf(HasSubstr("weight_0 at element 0"), HasSubstr("--module file.py:function")));
}

}  // namespace
}  // namespace pfeife
