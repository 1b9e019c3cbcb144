// `pfeife-exp fits`, as a user types it.
#include <gmock/gmock.h>

#include "planner/io/files/csv_table.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Fits : public ProgramTest {
 protected:
  Outcome fits(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "fits");
    return run(arguments);
  }
  static std::string config_json(const std::string& name) {
    return PFEIFE_SOURCE_DIR "/tests/data/hugging_face/" + name + ".json";
  }
  static std::string architecture(const std::string& name) {
    return (configs() / "architectures" / (name + ".yaml")).string();
  }
  /// Field of the only row of `fits --csv`, or of the first of meshes.csv.
  static std::string field(const std::string& csv, const std::string& column) {
    const CsvTable table = CsvTable::parse({"csv", csv});
    return table.at(0, column).text;
  }
  /// Step of the mesh that a config chooses, with a list of one number of devices, in ms.
  double step_of_config(const std::string& model, const std::string& hosts,
                        const std::string& batch, const std::string& devices,
                        const std::string& parallel) {
    write("mesh.yaml", "version: 1\nmodel: " + architecture(model) +
                           "\ncluster: " + cluster(hosts) + "\ntraining: {global_batch: " + batch +
                           "}\nparallel: {devices: [" + devices + "], " + parallel + "}\n");
    const Outcome outcome = run({"mesh.yaml", "--out", "out"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return std::stod(field(read("out/devices=" + devices + "/meshes.csv"), "step_ms"));
  }
  static std::string cluster(const std::string& name) {
    return (configs() / "clusters" / (name + ".yaml")).string();
  }
};

// Llama 3 70B has 70,553,706,496 parameters; 18 bytes each are 1,183 GiB. A card of 80 GiB less 2
// and 2 % may reserve 76.44 GiB: 1.05 x 1,182.7 / 76.44 = 16.2.
TEST_F(Fits, SaysHowManyDevicesTheStatesNeed) {
  const Outcome outcome = fits({config_json("llama3_70b"), cluster("a100_sxm4_80gb_hosts"),
                                "--devices", "8", "--sequence", "8192"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1,183 GiB of weights, gradients and optimizer state"));
  EXPECT_THAT(outcome.out, HasSubstr("at least 17 devices"));
}

// 8,030,261,248 parameters of 18 bytes are 135 GiB, which eight cards have.
TEST_F(Fits, HasARowForEachClusterAndNumberOfDevicesWithItsPrice) {
  const Outcome outcome =
      fits({config_json("llama3_8b"), cluster("a100_sxm4_80gb_hosts"), cluster("h100_sxm_hosts"),
            "--devices", "8,16", "--sequence", "8192", "--batch", "64", "--price", "3.6,7.2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("a100_sxm4_80gb_hosts +8 .*\n +16 "));
  EXPECT_THAT(outcome.out, ContainsRegex("h100_sxm_hosts +8 .*\n +16 "));
  EXPECT_THAT(outcome.out, HasSubstr("1e9 tokens"));
  EXPECT_THAT(outcome.out, HasSubstr("how sure: steps of published meshes of A100 were"));
  EXPECT_THAT(outcome.out, HasSubstr("how sure: steps of published meshes of H100 and H200 were"));
}

// A config in which every choice says `search` asks the same question, of dense models and of
// models with experts; one that leaves the choices out, too. One with less open is never faster.
TEST_F(Fits, IsWhatAConfigFindsThatSearchesEverything) {
  const std::string open =
      "tp: search, cp: search, pp: search, dp: search, ep: search, zero: search, recompute: search";
  const std::tuple<const char*, const char*, const char*, const char*> cases[] = {
      {"gpt2_large", "3090_hosts", "64", "16"},
      {"llama3_8b", "h100_sxm_hosts", "32", "16"},
      {"mixtral_8x7b", "h100_sxm_hosts", "16", "16"},
      {"qwen3_30b_a3b", "h100_sxm_hosts", "32", "32"}};
  for (const auto& [model, hosts, batch, devices] : cases) {
    const Outcome outcome = fits(
        {architecture(model), cluster(hosts), "--devices", devices, "--batch", batch, "--csv"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const double step = std::stod(field(outcome.out, "step_ms"));
    EXPECT_EQ(step, step_of_config(model, hosts, batch, devices, open)) << model;
    EXPECT_EQ(step, step_of_config(model, hosts, batch, devices, "recompute: search")) << model;
    EXPECT_LE(step, step_of_config(model, hosts, batch, devices, "cp: 1, ep: 1, zero: [0, 1]"))
        << model;
    EXPECT_LE(step, step_of_config(model, hosts, batch, devices, "zero: 3")) << model;
  }
}

// DeepSeek-V3 on 256 H100: without expert parallelism the best step took 33.1 s, and this config of
// a few meshes finds 22.5 s.
TEST_F(Fits, DividesExperts) {
  const Outcome outcome = fits({architecture("deepseek_v3"), cluster("h100_sxm_hosts"), "--devices",
                                "256", "--batch", "1024", "--csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(", ep "));
  const double few = step_of_config(
      "deepseek_v3", "h100_sxm_hosts", "1024", "256",
      "tp: 1, cp: 1, pp: [8, 16], dp: search, ep: [8, 16, 32], zero: 1, recompute: search");
  EXPECT_LT(few, 23'000);
  EXPECT_LE(std::stod(field(outcome.out, "step_ms")), few);
}

TEST_F(Fits, NamesWhatIsNotSearchedAndNotPlanned) {
  const Outcome dense = fits({architecture("gpt2_large"), cluster("3090_hosts"), "--batch", "64"});
  EXPECT_THAT(dense.out,
              HasSubstr("not searched: ZeRO 2; recompute selective; stages a rank other than"));
  EXPECT_THAT(dense.out, Not(HasSubstr("num_nextn")));
  write("config.json", R"({"model_type": "deepseek_v3", "hidden_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 4096, "q_lora_rank": 256,
    "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "vocab_size": 32000,
    "moe_intermediate_size": 512, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1})");
  const Outcome predicts = fits({"config.json", cluster("h100_sxm_hosts"), "--sequence", "1024"});
  EXPECT_EQ(predicts.code, 0) << predicts.err;
  EXPECT_THAT(predicts.out, HasSubstr("not planned: num_nextn_predict_layers 1"));
  const Outcome pipeline = fits({(configs() / "tables/two_stage.csv").string(),
                                 (configs() / "clusters/a100_sxm4_40gb_x8.yaml").string()});
  EXPECT_THAT(pipeline.out, HasSubstr("not searched: replicas (dp)"));
}

// This program lies in no installation: the folder is said.
TEST_F(Fits, FindsShippedFilesByTheirNames) {
  setenv("PFEIFE_CONFIGS", configs().c_str(), 1);
  const Outcome outcome = fits({"llama3_8b", "h100_sxm_hosts", "--devices", "8"});
  const Outcome list = fits({"--list"}), typo = fits({"llama3_8b", "h100_sxm_host"});
  write("named.yaml",
        "version: 1\nmodel: gpt2_large\ncluster: 3090_hosts\ntraining: {global_batch: 16}\n"
        "parallel: {devices: [4]}\n");
  const Outcome named = run({"named.yaml"});
  unsetenv("PFEIFE_CONFIGS");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_THAT(list.out, HasSubstr("llama3_8b"));
  EXPECT_THAT(list.out, HasSubstr("h100_sxm_hosts"));
  EXPECT_THAT(typo.err, HasSubstr("did you mean h100_sxm_hosts?"));
}

TEST_F(Fits, AsksForWhatIsNotKnown) {
  const Outcome sequence = fits({config_json("llama3_8b"), cluster("h100_sxm_hosts")});
  EXPECT_EQ(sequence.code, 2);
  EXPECT_THAT(sequence.err, HasSubstr("--sequence 8192"));
  EXPECT_EQ(fits({config_json("llama3_8b")}).code, 2);
  const Outcome nowhere = fits({"nowhere", cluster("h100_sxm_hosts")});
  EXPECT_THAT(nowhere.err, HasSubstr("there is no file \"nowhere\""));
}

// A layer table is one pipeline; more devices than the cluster has are not there.
TEST_F(Fits, PlansAPipelineOfAModelOfLayers) {
  const Outcome outcome =
      fits({(configs() / "tables/two_stage.csv").string(),
            (configs() / "clusters/a100_sxm4_40gb_x8.yaml").string(), "--devices", "2,16"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("samples/s"));
  EXPECT_THAT(outcome.out, HasSubstr("16: the cluster"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("how sure")));  // its times are given
}

}  // namespace
}  // namespace pfeife
