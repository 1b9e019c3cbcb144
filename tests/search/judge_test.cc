// What the judge of certificates must refuse, whoever wrote them: certificates made by hand, of
// problems whose best time is known.
#include <gtest/gtest.h>

#include "planner/schedule_tool/certify.h"
#include "planner/search/bound/proof_record.h"
#include "tests/search/random_instance.h"

namespace pfeife {
namespace {

/// Two layers of F 100 and B 100 on two devices, one microbatch; the claim is made of F, F and B.
/// If the first layer sends to the second, a step takes 400; if not, 200, since neither waits.
Certificate two_layers(bool sends) {
  Certificate certificate{.cluster = uniform_cluster(2, DeviceKind{}, {1e9}, Nanoseconds{0}),
                          .device_of_rank = {DeviceId{0}, DeviceId{1}},
                          .memory_limit = {Bytes{0}, Bytes{0}},
                          .bound = 300};
  Layer layer;
  layer.times = {{Nanoseconds{100}, Nanoseconds{100}, Nanoseconds{0}, Nanoseconds{0}}};
  certificate.layers.layers = {layer, layer};
  if (sends)
    certificate.layers.values.push_back(
        {"v", LayerId{0}, {LayerId{1}}, Bytes{0}, Bytes{0}, Nanoseconds{0}});
  CertifiedNode root;
  root.weights = {{{0, 1}}};
  certificate.proofs = {{.spec = {"gpipe", 2, 1, 1, {}, {}},
                         .least_load = {0, 0},
                         .paths = {{1, "rrfd"}},
                         .tree = {root}}};
  return certificate;
}

TEST(Judge, KnowsNoTransferThatMayNotExist) {
  EXPECT_EQ(tool::certify(two_layers(true)).refusal, "");
  EXPECT_NE(tool::certify(two_layers(false)).refusal, "");
}

TEST(Judge, RefusesWhatIsOutOfRange) {
  const auto refused = [](const auto& change) {
    Certificate certificate = two_layers(true);
    change(certificate, certificate.proofs[0], certificate.proofs[0].tree[0]);
    return !tool::certify(certificate).refusal.empty();
  };
  EXPECT_FALSE(refused([](auto&, auto&, auto&) {}));
  EXPECT_TRUE(refused([](auto& c, auto&, auto&) { c.bound = 301; }));
  EXPECT_TRUE(refused([](auto& c, auto&, auto&) { c.bound = 0; }));
  EXPECT_TRUE(refused([](auto& c, auto&, auto&) { c.proofs.clear(); }));
  EXPECT_TRUE(refused([](auto& c, auto&, auto&) { c.device_of_rank.push_back(DeviceId{1}); }));
  EXPECT_TRUE(refused([](auto&, auto& p, auto&) { p.spec.family = "zb_greedy"; }));
  EXPECT_TRUE(refused([](auto&, auto& p, auto&) { p.least_load = {0}; }));
  EXPECT_TRUE(refused([](auto&, auto& p, auto&) { p.paths[0].rank = 2; }));
  EXPECT_TRUE(refused([](auto&, auto& p, auto&) { p.paths[0].turns += "d"; }));
  EXPECT_TRUE(refused([](auto&, auto& p, auto&) { p.moments = {{2, 0}}; }));
  EXPECT_TRUE(refused([](auto&, auto& p, auto&) { p.moments = {{0, 9}}; }));
  EXPECT_TRUE(refused([](auto&, auto&, auto& n) { n.weights[0] = {{1, 1}}; }));
  EXPECT_TRUE(refused([](auto&, auto& p, auto& n) {
    n.then = CertifiedNode::Then::SplitEnd, n.stage = 2;
    p.tree.resize(3);
  }));
  // Twice the path less one of no length would weigh 1 and be 600 long.
  EXPECT_TRUE(refused([](auto& c, auto& p, auto& n) {
    c.bound = 600, p.paths.push_back({0, ""}), n.weights[0] = {{0, 2}, {1, -1}};
  }));
  // From 2^53 on sums are not looked after, also if they are made of smaller ones.
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  EXPECT_FALSE(refused([](auto&, auto&, auto& n) { n.weights[0] = {{0, kMost - 1}}; }));
  EXPECT_TRUE(refused([](auto&, auto&, auto& n) { n.weights[0] = {{0, kMost}}; }));
  EXPECT_TRUE(refused([](auto&, auto&, auto& n) {
    n.weights[0] = {{0, kMost / 2}, {0, kMost / 2}};
  }));
}

/// Every moment of a schedule.
std::vector<CertifiedMoment> all_moments(const Schedule& schedule) {
  std::vector<CertifiedMoment> found;
  for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    std::uint32_t action = 0;
    for (const Cell& cell : schedule.rows[rank])
      for_each_action(cell, [&](const Action&) { found.push_back({rank, action++}); });
  }
  return found;
}

// A plan holds no less than the judge says at any moment: with limits of just what the plan takes,
// "nothing fits" is refused, with whatever recomputation.
TEST(Judge, RefusesThatNothingFitsWhereAPlanDoes) {
  std::mt19937 random(53);
  int tried = 0, proven = 0;
  for (int round = 0; round < 1500; ++round) {
    Instance instance = random_instance(random, 1, 0.5);
    for (Layer& layer : instance.layers.layers)
      layer.weight_saved.value *= 5, layer.saved.value *= 3;
    instance.recompute = static_cast<Recompute>(round % 3);
    const ScheduleSpec& spec = instance.schedules[0];
    std::vector<Partition> all;
    for_each_partition(instance.layers, spec.stages(),
                       [&](const Partition& cuts) { all.push_back(cuts); });
    if (all.empty()) continue;
    const auto recomputations = choices(instance.recompute, spec.stages());
    const Schedule schedule = generate(spec);
    instance.memory_limit =
        evaluate(instance.layers, instance.cluster, schedule, placement_for(spec),
                 all[random() % all.size()], MemoryRule::Lifetimes,
                 {recomputations[random() % recomputations.size()]})
            .peak_memory;
    CertifiedProof proof{.spec = spec,
                         .least_load = std::vector<std::int64_t>(spec.stages(), 0),
                         .moments = all_moments(schedule),
                         .tree = {CertifiedNode{}}};
    Certificate certificate =
        certificate_of(instance.problem(), Certificate::kNothingFits, {std::move(proof)});
    ++tried;
    ASSERT_NE(tool::certify(certificate).refusal, "") << round;
    for (Bytes& limit : certificate.memory_limit) limit.value /= 2;
    proven += tool::certify(certificate).refusal.empty();
  }
  EXPECT_GT(tried, 1000);
  EXPECT_GT(proven, tried / 4) << "half as much is often too little";
}

}  // namespace
}  // namespace pfeife
