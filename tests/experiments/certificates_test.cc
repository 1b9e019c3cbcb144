// The certificates that pfeife-exp writes, judged with the plans that lie beside them.
#include <gmock/gmock.h>

#include "planner/io/plan/certificate_file.h"
#include "planner/io/plan/plan_file.h"
#include "planner/schedule_tool/certify.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
    std::vector<Certificate> certificates;  // of several problems if something was open
    const Certificate& own() const { return certificates.front(); }
  };
  /// Plans a case, judges what it wrote, and returns it.
  Judged judged(const std::string& config, const std::string& folder) const {
    write("config.yaml", "version: 1\nbaselines: []\n" + config);
    const Outcome outcome = run({"config.yaml", "--out", "out"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::filesystem::path planned = folder_ / "out" / folder / "planned";
    return judged(read_plan(planned / "plan.yaml"), read_certificate(planned / "certificate.txt"));
  }
  static Judged judged(Plan plan, std::vector<Certificate> certificates) {
    EXPECT_EQ(tool::disagreement(certificates.front(), plan), "");
    std::vector<tool::Verdict> verdicts;
    for (const Certificate& certificate : certificates) {
      verdicts.push_back(tool::certify(certificate));
      EXPECT_EQ(verdicts.back().refusal, "");
    }
    const tool::Proven proven = tool::proven(certificates, &plan);
    EXPECT_LE(proven.bound, plan.estimate.count());
    // Of a plan that says more than is proven this is said; one of another time is not spoken of.
    EXPECT_TRUE(tool::proves_all_of(proven, &plan));
    Plan boasts = plan;
    boasts.bound->time = Nanoseconds{proven.bound + 1};
    EXPECT_FALSE(tool::proves_all_of(tool::proven(certificates, &boasts), &boasts));
    EXPECT_THAT(tool::summary(certificates, verdicts, &boasts),
                HasSubstr("THE PLAN'S BOUND IS 1 ns HIGHER"));
    boasts.bound->time = boasts.estimate + Nanoseconds{1};
    EXPECT_THAT(tool::disagreement(certificates.front(), boasts), HasSubstr("above its own time"));
    Plan faster = plan;
    faster.estimate -= Nanoseconds{1};
    EXPECT_THAT(tool::disagreement(certificates.front(), faster), HasSubstr("by its costs"));
    Plan lazy = plan;  // the last rank leaves out its first action
    lazy.schedule.rows.back().erase(lazy.schedule.rows.back().begin());
    EXPECT_THAT(tool::disagreement(certificates.front(), lazy), HasSubstr("its schedule is wrong"));
    const std::string said = tool::summary(certificates, verdicts, &plan);
    EXPECT_THAT(said, HasSubstr(std::to_string(plan.spec.microbatches) + " microbatch"));
    return {std::move(plan), std::move(certificates)};
  }
};

TEST_F(Certificates, OfCutsAndScheduleAloneProveTheBoundOfThePlan) {
  const Judged found = judged(
      "model: tiny_gpt.pt2\ncluster: laptop.yaml\ncases: {devices: 2, microbatches: 6}\n"
      "plan: {families: certified, loops: [1, 2]}\n",
      "devices=2,microbatches=6");
  EXPECT_EQ(found.plan.bound->time.count(), found.own().bound);
  // Each of the plan's schedules must be among the proofs, and its limits be kept to.
  EXPECT_EQ(found.plan.bound->schedules.size(), found.own().proofs.size());
  for (std::size_t p = 0; p < found.own().proofs.size(); ++p) {
    Certificate fewer = found.own();
    if (fewer.proofs[p].spec == found.plan.spec) continue;
    fewer.proofs.erase(fewer.proofs.begin() + static_cast<std::ptrdiff_t>(p));
    EXPECT_EQ(tool::certify(fewer).refusal, "");
    EXPECT_FALSE(tool::proves_all_of(tool::proven({fewer}, &found.plan), &found.plan)) << p;
  }
  Certificate lower = found.own();
  --lower.memory_limit[1].value;
  EXPECT_EQ(tool::disagreement(lower, found.plan), "");
  EXPECT_FALSE(tool::proves_all_of(tool::proven({lower}, &found.plan), &found.plan));
}

TEST_F(Certificates, CoverTheChoiceOfRecomputedStages) {
  const auto with = [&](const std::string& plan) {
    std::filesystem::remove_all(folder_ / "out");
    Judged found = judged(
        "model: tiny_gpt.pt2\ncluster: laptop.yaml\ncases: {devices: 2, microbatches: 6}\n"
        "plan: {families: [1f1b, zb_h1], loops: [1], " +
            plan + "}\n",
        "devices=2,microbatches=6");
    EXPECT_EQ(found.plan.bound->time.count(), found.own().bound);
    return found;
  };
  const Judged full = with("recompute: full");
  EXPECT_EQ(full.own().recompute, Recompute::Full);
  EXPECT_EQ(full.plan.recompute, std::vector<bool>(2, true));
  // Of 4096 MiB so little is left that one stage must recompute.
  const Judged choose = with("recompute: if_needed, reserve: 4095.81 MiB");
  EXPECT_EQ(choose.own().recompute, Recompute::Choose);
  EXPECT_THAT(choose.plan.recompute, Contains(true));
  EXPECT_LT(choose.own().bound, full.own().bound);
  // It is not said of plans that recompute what the certificate does not speak of.
  Certificate none = choose.own();
  none.recompute = Recompute::None;
  EXPECT_THAT(tool::disagreement(none, choose.plan), HasSubstr("recomputes other stages"));
  none.recompute = Recompute::Full;
  Plan without = choose.plan;
  without.recompute = {false, false};
  EXPECT_THAT(tool::disagreement(none, without), HasSubstr("recomputes other stages"));
}

TEST_F(Certificates, OfGivenCutsAreOfTheseCuts) {
  const Judged found = judged(
      "model: tiny_gpt.pt2\ncluster: laptop.yaml\ncases: {devices: 2, microbatches: 6}\n"
      "plan: {families: certified, cuts: [7, 12, 25]}\n",
      "devices=2,microbatches=6");
  EXPECT_EQ(found.plan.bound->time, found.plan.estimate);
  EXPECT_EQ(found.plan.bound->time.count(), found.own().bound);
  EXPECT_THAT(found.plan.bound->covers, HasSubstr("the given cuts of the captured order"));
  EXPECT_THAT(tool::summary(found.certificates, {{}}, nullptr), HasSubstr("the only legal cuts"));
  Plan other = found.plan;
  other.partition.cuts[1] = 13;
  EXPECT_THAT(tool::disagreement(found.own(), other), HasSubstr("cuts"));
  Certificate more = found.own();
  ++more.bound;
  EXPECT_THAT(tool::certify(more).refusal, HasSubstr("faster than the bound"));
}

// T5 has a decoder that waits for the encoder alone: a stage of few layers may send nothing on.
TEST_F(Certificates, MayBeOfLinkedStagesOnly) {
  const Judged found = judged(
      "model: t5_large.pt2\ncluster: 3090_x8.yaml\ncases: {devices: 2, microbatches: 4}\n"
      "plan: {families: [interleaved_1f1b], loops: [3], iterations: 5}\n",
      "devices=2,microbatches=4");
  const std::string linked = "each stage linked to the next by values and gradients";
  EXPECT_THAT(found.plan.bound->covers, HasSubstr(linked));
  EXPECT_THAT(tool::summary(found.certificates, {{}}, nullptr), HasSubstr(linked));
  Certificate all = found.own();
  for (CertifiedProof& proof : all.proofs) proof.linked = false;
  EXPECT_THAT(tool::certify(all).refusal, HasSubstr("may not exist"));
}

TEST_F(Certificates, ProveTheBoundOfEveryMicrobatchSize) {
  const std::string config =
      "model: tiny_gpt.pt2\ncluster: laptop.yaml\ntraining: {global_batch: 12}\n"
      "plan: {families: certified, loops: [1, 2]}\n";
  const Judged found = judged(config, "devices=2,global_batch=12");
  ASSERT_EQ(found.certificates.size(), 6U);
  EXPECT_EQ(tool::proven(found.certificates, &found.plan).bound, found.plan.bound->time.count());
  // Each holds for its own size: no plan of that size alone is faster.
  for (const Certificate& certificate : found.certificates) {
    const std::size_t microbatches = certificate.proofs.front().spec.microbatches;
    const std::string size = std::to_string(12 / microbatches);
    const std::string out = "size" + size;
    EXPECT_EQ(run({"config.yaml", "--out", out, "--set", "training.microbatch_size=" + size}).code,
              0);
    const Plan plan =
        read_plan(folder_ / out / ("devices=2,microbatches=" + std::to_string(microbatches)) /
                  "planned" / "plan.yaml");
    EXPECT_EQ(plan.spec.microbatches, microbatches);
    EXPECT_LE(certificate.bound, plan.estimate.count());
    Certificate more = certificate;
    more.bound = plan.estimate.count() + 1;
    EXPECT_NE(tool::certify(more).refusal, "") << size;
    // It is of the figures of this size: it speaks of the plan that was made for it alone.
    if (microbatches == found.plan.spec.microbatches)
      EXPECT_EQ(tool::disagreement(certificate, plan), "");
    else
      EXPECT_THAT(tool::disagreement(found.own(), plan), Not(IsEmpty()));
  }
  // One left out, wherever it stood, is missed.
  for (std::size_t k = 1; k < found.certificates.size(); ++k) {
    std::vector<Certificate> fewer = found.certificates;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
    const tool::Proven proven = tool::proven(fewer, &found.plan);
    EXPECT_EQ(proven.missing.size(), 1U);
    EXPECT_FALSE(tool::proves_all_of(proven, &found.plan));
  }
}

TEST_F(Certificates, ProveTheBoundOfEveryOrderOfTheLayers) {
  const Judged found = judged(
      "model: tiny_convnet.pt2\ncluster: laptop.yaml\n"
      "plan: {families: [1f1b, zb_h1], order: search}\n",
      "devices=2,microbatches=8");
  EXPECT_EQ(found.own().layers.order, found.plan.order);
  EXPECT_EQ(found.certificates.size(), found.plan.bound->problems.size());
  EXPECT_GT(found.certificates.size(), 1U);
  EXPECT_EQ(tool::proven(found.certificates, &found.plan).bound, found.plan.bound->time.count());
}

TEST_F(Certificates, ProveTheBoundOfEveryOrderOfTheDevices) {
  const auto of_devices = [&](int count) {
    std::filesystem::remove_all(folder_ / "out");
    const Judged found = judged(
        "model: tiny_gpt.pt2\ncluster: 3090_x8.yaml\ncases: {devices: " + std::to_string(count) +
            ", microbatches: 16}\n"
            "plan: {families: [1f1b], devices: search}\n",
        "devices=" + std::to_string(count) + ",microbatches=16");
    EXPECT_EQ(tool::proven(found.certificates, &found.plan).bound, found.plan.bound->time.count());
    return found;
  };
  // Two bridged pairs: three orders differ. One left out is missed.
  Judged four = of_devices(4);
  ASSERT_EQ(four.certificates.size(), 3U);
  four.certificates.pop_back();
  EXPECT_EQ(tool::proven(four.certificates, &four.plan).missing.size(), 1U);
  // Of eight devices too many differ: one proof is of any of them.
  Judged eight = of_devices(8);
  ASSERT_EQ(eight.certificates.size(), 2U);
  EXPECT_FALSE(tool::of_any_devices(eight.own(), eight.own()));
  EXPECT_TRUE(tool::of_any_devices(eight.certificates[1], eight.own()));
  eight.certificates.pop_back();
  EXPECT_EQ(tool::proven(eight.certificates, &eight.plan).missing.size(), 1U);
}

}  // namespace
}  // namespace pfeife
