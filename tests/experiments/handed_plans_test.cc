// A sweep never gets slower as more is allowed, and what is written does not depend on what is
// computed first.
#include <gmock/gmock.h>

#include <sstream>

#include "tests/experiments/program.h"

namespace pfeife {
namespace {

class HandedPlans : public ProgramTest {
 protected:
  HandedPlans() {
    std::filesystem::copy_file(configs() / "clusters" / "a100_sxm4_80gb_x8.yaml",
                               folder_ / "a100.yaml");
    std::string table =
        "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,"
        "saved_bytes,weight_saved_bytes,temporary_bytes\n";
    for (int i = 0; i < 24; ++i)
      table +=
          "block." + std::to_string(i) + ",3.0,3.0,2.4,33554432,201326592,600000000,220000000,0\n";
    write("layers.csv", table);
  }
  void ask(const std::string& cases) const {
    write("sweep.yaml",
          "version: 1\nmodel: layers.csv\ncluster: a100.yaml\n"
          "cases: {devices: 4, microbatches: 8, " +
              cases +
              "}\n"
              "plan: {families: [zb_greedy], stages_per_rank: [1, 2], iterations: 2}\n"
              "baselines: []\nsimulation: {launch_overhead: 0 us}\n");
  }
  /// Steps (ms) of the cases, in the order of the config.
  std::vector<double> steps(const std::string& out) const {
    std::istringstream lines(read(std::filesystem::path(out) / "results.csv"));
    std::string line;
    std::getline(lines, line);
    std::vector<std::string> names = cells(line);
    const auto column =
        static_cast<std::size_t>(std::ranges::find(names, "simulate_ms") - names.begin());
    std::vector<double> found;
    while (std::getline(lines, line)) found.push_back(std::stod(cells(line).at(column)));
    return found;
  }

 private:
  static std::vector<std::string> cells(const std::string& line) {
    std::vector<std::string> all(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted)
        all.emplace_back();
      else
        all.back() += c;
    }
    return all;
  }
};

TEST_F(HandedPlans, OfMemoryIsMonotoneAndTheSameForAnyNumberOfJobs) {
  ask("plan.reserve: [5 GiB, 62 GiB, 20 GiB, 30 GiB, 45 GiB, 55 GiB, 40 GiB, 50 GiB]");
  ASSERT_EQ(run({"sweep.yaml", "--out", "one", "--jobs", "1"}).code, 0);
  ASSERT_EQ(run({"sweep.yaml", "--out", "three", "--jobs", "3"}).code, 0);
  EXPECT_EQ(files("one"), files("three"));
  const std::vector<double> ms = steps("one");
  const std::vector<std::size_t> by_memory{1, 5, 7, 4, 6, 3, 2, 0};  // the least first
  for (std::size_t i = 1; i < by_memory.size(); ++i)
    EXPECT_LE(ms.at(by_memory[i]), ms.at(by_memory[i - 1])) << i;
  EXPECT_GT(ms.at(1), ms.at(0)) << "else memory does not matter here";
  // What was there is not computed again, and half of the sweep comes to other files.
  EXPECT_THAT(run({"sweep.yaml", "--out", "one"}).err, ::testing::HasSubstr("0 of 8"));
}

TEST_F(HandedPlans, OfEffortIsMonotone) {
  ask("plan.reserve: [50 GiB, 30 GiB], plan.iterations: [8, 2, 4, 1]");
  ASSERT_EQ(run({"sweep.yaml", "--out", "out"}).code, 0);
  const std::vector<double> ms = steps("out");
  for (const std::size_t tight : {0, 4}) {
    EXPECT_LE(ms.at(tight), ms.at(tight + 2));
    EXPECT_LE(ms.at(tight + 2), ms.at(tight + 1));
    EXPECT_LE(ms.at(tight + 1), ms.at(tight + 3));
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_LE(ms.at(i + 4), ms.at(i)) << "more memory";
}

// Cases that hand plans to one another are one shard's.
TEST_F(HandedPlans, ShardsMakeTheSameFiles) {
  ask("training.microbatch_size: [1, 2], plan.reserve: [50 GiB, 30 GiB]");
  ASSERT_EQ(run({"sweep.yaml", "--out", "whole"}).code, 0);
  for (const char* shard : {"2/2", "1/2"}) {
    ASSERT_EQ(run({"sweep.yaml", "--out", "parts", "--shard", shard}).code, 0);
    std::size_t cases = 0;
    for (const auto& [name, text] : files("parts")) cases += name.ends_with("/case.json");
    EXPECT_EQ(cases, *shard == '2' ? 2u : 4u) << "half of the cases each";
  }
  ASSERT_EQ(run({"sweep.yaml", "--out", "parts"}).code, 0);
  EXPECT_EQ(files("whole"), files("parts"));
}

}  // namespace
}  // namespace pfeife
