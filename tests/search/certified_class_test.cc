// What certificates prove of all that a plan's bound covers, where something was open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/schedule_tool/certify.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A plan of 4 microbatches, beside which 2 microbatches and another order were open, and the three
/// certificates. Nothing but their claims is looked at here.
struct Claims {
  Claims() {
    plan.bound = Bound{Nanoseconds{100}, "", {{"model", "captured", 4}}};
    plan.bound->problems.push_back({"model", "captured", 2});
    plan.bound->problems.push_back({"model", "depth_first", 4});
    for (const CoveredProblem& problem : plan.bound->problems) {
      Certificate& c = certificates.emplace_back();
      c.layers.digest = problem.model_digest, c.layers.order = problem.order;
      c.layers.layers.resize(3);
      c.cluster = uniform_cluster(2, DeviceKind{}, {1e9}, Nanoseconds{0});
      c.cluster.paths[1].latency = Nanoseconds{2};  // the devices are not interchangeable
      c.device_of_rank = {DeviceId{0}, DeviceId{1}};
      c.memory_limit = {Bytes{9}, Bytes{9}};
      for (const char* family : {"1f1b", "zb_h1"})
        c.proofs.push_back({.spec = {family, 2, problem.microbatches, 1, {}, {}}});
      c.bound = 100;
    }
    plan.model_digest = "model", plan.spec = certificates[0].proofs[0].spec;
    plan.bound->memory_limit = certificates[0].memory_limit;
    for (const CertifiedProof& proof : certificates[0].proofs)
      plan.bound->schedules.push_back(proof.spec);
  }
  tool::Proven proven() const { return tool::proven(certificates, &plan); }
  bool all() const { return tool::proves_all_of(proven(), &plan); }
  std::string summary() const {
    return tool::summary(certificates, std::vector<tool::Verdict>(certificates.size()), &plan);
  }
  Plan plan;
  std::vector<Certificate> certificates;
};

TEST(CertifiedClass, HasEveryProblemOfThePlan) {
  const Claims claims;
  EXPECT_EQ(claims.proven().bound, 100);
  EXPECT_THAT(claims.proven().missing, IsEmpty());
  EXPECT_TRUE(claims.all());
  EXPECT_THAT(claims.summary(), HasSubstr("whichever of these 3 problems it is of"));
}

TEST(CertifiedClass, TellsAProblemOfWhichThereIsNoCertificate) {
  Claims claims;
  claims.certificates.erase(claims.certificates.begin() + 1);
  EXPECT_THAT(claims.proven().missing, ElementsAre(claims.plan.bound->problems[1]));
  EXPECT_FALSE(claims.all());
  EXPECT_THAT(claims.summary(), HasSubstr("ALSO COVERS 2 microbatches, captured order, OF WHICH"));
  claims = {};
  claims.certificates.pop_back();
  EXPECT_THAT(claims.proven().missing, ElementsAre(claims.plan.bound->problems[2]));
  // The plan's own certificate does not do for the others.
  claims.certificates.resize(1);
  EXPECT_EQ(claims.proven().missing.size(), 2U);
}

TEST(CertifiedClass, IsNotProvenFurtherThanItsWeakestClaim) {
  Claims claims;
  claims.certificates[1].bound = 99;
  EXPECT_EQ(claims.proven().bound, 99);
  EXPECT_FALSE(claims.all());
  EXPECT_THAT(claims.summary(), HasSubstr("THE PLAN'S BOUND IS 1 ns HIGHER"));
  // Of two of one problem the better counts; one of a problem that the plan does not name, not.
  claims.certificates.push_back(Claims().certificates[1]);
  claims.certificates.push_back(Claims().certificates[1]);
  claims.certificates.back().layers.order = "least_live";
  claims.certificates.back().bound = 1;
  EXPECT_EQ(claims.proven().bound, 100);
  EXPECT_TRUE(claims.all());
}

TEST(CertifiedClass, IsOfTheSameDevicesLimitsAndSchedules) {
  const auto spoils = [](const auto& change) {
    Claims claims;
    change(claims.certificates[2]);
    return claims.proven().missing.size() == 1 && !claims.all();
  };
  EXPECT_FALSE(spoils([](Certificate&) {}));
  EXPECT_TRUE(spoils([](Certificate& c) { c.layers.digest = "another"; }));
  EXPECT_TRUE(spoils([](Certificate& c) { c.cluster.digest = "another"; }));
  EXPECT_TRUE(spoils([](Certificate& c) { c.cluster.paths[1].latency = Nanoseconds{1}; }));
  EXPECT_TRUE(spoils([](Certificate& c) { std::swap(c.device_of_rank[0], c.device_of_rank[1]); }));
  EXPECT_TRUE(spoils([](Certificate& c) { c.memory_limit[0] = Bytes{8}; }));
  EXPECT_TRUE(spoils([](Certificate& c) { c.proofs.pop_back(); }));
  EXPECT_TRUE(spoils([](Certificate& c) { c.proofs[0].spec.microbatches = 2; }));
  EXPECT_TRUE(spoils([](Certificate& c) { c.proofs[0].spec.loops = 2; }));
  EXPECT_FALSE(spoils([](Certificate& c) { c.recompute = Recompute::Choose; }));  // covers none
  EXPECT_TRUE(spoils([](Certificate& c) { c.recompute = Recompute::Full; }));
  // Any order of the same stages is all schedules of them.
  EXPECT_FALSE(spoils([](Certificate& c) { c.proofs.pop_back(), c.proofs[0].any_order = true; }));
  EXPECT_TRUE(spoils([](Certificate& c) {
    c.proofs.pop_back(), c.proofs[0].any_order = true, c.proofs[0].spec.loops = 2;
  }));
}

