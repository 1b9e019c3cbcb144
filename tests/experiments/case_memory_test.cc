#include "experiments/plans/case_memory.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cstdio>

#include "tests/experiments/program.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Request config_of(std::size_t devices, std::size_t microbatches) {
  Request config;
  config.name = "big";
  config.devices = devices, config.microbatches = microbatches;
  config.plan.families = {"1f1b"};
  config.plan.stages_per_rank = {1};
  config.simulate = false;
  return config;
}

Bytes needed(const Request& config, std::size_t layers, std::size_t threads = 2) {
  Layers model;
  model.layers.resize(layers);
  const Cluster cluster;
  return memory_needed({&config, &model, &cluster}, threads);
}

// 256 orders of 1f1b (prefetch) of 2 x 262,144 actions, 32 bytes each: 4 GiB, and 1.3 GiB of costs.
TEST(CaseMemory, OfManyRanksAndMicrobatchesIsGigabytes) {
  EXPECT_GT(needed(config_of(256, 1024), 768), Bytes{5 * kGiB});
  EXPECT_LT(needed(config_of(256, 1024), 768), Bytes{9 * kGiB});
  EXPECT_LT(needed(config_of(4, 8), 300), Bytes{kGiB / 50});
}

TEST(CaseMemory, GrowsWithMicrobatchesAndSimulation) {
  Request config = config_of(8, 1000);
  const Bytes one = needed(config, 9);
  config.microbatches = 2000;
  const Bytes two = needed(config, 9);
  EXPECT_GT(10 * two.value, 19 * one.value);
  config.simulate = true;
  EXPECT_GT(needed(config, 9), two);
}

TEST(CaseMemory, OfAGivenPlanIsNoForecast) {
  Request config = config_of(256, 1024);
  config.plan.file = "plan.yaml";
  EXPECT_EQ(needed(config, 768), Bytes{0});
}

TEST(CaseMemory, IsRefusedWhereItIsMoreThanThereIs) {
  const Request config = config_of(256, 1024);
  check_memory(config, Bytes{3 * kGiB}, Bytes{3 * kGiB});
  EXPECT_EQ(message_of([&] { check_memory(config, Bytes{7 * kGiB}, Bytes{3 * kGiB}); }),
            "case big takes about 7 GiB of this machine's memory, and 3 GiB are "
            "available; take fewer microbatches (a longer step only repeats itself), fewer "
            "plan.families or plan.stages_per_rank, or engines: estimate");
}

TEST(CaseMemory, IsSaidFromTwoGibibytesOn) {
  const Request config = config_of(256, 1024);
  EXPECT_EQ(memory_note(config, Bytes{2 * kGiB - 1}, Bytes{9 * kGiB}), "");
  EXPECT_THAT(memory_note(config, Bytes{2 * kGiB}, Bytes{9 * kGiB}),
              HasSubstr("case big takes about 2 GiB of this machine's memory (available: 9 GiB)"));
}

TEST(CaseMemory, ThatIsAvailableIsWithinTheProcesssOwnLimit) {
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit small = before;
  small.rlim_cur = std::min<rlim_t>(before.rlim_max, rlim_t{64} << 30);
  setrlimit(RLIMIT_AS, &small);
  EXPECT_GT(memory_available(), Bytes{0});
  EXPECT_LE(memory_available(), Bytes{64 * kGiB});
  setrlimit(RLIMIT_AS, &before);
}

class MemoryTaken : public ProgramTest {};

// The largest process of a case that plans and simulates, as the system counted it.
TEST_F(MemoryTaken, IsNearlyTheForecast) {
  std::string table =
      "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,"
      "saved_bytes,weight_saved_bytes,temporary_bytes\n";
  for (int l = 0; l < 96; ++l) table += "l" + std::to_string(l) + ",1,1,1,8,8,8,8,8\n";
  write("layers.csv", table);
  write("large.yaml", "version: 1\nmodel: layers.csv\ncluster: {file: " +
                          (configs() / "clusters/a100_4x8.yaml").string() +
                          "}\ncases: {devices: 32, microbatches: 256}\nbaselines: []\n"
                          "plan: {families: [1f1b], stages_per_rank: [1], iterations: 1}\n");
  ASSERT_EQ(run({"large.yaml", "--jobs", "1"}).code, 0);
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  Request config = config_of(32, 256);
  config.simulate = true;
  const double forecast = static_cast<double>(needed(config, 96, 1).value);
  const double taken = 1024 * static_cast<double>(used.ru_maxrss);
  EXPECT_GT(forecast, taken);
  EXPECT_LT(forecast, 3 * taken);  // not all that may be kept is
  std::printf("forecast %.0f MiB, taken %.0f MiB\n", forecast / (1 << 20), taken / (1 << 20));
}

}  // namespace
}  // namespace pfeife
