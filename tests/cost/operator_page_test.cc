// Every operator of torch's core set has an answer, and planner/cost/OPERATORS.md says it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "planner/cost/operators/operators.h"

namespace pfeife {
namespace {

std::vector<std::string> core_operators() {
  std::ifstream file(PFEIFE_SOURCE_DIR "/tests/data/core_aten/operators.txt");
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') names.push_back(line);
  return names;
}

std::string forward_text(const OperatorTraits& row) {
  switch (row.work) {
    case OperatorWork::None:
      return "nothing: it only describes memory";
    case OperatorWork::Create:
      return "bytes written";
    case OperatorWork::Stream:
      return row.memory == Memory::Fresh || row.memory == Memory::InPlace
                 ? "bytes read and written"
                 : "nothing if it is a view, else bytes read and written";
    case OperatorWork::Product:
    case OperatorWork::GroupedProduct:
    case OperatorWork::OtherProduct:
      return "2 x elements of the result x terms summed for each";
    case OperatorWork::Einsum:
      return "2 x the sizes of all indices, product by product";
    case OperatorWork::Convolution:
    case OperatorWork::OtherConvolution:
      return "2 x elements of the result (transposed: of the input) x window";
    case OperatorWork::Recurrent:
      return "2 x steps x samples x elements of the weights, step by step";
    case OperatorWork::Attention:
      return "2 x scores x (depth of keys + depth of values)";
    case OperatorWork::StateSpace:
      return "products of a scan by chunks";
    case OperatorWork::LayerNorm:
      return "bytes, one pass";
    case OperatorWork::ChannelNorm:
      return "bytes, two passes";
    case OperatorWork::Lookup:
    case OperatorWork::Bag:
      return "bytes of the rows";
    case OperatorWork::Sort:
      return "bytes, four passes";
    case OperatorWork::Fourier:
      return "bytes, a pass for each dimension";
  }
  return "";
}

std::string backward_text(const OperatorTraits& row) {
  switch (row.work) {
    case OperatorWork::Product:
    case OperatorWork::GroupedProduct:
    case OperatorWork::Convolution:
      return "as forward for each factor; a parameter's in W";
    case OperatorWork::Einsum:
      return "as forward for each factor; of two, a parameter's in W";
    case OperatorWork::OtherProduct:
    case OperatorWork::OtherConvolution:
    case OperatorWork::Recurrent:
      return "as forward for each factor, all in I";
    case OperatorWork::Attention:
      return "2.5 x forward, in I";
    case OperatorWork::LayerNorm:
    case OperatorWork::ChannelNorm:
      return "bytes, with the parameters' in I";
    case OperatorWork::Lookup:
      return "zeros and the rows; an embedding's in W";
    case OperatorWork::Bag:
      return "zeros and the rows, in I";
    case OperatorWork::Fourier:
      return "as forward, in I";
    default:
      break;
  }
  switch (row.gradient) {
    case Gradient::None:
      return "none";
    case Gradient::Passes:
      return "the incoming gradient, or a sum of it";
    case Gradient::Copies:
      return "bytes, in I";
    case Gradient::Uses:
      return "bytes, what was kept among them, in I";
    case Gradient::Fills:
      return "zeros, and the gradient in its place";
  }
  return "";
}

std::string keeps_text(Keeps keeps) {
  switch (keeps) {
    case Keeps::Nothing:
      return "nothing";
    case Keeps::Input:
      return "input";
    case Keeps::InputCopy:
      return "a copy of the input";
    case Keeps::RealInput:
      return "input, unless it is complex";
    case Keeps::InputAndOutput:
      return "input and result";
    case Keeps::InputUnlessConstant:
      return "input, but for padding with a number";
    case Keeps::InputUnlessMean:
      return "input, but for means of channels";
    case Keeps::Output:
      return "result";
    case Keeps::OtherOperand:
      return "each operand if the other needs a gradient";
    case Keeps::Divisor:
      return "the divisor; the dividend if the divisor needs a gradient";
    case Keeps::ProductOperands:
      return "each factor if another needs a gradient";
    case Keeps::Gates:
      return "input, result, gates";
    case Keeps::Statistics:
      return "input, 8 B a row, group or channel";
    case Keeps::RowScale:
      return "input, 4 B a row";
    case Keeps::Attention:
      return "query, key, value, mask, result, 4 B a query";
    case Keeps::StateSpace:
      return "input, the scan's result, 4 B a norm";
    case Keeps::Mask:
      return "mask";
    case Keeps::LogSoftmax:
      return "log-softmax, labels";
    case Keeps::Power:
      return "input; with a tensor as exponent all that it reads and returns";
    case Keeps::Everything:
      return "all that it reads and returns";
    case Keeps::BothInputs:
      return "all that it reads";
    case Keeps::Difference:
      return "difference";
    case Keeps::Indices:
      return "indices";
    case Keeps::IndicesAndSource:
      return "indices, what is added or copied";
    case Keeps::OutputIndices:
      return "indices that it returns";
    case Keeps::Extremum:
      return "the extremum's place, or both operands";
    case Keeps::Condition:
      return "condition";
    case Keeps::InputAndIndices:
      return "input, 8 B an element of the result";
  }
  return "";
}

std::string page() {
  std::ostringstream text;
  text << "# Operators of the core set\n\n"
          "What the planner makes of each operator that PyTorch 2.11 tags as core\n"
          "(tests/data/core_aten). The table in `operators.cc` has "
       << operator_table().size()
       << " rows, composites\n"
          "and in-place operators among them; this page is made from it by\n"
          "`tests/cost/operator_page_test.cc`, which says where it leaves a new one. Nothing is\n"
          "decomposed on export: an archive has the operators that the model calls.\n\n"
          "| operator | forward | backward | kept |\n|---|---|---|---|\n";
  for (const std::string& name : core_operators()) {
    if (const OperatorTraits* row = find_operator("aten::" + name)) {
      text << "| " << name << " | " << forward_text(*row) << " | " << backward_text(*row) << " | "
           << keeps_text(row->keeps) << " |\n";
      continue;
    }
    for (const OperatorWithoutRow& without : operators_without_row())
      if (without.name == name) text << "| " << name << " | " << without.why << " | | |\n";
  }
  return text.str();
}

TEST(OperatorPage, EveryCoreOperatorHasOneAnswer) {
  const std::vector<std::string> core = core_operators();
  ASSERT_EQ(core.size(), 164u);
  std::set<std::string_view> without;
  for (const OperatorWithoutRow& entry : operators_without_row()) without.insert(entry.name);
  EXPECT_EQ(without.size(), operators_without_row().size());
  for (const std::string& name : core)
    EXPECT_NE(find_operator("aten::" + name) != nullptr, without.contains(name)) << name;
  for (const std::string_view name : without)
    EXPECT_NE(std::ranges::find(core, name), core.end()) << name;
}

TEST(OperatorPage, IsWhatTheTableSays) {
  std::ifstream file(PFEIFE_SOURCE_DIR "/planner/cost/OPERATORS.md");
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  if (written == page()) return;
  const std::string made = ::testing::TempDir() + "OPERATORS." + std::to_string(getpid()) + ".md";
  std::ofstream(made) << page();
  ADD_FAILURE() << "planner/cost/OPERATORS.md is not what the table says; compare it with " << made
                << " and copy that one";
}

}  // namespace
}  // namespace pfeife
