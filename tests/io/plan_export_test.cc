// Plans in the words of frameworks. Their own parsers read them in tests/export_test.sh.
#include "planner/io/plan/plan_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/ir/basics/error.h"
#include "planner/ir/request/framework.h"
#include "planner/ir/result/not_executed.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Layers 0 (embedding), 1 to 12 (six blocks of two layers), 13 (head).
Layers six_blocks() {
  Layers layers{.name = "six"};
  const auto add = [&](const std::string& path) {
    layers.layers.push_back({.name = "n" + std::to_string(layers.size()), .module_path = path});
  };
  add("net.model.embed_tokens");
  for (int block = 0; block < 6; ++block)
    for (const char* part : {".attn", ".mlp"})
      add("net.model.layers." + std::to_string(block) + part);
  add("net.lm_head");
  layers.parameters = {{.name = "net.model.embed_tokens.weight", .users = {LayerId{0}}},
                       {.name = "net.lm_head.weight", .users = {LayerId{13}}}};
  return layers;
}

/// 1F1B, interleaved where there are more stages than ranks.
Plan plan_of(std::vector<std::int32_t> cuts, std::size_t ranks) {
  Plan plan;
  plan.partition = {std::move(cuts)};
  const std::size_t stages = plan.partition.stages();
  plan.spec = {.family = stages > ranks ? "interleaved_1f1b" : "1f1b",
               .ranks = ranks,
               .microbatches = 8,
               .stages_per_rank = stages / ranks};
  plan.placement = round_robin(stages, ranks);
  plan.training.microbatch_size = 2;
  plan.schedule.rows.resize(ranks);
  return plan;
}

Exported exported(const std::string& name, const Plan& plan, const Layers& layers = six_blocks()) {
  return export_plan(name, {plan, layers, {}, {}, run_of_pipeline(plan)});
}

std::string layout(const Plan& plan) {
  const std::string text = exported("megatron", plan).files.at(0).text;
  const std::string flag = "--pipeline-model-parallel-layout '";
  const std::size_t begin = text.find(flag) + flag.size();
  return text.substr(begin, text.find('\'', begin) - begin);
}

// Counted by hand: block b ends with layer 2 b + 2.
TEST(PlanExport, MegatronsLayoutHasTheBlocksOfEveryStage) {
  EXPECT_EQ(layout(plan_of({4}, 2)), "Et*2|t*4L");
  EXPECT_EQ(layout(plan_of({0, 2, 12}, 2)), "E|t|t*5|L");
  const Exported made = exported("megatron", plan_of({4}, 2));
  EXPECT_THAT(made.lost, IsEmpty());
  EXPECT_THAT(made.files.at(0).text,
              AllOf(HasSubstr("  --num-layers 6\n"), HasSubstr("  --micro-batch-size 2\n"),
                    HasSubstr("  --global-batch-size 16\n"), Not(HasSubstr("--recompute"))));
}

TEST(PlanExport, ACutInsideOfABlockIsRefused) {
  const Plan plan = plan_of({5}, 2);  // behind the attention of block 2
  EXPECT_MESSAGE(message_of([&] { exported("megatron", plan); }));
}

TEST(PlanExport, MegatronRecomputesEqualNumbersInAllStages) {
  const auto text = [](const Plan& plan) { return exported("megatron", plan).files.at(0).text; };
  const auto refusal = [](const Plan& plan) {
    return message_of([&] { exported("megatron", plan); });
  };
  Plan plan = plan_of({4}, 2);
  plan.activations.stages = {true, true};
  EXPECT_THAT(text(plan),
              HasSubstr("--recompute-method uniform\n  --recompute-num-layers 4\n"));  // the larger
  plan.activations = {.blocks = {{LayerId{1}, LayerId{2}}, {LayerId{5}, LayerId{6}}}};
  EXPECT_THAT(text(plan), HasSubstr("--recompute-method block\n  --recompute-num-layers 1\n"));
  plan.activations.blocks.push_back({LayerId{7}, LayerId{10}});  // two more, as one piece
  EXPECT_THAT(refusal(plan), HasSubstr("recompute 1 3 blocks"));
  // The attention of every block; of one alone.
  plan.activations = {};
  for (int block = 0; block < 6; ++block)
    plan.activations.blocks.push_back({LayerId{2 * block + 1}, LayerId{2 * block + 1}});
  EXPECT_THAT(text(plan), HasSubstr("--recompute-granularity selective\n"));
  plan.activations.blocks.resize(1);
  EXPECT_THAT(refusal(plan), HasSubstr("attention is recomputed in 1 of 6 blocks"));
}

