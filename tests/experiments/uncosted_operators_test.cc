// A model whose operators nobody knows the cost of, as a user meets it: refused by name until the
// config says what they cost.
#include <gmock/gmock.h>

#include "tests/experiments/program.h"
#include "tests/support/golden_message.h"
#include "tests/support/zip_bytes.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class UncostedOperators : public ProgramTest {
 protected:
  /// A small model with some of its operators replaced by ones of its author.
  UncostedOperators() {
    ZipEntries entries = unzipped((configs() / "models" / "tiny_mlp.pt2").string());
    std::string& program = entries.at("tiny_mlp/models/model.json");
    for (const std::string op : {"linear", "gelu", "layer_norm"})
      rename(program, "torch.ops.aten." + op + ".default", "torch.ops.my." + op + ".default");
    write("own.pt2", zipped(entries, /*stored=*/true));
    std::filesystem::copy_file(configs() / "clusters" / "laptop.yaml", folder_ / "laptop.yaml");
  }

  static void rename(std::string& text, const std::string& from, const std::string& to) {
    std::size_t found = 0;
    for (std::size_t at; (at = text.find(from)) != std::string::npos; ++found)
      text.replace(at, from.size(), to);
    ASSERT_GT(found, 0u) << from;
  }

  Outcome run_with(const std::string& operators) {
    write("own.yaml",
          "version: 1\nmodel: own.pt2\ncluster: laptop.yaml\ncases: {devices: 2, microbatches: 4}\n"
          "plan: {families: 1f1b, stages_per_rank: 1}\nbaselines: []\n" +
              operators);
    std::filesystem::remove_all(folder_ / "out");
    return run({"own.yaml", "--out", "out"});
  }
};

TEST_F(UncostedOperators, OfMoreThanAHundredthOfTheWorkAreRefusedByName) {
  const Outcome none = run_with("");
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_MESSAGE(none.err);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(UncostedOperators, AreNamedAloneIfTheOthersHaveACost) {
  const Outcome some =
      run_with("operators: {my::linear: {flops: \"2*m*n*k\"}, my::layer_norm: {bytes: io}}\n");
  EXPECT_EQ(some.code, 2);
  EXPECT_THAT(some.err, HasSubstr("my::gelu (3 nodes"));
  EXPECT_THAT(some.err, Not(HasSubstr("my::linear")));
  EXPECT_THAT(some.err, Not(HasSubstr("my::layer_norm")));
}

TEST_F(UncostedOperators, PassIfTheConfigSaysWhatTheyCost) {
  const std::string products =
      "operators:\n  my::gelu: {bytes: io}\n  my::layer_norm: {bytes: io}\n";
  const Outcome all = run_with(products + "  my::linear: {flops: \"2*m*n*k\", bytes: io}\n");
  EXPECT_EQ(all.code, 0) << all.err;
  const double time = std::stod(result("out", "planned", "estimate_ms"));
  const Outcome slow = run_with(products + "  my::linear: {flops: \"2e6*m*n*k\", bytes: io}\n");
  EXPECT_EQ(slow.code, 0) << slow.err;
  EXPECT_GT(std::stod(result("out", "planned", "estimate_ms")), 2 * time);
}

}  // namespace
}  // namespace pfeife
