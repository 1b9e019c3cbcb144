// The certificates that pfeife-exp writes, judged with the plans that lie beside them.
#include <gmock/gmock.h>

#include "planner/cost/stages/stage_costs.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/io/plan/plan_file.h"
#include "planner/ir/schedule/message_order.h"
#include "planner/schedule_tool/certify.h"
#include "tests/experiments/program.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class Certificates : public ProgramTest {
 protected:
  Certificates() {
    const auto take = [&](const std::filesystem::path& file) {
      std::filesystem::copy_file(configs() / file, folder_ / file.filename());
    };
    take("models/tiny_gpt.pt2");
    take("models/tiny_convnet.pt2");
    take("models/t5_large.pt2");
    take("clusters/laptop.yaml");
    take("clusters/3090_x8.yaml");
  }

  struct Judged {
    Plan plan;
    Certificate certificate;
  };
  /// Plans a case, judges what it wrote, and returns it.
  Judged judged(const std::string& config, const std::string& folder) const {
    write("config.yaml", "version: 1\nbaselines: []\n" + config);
    const Outcome outcome = run({"config.yaml", "--out", "out"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::filesystem::path planned = folder_ / "out" / folder / "planned";
    const tool::Judged said = tool::certify_files(planned, 1, [](const std::string&) {});
    EXPECT_TRUE(said.proven) << said.text;
    return judged(read_plan(planned / "plan.yaml"), read_certificate(planned / "certificate.txt"));
  }
  /// As if messages took much longer than the actions.
  static Schedule with_slow_messages(const Plan& plan, const Certificate& certificate) {
    const StageGraph stages = stage_graph(stage_costs(
        certificate.layers, plan.partition, plan.placement, certificate.cluster, plan.activations));
    std::vector<Nanoseconds> lengths;
    for (const Task& task : dependencies(plan.schedule, stages, plan.placement, {}).tasks)
      lengths.emplace_back(task.kind == TaskKind::Transfer ? 1000 : 1);
    return with_message_order(plan.schedule, stages, plan.placement, lengths, Queues::Pair,
                              MessageRule::BackwardFirst);
  }
  static Judged judged(const Plan& plan, const Certificate& certificate) {
    EXPECT_EQ(tool::disagreement(certificate, plan), "");
    EXPECT_EQ(tool::certify(certificate).refusal, "");
    EXPECT_LE(certificate.bound, plan.estimate.count());
    // A plan that says more than is proven is named; one of another time is not spoken of.
    EXPECT_EQ(tool::unproven(certificate, plan), "");
    Plan boasts = plan;
    boasts.bound->time = Nanoseconds{certificate.bound + 1};
    EXPECT_THAT(tool::unproven(certificate, boasts), HasSubstr("1 ns higher"));
    boasts.bound->time = boasts.estimate + Nanoseconds{1};
    EXPECT_THAT(tool::disagreement(certificate, boasts), HasSubstr("above its own time"));
    Plan faster = plan;
    faster.estimate -= Nanoseconds{1};
    EXPECT_THAT(tool::disagreement(certificate, faster), HasSubstr("by its costs"));
    Plan lazy = plan;  // the last rank leaves out its first action
    lazy.schedule.rows.back().erase(lazy.schedule.rows.back().begin());
    EXPECT_THAT(tool::disagreement(certificate, lazy), HasSubstr("its schedule is wrong"));
    Plan ordered = plan;
    ordered.schedule = with_slow_messages(plan, certificate);
    EXPECT_EQ(tool::disagreement(certificate, ordered), "");
    EXPECT_THAT(tool::summary(certificate, {}, &plan),
                HasSubstr(std::to_string(plan.spec.microbatches) + " microbatch"));
    return {plan, certificate};
  }
};

// plan.yaml names its files from where it lies: they move together, and no working folder matters.
TEST_F(Certificates, AreProvenWhereverPlanAndFilesAreMovedTogether) {
  std::filesystem::create_directories(folder_ / "here");
  for (const char* const file : {"tiny_gpt.pt2", "laptop.yaml"})
    std::filesystem::rename(folder_ / file, folder_ / "here" / file);
  write("here/config.yaml",
        "version: 1\nmodel: tiny_gpt.pt2\ncluster: laptop.yaml\nbaselines: []\n"
        "cases: {devices: 2, microbatches: 4}\nplan: {families: [1f1b]}\n");
  const std::filesystem::path plan = "devices=2,microbatches=4/planned/plan.yaml";
  for (const std::filesystem::path& out :
       {std::filesystem::path("here/out"), folder_ / "here" / "absolute"})
    EXPECT_EQ(run({"here/config.yaml", "--out", out.string()}).code, 0);
  const auto said = [&](const std::filesystem::path& file) {
    return tool::certify_files(file, 1, [](const std::string&) {});
  };
  std::filesystem::rename(folder_ / "here", folder_ / "there");
  for (const char* const out : {"there/out", "there/absolute"}) {
    const tool::Judged judged = said(folder_ / out / plan);
    EXPECT_TRUE(judged.proven) << judged.text;
  }
  std::filesystem::rename(folder_ / "there" / "out", folder_ / "alone");
  const tool::Judged alone = said(folder_ / "alone" / plan);
  EXPECT_FALSE(alone.proven);
  EXPECT_THAT(alone.text, ::testing::StartsWith("costs not checked: "));
}

TEST_F(Certificates, OfCutsAndScheduleAloneProveTheBoundOfThePlan) {
  const Judged found = judged(
      "model: tiny_gpt.pt2\ncluster: laptop.yaml\ncases: {devices: 2, microbatches: 6}\n"
      "plan: {families: certified, stages_per_rank: [1, 2]}\n",
      "devices=2,microbatches=6");
  EXPECT_EQ(found.plan.bound->time.count(), found.certificate.bound);
  // Each of the plan's schedules must be among the proofs, and its limits be kept to.
  EXPECT_EQ(found.plan.bound->schedules.size(), found.certificate.proofs.size());
  for (std::size_t p = 0; p < found.certificate.proofs.size(); ++p) {
    Certificate fewer = found.certificate;
    if (fewer.proofs[p].spec == found.plan.spec) continue;
    fewer.proofs.erase(fewer.proofs.begin() + static_cast<std::ptrdiff_t>(p));
    EXPECT_EQ(tool::certify(fewer).refusal, "");
    EXPECT_NE(tool::unproven(fewer, found.plan), "") << p;
  }
  Certificate lower = found.certificate;
  --lower.memory_limit[1].value;
  EXPECT_EQ(tool::disagreement(lower, found.plan), "");
  EXPECT_NE(tool::unproven(lower, found.plan), "");
}

TEST_F(Certificates, CoverTheChoiceOfRecomputedStages) {
  const auto with = [&](const std::string& plan) {
    std::filesystem::remove_all(folder_ / "out");
    Judged found = judged(
        "model: tiny_gpt.pt2\ncluster: laptop.yaml\ncases: {devices: 2, microbatches: 6}\n"
        "plan: {families: [1f1b, zb_h1], stages_per_rank: [1], " +
            plan + "}\n",
        "devices=2,microbatches=6");
    EXPECT_EQ(found.plan.bound->time.count(), found.certificate.bound);
    return found;
  };
  const Judged full = with("recompute: full");
  EXPECT_EQ(full.certificate.recompute, Recompute::Full);
  EXPECT_EQ(full.plan.activations.stages, std::vector<bool>(2, true));
  // So little is left of 4096 MiB that one stage must recompute.
  const Judged choose = with("recompute: if_needed, reserve: 4095.81 MiB");
  EXPECT_EQ(choose.certificate.recompute, Recompute::Choose);
  EXPECT_THAT(choose.plan.activations.stages, Contains(true));
  EXPECT_LT(choose.certificate.bound, full.certificate.bound);
  // It is not said of plans that recompute what the certificate does not speak of.
  Certificate none = choose.certificate;
  none.recompute = Recompute::None;
  EXPECT_THAT(tool::disagreement(none, choose.plan), HasSubstr("recomputes other stages"));
  none.recompute = Recompute::Full;
  Plan without = choose.plan;
  without.activations.stages = {false, false};
  EXPECT_THAT(tool::disagreement(none, without), HasSubstr("recomputes other stages"));
}

TEST_F(Certificates, OfGivenCutsAreOfTheseCuts) {
  const Judged found = judged(
      "model: tiny_gpt.pt2\ncluster: laptop.yaml\ncases: {devices: 2, microbatches: 6}\n"
      "plan: {families: certified, cuts: [7, 12, 25]}\n",
      "devices=2,microbatches=6");
  EXPECT_LE(found.plan.bound->time, found.plan.estimate);
  EXPECT_EQ(found.plan.bound->time.count(), found.certificate.bound);
  EXPECT_TRUE(found.plan.bound->given_cuts);
  EXPECT_THAT(tool::summary(found.certificate, {}, nullptr), HasSubstr("the only legal cuts"));
  Plan other = found.plan;
  other.partition.cuts[1] = 13;
  EXPECT_THAT(tool::disagreement(found.certificate, other), HasSubstr("cuts"));
  Certificate more = found.certificate;
  ++more.bound;
  EXPECT_MESSAGE(tool::certify(more).refusal);
}

// The judge makes the time of REDUCE_NORM again, from what the certificate has of the device.
TEST_F(Certificates, KnowWhatClippingTakes) {
  const Judged found = judged(
      "model: tiny_gpt.pt2\ncluster: laptop.yaml\ntraining: {clip_norm: 1}\n"
      "cases: {devices: 2, microbatches: 4}\nplan: {families: [1f1b]}\n",
      "devices=2,microbatches=4");
  EXPECT_EQ(found.certificate.norm, StepNorm::Clipped);
  EXPECT_EQ(found.plan.bound->time, found.plan.estimate);
  Certificate slower = found.certificate;
  slower.cluster.kinds[0].kernel_overhead += Nanoseconds{1};
  EXPECT_THAT(tool::disagreement(slower, found.plan), HasSubstr("by its costs"));
  Plan free = found.plan;
  free.clip_norm = 0;
  EXPECT_THAT(tool::disagreement(found.certificate, free),
              HasSubstr("wait for less than is proven"));
}

// T5 has a decoder that waits for the encoder alone: a stage of few layers may send nothing on.
TEST_F(Certificates, MayBeOfLinkedStagesOnly) {
  const Judged found = judged(
      "model: t5_large.pt2\ncluster: 3090_x8.yaml\ncases: {devices: 2, microbatches: 4}\n"
      "plan: {families: [interleaved_1f1b], stages_per_rank: [3], iterations: 5}\n",
      "devices=2,microbatches=4");
  const std::string linked = "each stage linked to the next by values and gradients";
  EXPECT_TRUE(found.plan.bound->linked);
  EXPECT_NE(with_slow_messages(found.plan, found.certificate), found.plan.schedule);
  EXPECT_THAT(tool::summary(found.certificate, {}, nullptr), HasSubstr(linked));
  Certificate all = found.certificate;
  for (CertifiedProof& proof : all.proofs) proof.linked = false;
  EXPECT_MESSAGE(tool::certify(all).refusal);
}

// Where several problems were open, the certificate is of the plan's own, and the plan says of what
// else its bound holds.
TEST_F(Certificates, AreOfThePlansOwnProblemWhereMicrobatchSizesWereOpen) {
  const Judged found = judged(
      "model: tiny_gpt.pt2\ncluster: laptop.yaml\ntraining: {global_batch: 12}\n"
      "plan: {families: certified, stages_per_rank: [1, 2]}\n",
      "devices=2,global_batch=12");
  for (const CertifiedProof& proof : found.certificate.proofs)
    EXPECT_EQ(proof.spec.microbatches, found.plan.spec.microbatches);
  EXPECT_LE(found.plan.bound->time.count(), found.certificate.bound);
  EXPECT_EQ(found.plan.bound->uncertified,
            "the other microbatch sizes of the global batch: 1, 2, 3, 4, 6, 12");
}

TEST_F(Certificates, AreOfThePlansOwnProblemWhereOrdersWereOpen) {
  const Judged layers = judged(
      "model: tiny_convnet.pt2\ncluster: laptop.yaml\n"
      "plan: {families: [1f1b, zb_h1], order: search}\n",
      "devices=2,microbatches=8");
  EXPECT_EQ(layers.certificate.layers.order, layers.plan.linear_order);
  EXPECT_THAT(layers.plan.bound->uncertified, HasSubstr("the other orders of the layers: "));
  std::filesystem::remove_all(folder_ / "out");
  const Judged devices = judged(
      "model: tiny_gpt.pt2\ncluster: 3090_x8.yaml\ncases: {devices: 8, microbatches: 16}\n"
      "plan: {families: [1f1b], devices: search}\n",
      "devices=8,microbatches=16");
  EXPECT_EQ(devices.plan.bound->uncertified, "every order of the devices");
  EXPECT_LT(devices.plan.bound->time.count(), devices.certificate.bound);
}

}  // namespace
}  // namespace pfeife
