// What the bound of a plan says beyond what its certificate proves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/schedule_tool/certify.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

/// A plan and a certificate that claims as much. Nothing but their claims is looked at here.
struct Claims {
  Claims() {
    certificate.layers.order = "captured";
    certificate.layers.layers.resize(3);
    certificate.memory_limit = {Bytes{9}, Bytes{9}};
    for (const char* family : {"1f1b", "zb_h1"})
      certificate.proofs.push_back({.spec = {family, 2, 4, 1, {}, {}}});
    certificate.proofs.push_back({.spec = {"looped", 2, 4, 2, 2, {1}}});
    certificate.bound = 100;
    plan.bound = Bound{Nanoseconds{100}};
    plan.bound->memory_limit = certificate.memory_limit;
    for (const CertifiedProof& proof : certificate.proofs)
      plan.bound->schedules.push_back(proof.spec);
    plan.spec = certificate.proofs[0].spec;
  }
  Plan plan;
  Certificate certificate;
};

template <class Change>
std::string unproven_after(const Change& change) {
  Claims claims;
  change(claims.plan, claims.certificate);
  return tool::unproven(claims.certificate, claims.plan);
}

TEST(Unproven, IsNothingOfAPlanThatClaimsWhatItsCertificateProves) {
  EXPECT_EQ(unproven_after([](Plan&, Certificate&) {}), "");
  // A proof of any order of the same stages is one of all their schedules; limits may be higher.
  EXPECT_EQ(unproven_after([](Plan&, Certificate& c) {
              c.proofs.erase(c.proofs.begin()), c.proofs[0].any_order = true;
            }),
            "");
  EXPECT_EQ(unproven_after([](Plan&, Certificate& c) { c.memory_limit[1] = Bytes{10}; }), "");
  EXPECT_EQ(unproven_after([](Plan& p, Certificate&) { p.bound->time = Nanoseconds{99}; }), "");
}

TEST(Unproven, IsAPlanOfAnotherScheduleThanItsBoundCovers) {
  EXPECT_MESSAGE(unproven_after([](Plan& p, Certificate&) { p.spec.family = "zb_greedy"; }));
}

TEST(Unproven, IsEveryScheduleWithoutAProofOfAllThatItIs) {
  const auto missing = [](const auto& change) {
    return unproven_after([&](Plan&, Certificate& c) { change(c.proofs); });
  };
  using Proofs = std::vector<CertifiedProof>;
  EXPECT_MESSAGE(missing([](Proofs& p) { p.pop_back(); }));
  EXPECT_MESSAGE(missing([](Proofs& p) { p.erase(p.begin() + 1); }));
  EXPECT_NE(missing([](Proofs& p) { p[2].spec.loop_batch = 4; }), "");
  EXPECT_NE(missing([](Proofs& p) { p[2].spec.prefetch = {2}; }), "");
  EXPECT_NE(missing([](Proofs& p) { p[0].spec.microbatches = 2; }), "");
  EXPECT_NE(missing([](Proofs& p) { p[2].any_order = true, p[2].spec.stages_per_rank = 3; }), "");
  EXPECT_NE(missing([](Proofs& p) { p[2].any_order = true, p[2].spec.microbatches = 2; }), "");
  // There is no such schedule: nothing can be proven of it.
  EXPECT_NE(unproven_after([](Plan& p, Certificate& c) {
              c.proofs[0].spec.family = p.bound->schedules[0].family = "dualpipev";
            }),
            "");
}

TEST(Unproven, IsALaterTimeAndAHigherLimit) {
  EXPECT_EQ(unproven_after([](Plan&, Certificate& c) { c.bound = 99; }),
            "the plan's bound is 1 ns higher than what is proven");
  EXPECT_NE(unproven_after([](Plan& p, Certificate&) { p.bound->memory_limit[0] = Bytes{10}; }),
            "");
  EXPECT_NE(unproven_after([](Plan&, Certificate& c) { c.memory_limit[1] = Bytes{8}; }), "");
}

TEST(Unproven, IsToldWithWhatThePlanSaysIsNotCertified) {
  Claims claims;
  EXPECT_EQ(tool::summary(claims.certificate, {}, &claims.plan).find("ertified"),
            std::string::npos);
  claims.plan.bound->uncertified = "the other microbatch sizes of the global batch: 1, 2";
  EXPECT_EQ(tool::unproven(claims.certificate, claims.plan), "");
  EXPECT_MESSAGE(tool::summary(claims.certificate, {}, &claims.plan));
  claims.certificate.bound = 99;
  EXPECT_MESSAGE(tool::summary(claims.certificate, {}, &claims.plan));
}

TEST(Unproven, IsEveryChoiceOfRecomputedStagesThatTheProofsLeaveOut) {
  const auto after = [](Recompute said, Recompute proven) {
    return unproven_after(
        [&](Plan& plan, Certificate& c) { plan.bound->recompute = said, c.recompute = proven; });
  };
  using enum Recompute;
  for (const Recompute said : {None, Full, Choose}) {
    EXPECT_EQ(after(said, said), "");
    EXPECT_EQ(after(said, Choose), "");
  }
  EXPECT_MESSAGE(after(Choose, None));
  EXPECT_MESSAGE(after(Choose, Full));
  EXPECT_MESSAGE(after(None, Full));
  EXPECT_MESSAGE(after(Full, None));
}

TEST(Unproven, IsEveryCutThatTheProofsLeaveOut) {
  const auto after = [](const auto& change) {
    return unproven_after([&](Plan& plan, Certificate& c) {
      c.device_of_rank = {DeviceId{0}, DeviceId{0}}, c.cluster.kind_of_device = {0};
      const Nanoseconds ten{10};
      for (Layer& layer : c.layers.layers) layer.times = {{ten, ten, ten, ten}};
      change(*plan.bound, c.proofs);
    });
  };
  using Proofs = std::vector<CertifiedProof>;
  EXPECT_MESSAGE(after([](Bound&, Proofs& p) { p[0].linked = true; }));
  EXPECT_EQ(after([](Bound& b, Proofs& p) { b.linked = p[0].linked = true; }), "");
  // Two stages of 90 ns have a mean of 45: a twentieth is 2 ns.
  const auto loads = [&](double share, std::int64_t load) {
    return after([&](Bound& b, Proofs& p) { b.least_share = share, p[1].least_load = {0, load}; });
  };
  EXPECT_EQ(loads(0, 0), "");
  EXPECT_MESSAGE(loads(0, 1));
  EXPECT_EQ(loads(0.05, 2), "");
  EXPECT_MESSAGE(loads(0.05, 3));
  EXPECT_MESSAGE(loads(0.05, std::int64_t{1} << 62));
}

}  // namespace
}  // namespace pfeife