TEST(PlanExport, EveryReasonOfARefusalIsSaid) {
  Plan plan = plan_of({2, 6, 8}, 2);
  plan.spec.family = "zbv";
  plan.placement = v_shape(2);
  plan.placement.device_of_rank = {DeviceId{1}, DeviceId{0}};
  plan.activations = {.stages = {true, false, false, false}, .except_last = true};
  for (const char* name : {"megatron", "torchtitan", "automodel", "deepspeed"})
    EXPECT_MESSAGE(message_of([&] { exported(name, plan); }));
}

// Rounds are as long as the ranks are many unless that does not divide the microbatches.
TEST(PlanExport, MegatronInterleavesThePlansRounds) {
  Plan plan = plan_of({2, 6, 8}, 2);
  const std::string flag = "--microbatch-group-size-per-virtual-pipeline-stage";
  const auto text = [&] { return exported("megatron", plan).files.at(0).text; };
  EXPECT_THAT(text(), Not(HasSubstr(flag)));
  plan.spec.microbatches = 3;
  EXPECT_THAT(text(), HasSubstr(flag + " 3\n"));
  plan.spec.microbatches = 1;
  EXPECT_THAT(message_of([&] { exported("megatron", plan); }),
              HasSubstr("1 microbatches of an interleaved schedule on 2 ranks"));
}

/// An architecture of six blocks on two ranks, exported.
Exported of_model(const std::string& name, const Architecture& model) {
  const Plan plan = plan_of({4}, 2);
  MeshRun run = run_of_pipeline(plan);
  run.architecture = model;
  run.optimizer = Optimizer::Adam;
  run.type = DType::BFloat16;
  const Layers layers = six_blocks();
  return export_plan(name, {.plan = plan,
                            .layers = layers,
                            .costs = {},
                            .step = {},
                            .run = run,
                            .of_architecture = true,
                            .devices_per_host = 4});
}

Architecture llama_like() {
  return {.name = "small",
          .layers = 6,
          .hidden = 64,
          .heads = 8,
          .kv_heads = 2,
          .head_size = 8,
          .feed_forward = 160,
          .vocabulary = 1000,
          .sequence = 128,
          .norm = NormKind::Rms,
          .activation = Activation::Swiglu,
          .attention = AttentionKind::Fused,
          .position = PositionKind::Rotary,
          .bias = {false, false, false, false},
          .tied_embedding = false};
}

// Mixtral has experts and no norm of queries and keys: dense llama3 is another model.
TEST(PlanExport, TorchtitansModelIsThePlannedOne) {
  Architecture model = llama_like();
  const auto text = [&] { return of_model("torchtitan", model).files.at(0).text; };
  EXPECT_THAT(text(), HasSubstr("family._build_llama3_layers("));
  model.experts = 8, model.top_k = 2;
  EXPECT_THAT(text(), AllOf(HasSubstr("family._build_qwen3_moe_layers("),
                            HasSubstr("num_experts=8,\n"), HasSubstr("top_k=2,\n"),
                            HasSubstr("moe_hidden_dim=160,\n"), HasSubstr("qk_norm = None\n")));
  model.query_key_norm = QueryKeyNorm::Head;
  EXPECT_THAT(text(), Not(HasSubstr("qk_norm = None\n")));
}

TEST(PlanExport, ModelsThatAFrameworkDoesNotHaveAreRefused) {
  Architecture gpt = llama_like();
  gpt.norm = NormKind::Layer, gpt.activation = Activation::Gelu;
  gpt.position = PositionKind::Learned, gpt.attention = AttentionKind::Plain;
  gpt.bias = {}, gpt.dropout = 0.1, gpt.tied_embedding = true;
  EXPECT_NO_THROW(of_model("megatron", gpt));
  Architecture windowed = llama_like();
  windowed.window = 16, windowed.sinks = true;
  for (const char* name : {"megatron", "torchtitan", "automodel", "deepspeed"})
    for (const Architecture& model : {gpt, windowed})
      if (name != std::string("megatron") || model.window > 0)
        EXPECT_MESSAGE(message_of([&] { of_model(name, model); }));
}