// All schedules that the bound names are looked for, in the plan's own problem by all that they
// are; and its limits, of which a certificate may have higher ones.
TEST(CertifiedClass, OfThePlansOwnProblemHasEverySchedule) {
  const auto missing = [](const auto& change) {
    Claims claims;
    claims.plan.bound->problems.clear();
    ScheduleSpec looped{"looped", 2, 4, 2, 2, {1}};
    claims.plan.bound->schedules.push_back(looped);
    claims.certificates.resize(1);
    claims.certificates[0].proofs.push_back({.spec = looped});
    change(claims.plan, claims.certificates[0]);
    return !claims.all();
  };
  EXPECT_FALSE(missing([](Plan&, Certificate&) {}));
  EXPECT_TRUE(missing([](Plan&, Certificate& c) { c.proofs.pop_back(); }));
  EXPECT_TRUE(missing([](Plan&, Certificate& c) { c.proofs.erase(c.proofs.begin() + 1); }));
  EXPECT_TRUE(missing([](Plan&, Certificate& c) { c.proofs[2].spec.loop_batch = 4; }));
  EXPECT_TRUE(missing([](Plan&, Certificate& c) { c.proofs[2].spec.prefetch = {2}; }));
  EXPECT_FALSE(missing([](Plan&, Certificate& c) { c.proofs[2].any_order = true; }));
  EXPECT_FALSE(missing([](Plan&, Certificate& c) { c.memory_limit[1] = Bytes{10}; }));
  EXPECT_TRUE(missing([](Plan&, Certificate& c) { c.memory_limit[1] = Bytes{8}; }));
  EXPECT_TRUE(missing([](Plan& p, Certificate&) { p.bound->memory_limit[0] = Bytes{10}; }));
  EXPECT_TRUE(missing([](Plan& p, Certificate&) { p.bound->schedules[0].family = "gpipe"; }));
}

// DualPipeV needs twice as many microbatches as ranks: of 2 there is nothing to prove, of 4 there
// is.
TEST(CertifiedClass, NeedsNoProofOfAScheduleThatThereIsNot) {
  Claims claims;
  claims.plan.bound->schedules[0].family = "dualpipev";
  claims.plan.bound->schedules[0].loops = 2;
  for (Certificate& c : claims.certificates)
    c.proofs[0].spec.family = "dualpipev", c.proofs[0].spec.loops = 2;
  claims.certificates[1].proofs.erase(claims.certificates[1].proofs.begin());
  EXPECT_TRUE(claims.all());
  claims.certificates[2].proofs.erase(claims.certificates[2].proofs.begin());
  EXPECT_FALSE(claims.all());
}

// Two devices of which one is faster: both orders, or a proof of two that are as fast as that one.
TEST(CertifiedClass, OfAnyDevicesNeedsEveryOrderOrAProofOfAny) {
  Claims claims;
  claims.plan.bound->problems.resize(1);
  claims.plan.bound->problems[0].any_devices = true;
  Certificate& own = claims.certificates[0];
  own.cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{0});
  own.cluster.kinds.resize(2);
  own.cluster.kind_of_device = {0, 1, 0, 0};
  for (Layer& layer : own.layers.layers)
    layer.times = {{Nanoseconds{10}, {}, {}, {}}, {Nanoseconds{20}, {}, {}, {}}};
  claims.certificates = {own, own};
  EXPECT_THAT(claims.proven().missing, ElementsAre(claims.plan.bound->problems[0]));
  EXPECT_THAT(claims.summary(), HasSubstr("captured order, any order of the devices, OF WHICH"));
  Certificate& other = claims.certificates[1];
  std::swap(other.device_of_rank[0], other.device_of_rank[1]);
  other.bound = 98;
  EXPECT_EQ(claims.proven().bound, 98);
  EXPECT_FALSE(claims.all());
  other.bound = 100;
  EXPECT_TRUE(claims.all());
  // The limits of the devices must be the same.
  other.memory_limit = {Bytes{9}, Bytes{8}};
  EXPECT_EQ(claims.proven().missing.size(), 1U);
  other.memory_limit = {Bytes{9}, Bytes{9}};
  other.device_of_rank = claims.certificates[0].device_of_rank;
  EXPECT_EQ(claims.proven().missing.size(), 1U);
  other.device_of_rank = {DeviceId{2}, DeviceId{3}}, other.bound = 97;
  EXPECT_EQ(claims.proven().bound, 97);
  EXPECT_THAT(claims.summary(), HasSubstr("whichever device runs which rank"));
}

}  // namespace
}  // namespace pfeife
