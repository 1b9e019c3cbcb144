// Which dimension of each input is the batch: tiny_mlp, x [batch, 8] and labels [batch], with other
// sizes.
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"
#include "tests/support/zip_bytes.h"

namespace pfeife {
namespace {

constexpr const char* kOpen =
    R"x({"as_expr":{"expr_str":"Symbol('s77', positive=True, integer=True)","hint":{"as_int":4}}})x";
constexpr const char* kTwice =
    R"x({"as_expr":{"expr_str":"Mul(Integer(2), Symbol('s77', positive=True, integer=True))",)x"
    R"x("hint":{"as_int":8}}})x";

/// The archive with these sizes of an input, and of nothing else.
void set_sizes(std::string& program, const std::string& input, const std::string& sizes) {
  const std::size_t entry = program.find("\"" + input + "\":{\"dtype\"");
  const std::size_t begin = program.find("\"sizes\":[", entry) + 9;
  const std::size_t end = program.find("],\"requires_grad\"", begin);
  if (entry == std::string::npos || end == std::string::npos)
    throw std::logic_error("no input " + input);
  program.replace(begin, end - begin, sizes);
  const std::size_t strides = program.find("\"strides\":[", begin) + 11;
  std::string ones;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(std::ranges::count(sizes, '~')); ++i)
    ones += i == 0 ? R"({"as_int":1})" : R"(,{"as_int":1})";
  program.replace(strides, program.find("],\"storage_offset\"", strides) - strides, ones);
  for (std::size_t at; (at = program.find('~')) != std::string::npos;) program[at] = ',';
}

/// Sizes of x and labels, with ~ between dimensions.
ZipEntries archive(const std::string& x, const std::string& labels, const std::string& facts = "") {
  ZipEntries entries = unzipped(PFEIFE_SOURCE_DIR "/configs/models/tiny_mlp.pt2");
  std::string& program = entries["tiny_mlp/models/model.json"];
  if ((x + labels).find("as_expr") == std::string::npos)
    for (std::size_t at; (at = program.find("{\"as_expr\"")) != std::string::npos;)
      program.replace(at, program.find("}}}", at) + 3 - at, "{\"as_int\":4}");
  set_sizes(program, "x", x);
  set_sizes(program, "labels", labels);
  if (!facts.empty()) entries["tiny_mlp/extra/pfeife.json"] = facts;
  return entries;
}
std::string sizes_of(const std::vector<int>& sizes) {
  std::string text;
  for (const int size : sizes)
    text += (text.empty() ? "" : "~") + ("{\"as_int\":" + std::to_string(size) + "}");
  return text;
}

Graph read(const ZipEntries& entries) { return read_pt2_bytes(zipped(entries), "tiny_mlp.pt2"); }
std::string message(const ZipEntries& entries) {
  try {
    read(entries);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}
using Dimensions = std::vector<std::optional<std::size_t>>;
Dimensions dimensions(const Graph& graph) {
  Dimensions found;
  for (const ValueId input : graph.inputs) found.push_back(graph.value(input).batch_dimension);
  return found;
}

TEST(BatchDimensions, AreThoseOfTheOpenSize) {
  const std::string open = kOpen;
  Graph graph = read(archive(sizes_of({5}) + "~" + open + "~" + sizes_of({8}), open));
  EXPECT_EQ(dimensions(graph), (Dimensions{1, 0}));
  EXPECT_EQ(graph.microbatch_size, 4);
  graph = read(archive(open + "~" + sizes_of({8}), sizes_of({3})));
  EXPECT_EQ(dimensions(graph), (Dimensions{0, std::nullopt}));
}

TEST(BatchDimensions, OfAFixedSizeAreFirstOnesOrTheOnlyCommonLength) {
  Graph graph = read(archive(sizes_of({4, 8}), sizes_of({4})));
  EXPECT_EQ(dimensions(graph), (Dimensions{0, 0}));
  graph = read(archive(sizes_of({5, 4, 8}), sizes_of({4})));
  EXPECT_EQ(dimensions(graph), (Dimensions{1, 0}));
  EXPECT_EQ(graph.microbatch_size, 4);
}

TEST(BatchDimensions, OfAFixedSizeAreThoseThatTheExporterStored) {
  const Graph graph = read(
      archive(sizes_of({5, 4, 8}), sizes_of({5, 4}), R"({"batch_dimensions":{"x":1,"labels":1}})"));
  EXPECT_EQ(dimensions(graph), (Dimensions{1, 1}));
  EXPECT_EQ(graph.microbatch_size, 4);
}

TEST(BatchDimensions, ThatNobodyKnowsAreRefused) {
  const std::string open = kOpen;
  EXPECT_MESSAGE(message(archive(sizes_of({5, 4, 8}), sizes_of({4, 5}))));
  EXPECT_MESSAGE(message(archive(sizes_of({5, 4}), sizes_of({3}))));
  EXPECT_MESSAGE(message(archive(open + "~" + open, open)));
  EXPECT_MESSAGE(message(archive(open, kTwice)));
}

TEST(BatchDimensions, ThatDoNotFitAreRefused) {
  const auto told = [](const char* facts) {
    return message(archive(sizes_of({4, 8}), sizes_of({4}), facts));
  };
  EXPECT_MESSAGE(told(R"({"batch_dimensions":{"images":0}})"));
  EXPECT_MESSAGE(told(R"({"batch_dimensions":{"x":2}})"));
  EXPECT_MESSAGE(told(R"({"batch_dimensions":{"labels":0,"x":1}})"));
  EXPECT_MESSAGE(told(R"({"batch_dimensions":)"));
}

TEST(LossWeight, MustBeAnOutputThatIsOneNumber) {
  const auto told = [](const char* facts) {
    return message(archive(sizes_of({4, 8}), sizes_of({4}), facts));
  };
  EXPECT_MESSAGE(told(R"({"loss_weight":1})"));
  EXPECT_MESSAGE(told(R"({"loss_weight":0})"));  // it is the only loss
  EXPECT_MESSAGE(told(R"({"loss_weight":"count"})"));
}

}  // namespace
}  // namespace pfeife