TEST(PlanExport, LaunchesAskForHostsOfTheCluster) {
  for (const char* name : {"megatron", "torchtitan", "automodel", "deepspeed"}) {
    const Exported made = of_model(name, llama_like());
    EXPECT_EQ(made.files.back().name, "launch.sh");
    EXPECT_THAT(made.files.back().text,
                AllOf(HasSubstr("PLANNED=2\n"), HasSubstr("GPUS_PER_NODE=${GPUS_PER_NODE:-2}\n")));
  }
}

// Interleaved on two ranks, by hand: blocks 0 / 1 and 2 / 3 / 4 and 5.
TEST(PlanExport, TheOthersNameTheBlocksOfEveryStage) {
  const Plan plan = plan_of({2, 6, 8}, 2);
  EXPECT_THAT(exported("torchtitan", plan).files.at(0).text,
              AllOf(HasSubstr("    [\"tok_embeddings\", *layers(0, 1)],\n    [*layers(1, 3)],\n"),
                    HasSubstr("    [*layers(4, 6), \"norm\", \"lm_head\"],\n")));
  EXPECT_THAT(exported("automodel", plan).files.at(0).text,
              HasSubstr("- [model.layers.1, model.layers.2, model.rotary_emb]\n"));
  // The embedding is layer 0, block b is b + 1.
  EXPECT_THAT(exported("deepspeed", plan_of({0, 8}, 3)).files.at(0).text,
              HasSubstr("FIRST_LAYERS = [0, 1, 5]"));
}

TEST(PlanExport, ModelsWithoutOneListOfBlocksAreRefused) {
  const auto said = [](const std::string& name, const Layers& layers) -> std::string {
    try {
      exported(name, plan_of({4}, 2), layers);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  Layers layers = six_blocks();
  layers.layers[12].module_path = "net.decoder.layers.0";
  EXPECT_MESSAGE(said("megatron", layers));
  for (Layer& layer : layers.layers) layer.module_path = "";
  EXPECT_MESSAGE(said("megatron", layers));
  EXPECT_MESSAGE(said("megatorn", layers));
}

// A plain 1F1B plan runs everywhere. What a plan has besides is refused where the table says so,
// and by every export but that for torch.
TEST(NotExecuted, EachRowSeesWhatItSpeaksOf) {
  const Plan plain = plan_of({4}, 2);
  Plan forward = plain, sliced = plain, offloading = plain, split = plain;
  forward.training.mode = Mode::Forward;
  sliced.schedule.rows[0] = {pfeife::forward(StageId{0}, MicrobatchId{0, 2})};
  offloading.activations.offload = {0.5, 0};
  split.schedule.rows[1] = {Action{Op::BackwardInput, StageId{1}, MicrobatchId{0}}};
  const std::map<std::string, PlanToExecute> having = {
      {"forward only", {forward}},
      {"slices", {sliced}},
      {"offload", {offloading}},
      {"backward split into I and W", {split}},
      {"fp8, nvfp4 and other formats of linear layers", {plain, Format::Fp8}}};
  for (const NotExecuted& row : not_executed()) {
    EXPECT_FALSE(row.has({plain})) << row.what;
    for (const auto& [what, planned] : having)
      EXPECT_EQ(row.has(planned), what == row.what) << row.where << " " << what;
  }
  for (const std::string& name : export_names())
    for (const Plan& refused : {forward, sliced, offloading})
      if (name == "torch")
        EXPECT_NO_THROW(exported(name, refused));
      else
        EXPECT_MESSAGE(message_of([&] { exported(name, refused); }));
}

TEST(PlanExport, EveryFrameworkHasAWriter) {
  for (const Framework& known : frameworks()) EXPECT_THAT(export_names(), Contains(known.name));
}

}  // namespace
}  // namespace pfeife
