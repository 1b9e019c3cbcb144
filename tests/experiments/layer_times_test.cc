// A config of an architecture with a file of layer times and a measured peak, as a user types it.
#include <gmock/gmock.h>

#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FileOfLayerTimes : public ProgramTest {
 protected:
  void write_config(const std::string& model, const std::string& parallel) {
    write("mesh.yaml",
          "version: 1\nmodel: {file: " + (configs() / "architectures/llama3_8b.yaml").string() +
              model + "}\ncluster: " + (configs() / "clusters/h100_sxm_hosts.yaml").string() +
              "\ntraining: {global_batch: 16, microbatch_size: 1, sequence: 4096}\n"
              "parallel: {devices: 8, cp: 1, zero: 1, recompute: none, "
              "stages_per_rank: 1, " +
              parallel + "}\nplan: {families: [1f1b], iterations: 1}\n");
  }
  /// A column of the first mesh.
  std::string cell(const std::string& out, int column) const {
    const std::string csv = read(out + "/meshes.csv");
    std::string row = csv.substr(csv.find('\n') + 1);
    for (; column > 0; --column) row = row.substr(row.find(',') + 1);
    return row.substr(0, row.find(','));
  }
  void write_times() {
    write("layers.csv",
          "kind,tp,microbatch,sequence,precision,forward_ms,input_ms,weight_ms,machine\n"
          "embedding,1,1,4096,bf16,1,0,2,H100\nattention+dense,1,1,4096,bf16,10,13,7,H100\n"
          "head,1,1,4096,bf16,5,6,4,H100\n");
  }
};

// 32 layers of 30 ms, 3 of the embedding, 15 of the head: 978 ms a microbatch, 489 of each of two
// ranks; four replicas have 16 / 4 = 4 microbatches.
TEST_F(FileOfLayerTimes, ArePlannedWithAndTheirPlanIsAnExperimentByItself) {
  write_times();
  write_config(", times: layers.csv", "tp: 1, pp: 2");
  const Outcome planned = run({"mesh.yaml", "--out", "out"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out,
              HasSubstr("of a microbatch's 34 layers 34 with times as measured (layers.csv,"));
  EXPECT_EQ(cell("out", 17), "1956.000000");  // compute_ms, a rank's mean
  EXPECT_GE(std::stod(cell("out", 10)), 4 * 489.0);
  ASSERT_EQ(run({"out/mesh.yaml", "--out", "again"}).code, 0);
  EXPECT_EQ(result("again", "planned", "estimate_ms"), result("out", "planned", "estimate_ms"));
}

TEST_F(FileOfLayerTimes, ThatAreMissingAreNamed) {
  write_times();
  write_config(", times: layers.csv", "tp: 2");
  const Outcome outcome = run({"mesh.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("layers.csv has no times of embedding at tp 2, cp 1, ep 1, "
                                     "microbatch 1, sequence 4096, recompute none, precision bf16; "
                                     "the nearest row, line 2, has tp 1"));
  write_config(", times: layers.csv", "tp: [1, 2]");
  const Outcome searched = run({"mesh.yaml", "--out", "out"});
  EXPECT_EQ(searched.code, 0) << searched.err;
  EXPECT_THAT(searched.out, HasSubstr("left out without measured times"));
}

TEST_F(FileOfLayerTimes, OfFitsAreThoseOfItsArchitecture) {
  write_times();
  const Outcome outcome =
      run({"fits", (configs() / "architectures/llama3_8b.yaml").string(),
           (configs() / "clusters/h100_sxm_hosts.yaml").string(), "--devices", "8", "--sequence",
           "4096", "--batch", "16", "--times", "layers.csv"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("34 with times as measured"));
}

TEST_F(FileOfLayerTimes, AMeasuredPeakScalesActivations) {
  write_config("", "tp: 2, pp: 1");
  const Outcome alone = run({"mesh.yaml", "--out", "alone"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.out, Not(HasSubstr("measured peak")));
  write_config(", measured_peak: {memory: 50 GiB, tp: 2, dp: 4, zero: 1}", "tp: 2, pp: 1");
  const Outcome with = run({"mesh.yaml", "--out", "with"});
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_THAT(with.out, HasSubstr("measured peak 50.00 GiB, by the formula"));
  EXPECT_NEAR(std::stod(cell("with", 12)) / (1 << 30), 50, 1e-4);  // peak_bytes
  EXPECT_NE(cell("alone", 12), cell("with", 12));
  ASSERT_EQ(run({"with/mesh.yaml", "--out", "again"}).code, 0);
  EXPECT_EQ(result("again", "planned", "peak_memory_bytes"),
            result("with", "planned", "peak_memory_bytes"));
  write_config(", measured_peak: {memory: 1 GiB, tp: 2, dp: 4, zero: 1}", "tp: 2, pp: 1");
  const Outcome refused = run({"mesh.yaml", "--out", "refused"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("without any activations"));
}

}  // namespace
}  // namespace pfeife
