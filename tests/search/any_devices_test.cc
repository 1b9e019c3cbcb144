// What the judge says of every order of the devices, against looking at every order.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "planner/schedule_tool/certify.h"
#include "planner/search/bound/proof_record.h"
#include "planner/search/choices/device_orders.h"
#include "planner/search/choices/relaxed_devices.h"
#include "planner/search/choices/work_certificate.h"
#include "tests/search/random_instance.h"

namespace pfeife {
namespace {

using Order = std::vector<DeviceId>;

std::vector<Order> all_orders(std::size_t devices) {
  Order order;
  for (std::size_t d = 0; d < devices; ++d) order.emplace_back(static_cast<std::int64_t>(d));
  std::vector<Order> all;
  do all.push_back(order);
  while (std::ranges::next_permutation(order).found);
  return all;
}

/// A plan whose bound covers every order of the devices.
Plan plan_of_any_devices(const Certificate& own) {
  Plan plan;
  plan.bound = Bound{Nanoseconds{1}, "", {{"", "captured", own.proofs[0].spec.microbatches}}};
  plan.bound->problems[0].any_devices = true;
  plan.spec = own.proofs[0].spec, plan.bound->memory_limit = own.memory_limit;
  for (const CertifiedProof& proof : own.proofs) plan.bound->schedules.push_back(proof.spec);
  return plan;
}

std::int64_t proven_of_any_devices(const std::vector<Certificate>& certificates) {
  const Plan plan = plan_of_any_devices(certificates.front());
  const tool::Proven proven = tool::proven(certificates, &plan);
  return proven.missing.empty() ? proven.bound : 0;
}

/// Few kinds, limits and paths, so that many orders are equal; and devices that the plan has not.
struct Devices {
  explicit Devices(std::mt19937& random) {
    const std::size_t count = 1 + random() % 3, all = count + random() % 3;
    own.cluster = uniform_cluster(all, DeviceKind{}, {1e9}, Nanoseconds{5});
    own.cluster.kinds.resize(2);
    for (std::size_t& kind : own.cluster.kind_of_device) kind = random() % 4 == 0;
    for (std::size_t a = 0; a < all; ++a)
      for (std::size_t b = 0; b < all; ++b)
        if (a != b && random() % 4 == 0) {
          own.cluster.paths[a * all + b].latency = Nanoseconds{1};
          if (random() % 2 == 0) own.cluster.paths[b * all + a].latency = Nanoseconds{1};
        }
    Layer layer;
    layer.times = {{Nanoseconds{7}, {}, {}, {}}, {Nanoseconds{9}, {}, {}, {}}};
    own.layers.layers = {layer};
    for (std::size_t d = 0; d < all; ++d) limit.emplace_back(random() % 5 == 0 ? 1 : 2);
    for (std::size_t d = 0; d < count; ++d)
      own.device_of_rank.emplace_back(static_cast<std::int64_t>(d));
    own = with_order(own.device_of_rank, 1000);
    own.proofs = {{.spec = {"gpipe", count, 1, 1, {}, {}}}};
  }
  Certificate with_order(const Order& order, std::int64_t bound) const {
    Certificate placed = own;
    placed.bound = bound, placed.device_of_rank = order;
    placed.memory_limit.clear();
    for (const DeviceId device : order) placed.memory_limit.push_back(limit[device.index()]);
    return placed;
  }
  /// All that tells two orders apart, the less the better.
  std::vector<std::int64_t> text(const Order& order) const {
    std::vector<std::int64_t> text;
    for (const DeviceId a : order) {
      text.push_back(static_cast<std::int64_t>(own.cluster.kind_of_device[a.index()]));
      text.push_back(-limit[a.index()].value);
      for (const DeviceId b : order) text.push_back(own.cluster.path(a, b).latency.count());
    }
    return text;
  }
  Certificate own;
  std::vector<Bytes> limit;  // [device]
};

// Of every order the highest claim for devices that are as good counts, and the least of those.
TEST(AnyDevices, ProvesTheLeastOfWhatIsProvenOfEveryOrder) {
  std::mt19937 random(3);
  int missing = 0, proven = 0, by_better_ones = 0;
  for (int round = 0; round < 3000; ++round) {
    const Devices devices(random);
    const std::size_t ranks = devices.own.device_of_rank.size();
    std::vector<Order> others = all_orders(devices.limit.size());
    std::ranges::shuffle(others, random);
    others.resize(random() % (others.size() + 1));
    std::vector<Certificate> certificates{devices.own};
    for (Order& order : others) {
      order.resize(ranks);
      certificates.push_back(
          devices.with_order(order, 1 + static_cast<std::int64_t>(random() % 2000)));
    }
    std::int64_t least = Certificate::kNothingFits;
    bool better = false;
    for (const Order& order : all_orders(ranks)) {
      const auto there = devices.text(order);
      std::int64_t best = 0;
      bool itself = false;
      for (const Certificate& c : certificates) {
        const auto here = devices.text(c.device_of_rank);
        if (!std::ranges::equal(here, there, std::ranges::less_equal{})) continue;
        best = std::max(best, c.bound);
        itself = itself || here == there;
      }
      least = std::min(least, best);
      better = better || (best > 0 && !itself);
    }
    ASSERT_EQ(proven_of_any_devices(certificates), least) << round;
    ++(least == 0 ? missing : proven);
    by_better_ones += least > 0 && better;
  }
  EXPECT_GT(missing, 500);
  EXPECT_GT(proven, 500);
  EXPECT_GT(by_better_ones, 20);
}

// What is true of some orders is not made into more than what is true of all.
TEST(AnyDevices, IsNeverAboveTheBestPlanOfAnyOrder) {
  std::mt19937 random(23);
  int whole = 0, lower = 0;
  for (int round = 0; round < 250; ++round) {
    Instance instance = random_instance(random, 1);
    for (Path& path : instance.cluster.paths)
      if (!path.links.empty()) path = {{0}, Nanoseconds{random() % 3 * 20}, {{}}};
    for (Path& path : instance.cluster.paths) {
      path.bandwidth.points = {{Bytes{50}, {static_cast<double>(1 + random() % 2) * 1e9}}};
      if (random() % 2 == 0) path.bandwidth.points.push_back({Bytes{150}, {2e9}});
    }
    for (LayerValue& value : instance.layers.values) value.transfer_time.reset();
    for (Layer& layer : instance.layers.layers)
      if (random() % 2 == 0) layer.times[1] = layer.times[0], ++layer.times[1].forward;
    double least = std::numeric_limits<double>::infinity();
    std::vector<Certificate> certificates;
    for (const Order& order : all_orders(instance.cluster.devices())) {
      const Problem placed = with_devices(instance.problem(), order);
      const double best = brute_force(placed, instance.schedules[0]).time;
      least = std::min(least, best);
      if (!certificates.empty() && random() % 3 == 0) continue;
      certificates.push_back(certificate_of(
          placed, best < 1e18 ? static_cast<std::int64_t>(best) : Certificate::kNothingFits,
          {{.spec = instance.schedules[0]}}));
    }
    for (Certificate& c : certificates) c.layers.digest.clear();
    const std::int64_t proven = proven_of_any_devices(certificates);
    ASSERT_LE(static_cast<double>(proven), std::min(least, 9.3e18)) << round;
    whole += least < 1e18 && proven == static_cast<std::int64_t>(least);
    lower += proven == 0;
  }
  EXPECT_GT(whole, 60);
  EXPECT_GT(lower, 30);
}

// So many orders are not looked at one by one: equal devices have one.
TEST(AnyDevices, ManyEqualOnesHaveOneOrder) {
  constexpr std::size_t kDevices = 64;
  Certificate own{.cluster = uniform_cluster(kDevices, DeviceKind{}, {1e9}, Nanoseconds{5}),
                  .memory_limit = std::vector<Bytes>(kDevices, Bytes{1}),
                  .bound = 5,
                  .proofs = {{.spec = {"gpipe", kDevices, 1, 1, {}, {}}}}};
  for (Path& path : own.cluster.paths)
    if (!path.links.empty()) path.links = {0};
  for (std::size_t d = 0; d < kDevices; ++d)
    own.device_of_rank.emplace_back(static_cast<std::int64_t>(d));
  EXPECT_EQ(proven_of_any_devices({own}), 5);
}

// The devices of the easier problem are as good as all; not if any figure of theirs is worse, or if
// they are not alike.
TEST(AnyDevices, AreThoseOfTheEasierProblemUnlessAFigureIsWorse) {
  std::mt19937 random(5);
  int worse = 0;
  for (int round = 0; round < 100; ++round) {
    const Instance instance = random_instance(random, 1);
    const std::size_t ranks = instance.cluster.devices();
    if (ranks < 2) continue;
    const RelaxedDevices relaxed(instance.problem());
    const ScheduleSpec spec = instance.schedules[0];
    const Certificate own =
        relaxed.beside_each_other(certificate_of(instance.problem(), 1, {{.spec = spec}}), false);
    const Certificate easier =
        relaxed.beside_each_other(certificate_of(relaxed.problem(), 7, {{.spec = spec}}), true);
    ASSERT_TRUE(tool::of_any_devices(easier, own)) << round;
    EXPECT_EQ(proven_of_any_devices({own, easier}), 7);
    const auto refused = [&](const auto& change) {
      Certificate of = own, changed = easier;
      change(changed);
      of.cluster = changed.cluster, of.layers = changed.layers;
      ++worse;
      return !tool::of_any_devices(changed, of) && proven_of_any_devices({of, changed}) < 7;
    };
    const std::size_t best = easier.device_of_rank[random() % ranks].index();
    const std::size_t all = easier.cluster.devices(), last = easier.cluster.kinds.size() - 1;
    const std::size_t given = random() % ranks, next = (given + 1) % ranks;
    if (easier.cluster.kind_of_device[best] != easier.cluster.kind_of_device[given]) {
      for (Nanoseconds LayerTimes::*work : {&LayerTimes::forward, &LayerTimes::backward_input,
                                            &LayerTimes::backward_weight, &LayerTimes::optimizer})
        EXPECT_TRUE(refused([&](Certificate& c) {
          c.layers.layers[random() % c.layers.size()].times[last].*work += Nanoseconds{1000};
        }));
      EXPECT_TRUE(refused(
          [&](Certificate& c) { c.layers.parameters[0].optimizer[last] += Nanoseconds{1000}; }));
      EXPECT_TRUE(refused([&](Certificate& c) {
        c.cluster.kinds[last].stage_overhead *= 2, ++c.cluster.kinds[last].stage_overhead;
      }));
      EXPECT_TRUE(refused([&](Certificate& c) { ++c.cluster.kinds[last].iteration_overhead; }));
    }
    EXPECT_TRUE(refused([&](Certificate& c) {  // one of several is no longer alike
      ++c.cluster.paths[best * all + c.device_of_rank[best == c.device_of_rank[0].index()].index()]
            .latency;
    }));
    EXPECT_TRUE(refused(
        [&](Certificate& c) { c.cluster.paths[given * all + next].latency = Nanoseconds{-1}; }));
    EXPECT_TRUE(refused([&](Certificate& c) {
      c.cluster.paths[given * all + next].bandwidth.points.push_back({Bytes{1 << 30}, {1e15}});
    }));
    EXPECT_TRUE(refused([&](Certificate& c) {  // slow for messages beyond the others' sizes
      for (const DeviceId from : c.device_of_rank)
        for (const DeviceId to : c.device_of_rank)
          if (from != to)
            c.cluster.paths[from.index() * all + to.index()].bandwidth.points.push_back(
                {Bytes{1 << 30}, {1}});
    }));
    EXPECT_TRUE(refused([&](Certificate& c) { c.memory_limit[random() % ranks] = Bytes{0}; }));
    EXPECT_TRUE(refused([&](Certificate& c) { c.device_of_rank[1] = c.device_of_rank[0]; }));
    EXPECT_TRUE(
        refused([&](Certificate& c) { c.device_of_rank.pop_back(), c.memory_limit.pop_back(); }));
    EXPECT_TRUE(refused([&](Certificate& c) {  // not those that are alike
                  for (std::size_t r = 0; r < ranks; ++r)
                    c.device_of_rank[r] = own.device_of_rank[r];
                  c.cluster.paths[given * all + next].latency += Nanoseconds{1};
                  c.cluster.paths[given * all + next].bandwidth.points = {{Bytes{1}, {1}}};
                }) ||
                ranks < 3);
  }
  EXPECT_GT(worse, 300);
}

/// One layer of 10 on the first device and of 30 on the second, twice; one of 40 on each, once.
Certificate two_speeds() {
  Certificate certificate;
  certificate.cluster = uniform_cluster(2, DeviceKind{}, {1e9}, Nanoseconds{0});
  certificate.cluster.kinds.resize(2);
  certificate.cluster.kind_of_device = {0, 1};
  certificate.device_of_rank = {DeviceId{0}, DeviceId{1}};
  certificate.memory_limit = {Bytes{1}, Bytes{1}};
  const auto layer = [](std::int64_t first, std::int64_t second) {
    Layer made;
    for (const std::int64_t time : {first, second})
      made.times.push_back({Nanoseconds{time}, Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{0}});
    return made;
  };
  certificate.layers.layers = {layer(10, 30), layer(10, 30), layer(40, 40)};
  certificate.proofs = {{.spec = {"gpipe", 2, 1, 1, {}, {}},
                         .any_order = true,
                         .whole = CertifiedProof::Whole::Work,
                         .shares = {3, 1}}};
  return certificate;
}

// With shares 3 and 1: 30 and 30, 30 and 30, 120 and 40: 100 of 4, so that 25 is proven and 26 not.
TEST(AnyDevices, SharesOfWorkProveTheirWeightedMean) {
  Certificate certificate = two_speeds();
  CertifiedProof& proof = certificate.proofs[0];
  const auto refused = [&](std::int64_t bound, std::vector<std::int64_t> shares) {
    certificate.bound = bound, proof.shares = std::move(shares);
    return !tool::certify(certificate).refusal.empty();
  };
  EXPECT_FALSE(refused(25, {3, 1}));
  EXPECT_TRUE(refused(26, {3, 1}));
  EXPECT_TRUE(refused(25, {3}));
  // Negative ones would turn the inequality round: 180 < 4 x 999.
  EXPECT_TRUE(refused(1000, {-3, -1}));
  EXPECT_TRUE(refused(25, {0, 0}));
  EXPECT_TRUE(refused(25, {std::int64_t{1} << 60, 1}));
  EXPECT_TRUE(refused(25, {}));
  proof.spec.ranks = 3;
  EXPECT_TRUE(refused(25, {3, 1}));
  EXPECT_TRUE(refused(25, {3, 1, 1}));
  proof.spec.ranks = 2, proof.spec.microbatches = 2;
  EXPECT_FALSE(refused(50, {3, 1}));
  proof.spec.microbatches = 1;
  // What a parameter's step takes counts where it is used first: 34 of the first layer, not 42.
  certificate.layers.parameters = {
      {.users = {LayerId{0}, LayerId{1}}, .optimizer = {Nanoseconds{4}, Nanoseconds{4}}}};
  EXPECT_FALSE(refused(26, {3, 1}));  // 34 + 30 + 40 of 4
  EXPECT_TRUE(refused(27, {3, 1}));
  certificate.layers.parameters.clear();
  // Layers that are never parted are on one device: 30, then the less of 300 + 30 and 30 + 200.
  certificate.layers.layers[1].times[0].forward = Nanoseconds{100};
  certificate.layers.layers[2].times[0].forward = Nanoseconds{10};
  certificate.layers.layers[2].times[1].forward = Nanoseconds{200};
  EXPECT_FALSE(refused(23, {3, 1}));  // 30 + 30 + 30 of 4
  EXPECT_TRUE(refused(24, {3, 1}));
  certificate.layers.layers[1].no_cut_after = "no cut";
  EXPECT_FALSE(refused(65, {3, 1}));  // 30 + 230 of 4
  EXPECT_TRUE(refused(66, {3, 1}));
  certificate.layers.layers[2].no_cut_after = "no cut";  // of the last one it means nothing
  EXPECT_FALSE(refused(65, {3, 1}));
}

// One microbatch passes the first layer (10) and the last (40), and comes back over both if what
// the first one made gets a gradient; the layer between is beside that way.
TEST(AnyDevices, TheLongestChainOfLayersIsProvenAndNoMore) {
  Certificate certificate = two_speeds();
  certificate.proofs[0].whole = CertifiedProof::Whole::Chain;
  certificate.layers.layers[2].times[1].backward_input = Nanoseconds{7};
  certificate.layers.layers[2].times[0].backward_input = Nanoseconds{9};
  certificate.layers.layers[0].times[0].backward_input = Nanoseconds{2};
  certificate.layers.layers[0].times[1].backward_input = Nanoseconds{5};
  const auto proves = [&](std::int64_t bound) {
    certificate.bound = bound;
    const bool accepted = tool::certify(certificate).refusal.empty();
    certificate.bound = bound + 1;
    return accepted && !tool::certify(certificate).refusal.empty();
  };
  EXPECT_TRUE(proves(40 + 7));  // no layer waits for another
  certificate.layers.values = {{"", LayerId{0}, {LayerId{2}}, Bytes{4}, Bytes{0}, {}}};
  EXPECT_TRUE(proves(10 + 40 + 7));
  certificate.layers.values[0].gradient_bytes = Bytes{4};
  EXPECT_TRUE(proves(10 + 40 + 7 + 2));
  certificate.layers.values[0].consumers = {LayerId{1}, LayerId{2}};
  EXPECT_TRUE(proves(10 + 40 + 7 + 2));
  certificate.layers.values.push_back({"", LayerId{1}, {LayerId{2}}, Bytes{4}, Bytes{4}, {}});
  EXPECT_TRUE(proves(10 + 10 + 40 + 7 + 2));
  certificate.proofs[0].spec.microbatches = 5;  // the others may follow at once
  EXPECT_TRUE(proves(10 + 10 + 40 + 7 + 2));
  certificate.device_of_rank = {DeviceId{1}, DeviceId{1}};  // the slower one alone
  EXPECT_TRUE(proves(30 + 30 + 40 + 7 + 5));
}

// They hold for every order of these devices, and of no others; nothing else of that tree does.
TEST(AnyDevices, SharesAreOfAnyOrderOfTheirDevices) {
  const Certificate shared = two_speeds();
  const auto of_any = [&](const auto& change) {
    Certificate changed = shared, own = shared;
    std::ranges::reverse(own.device_of_rank);
    change(changed, changed.proofs[0]);
    return tool::of_any_devices(changed, own);
  };
  EXPECT_TRUE(of_any([](auto&, auto&) {}));
  EXPECT_FALSE(of_any([](auto& c, auto&) { c.device_of_rank[0] = c.device_of_rank[1]; }));
  EXPECT_FALSE(of_any([](auto& c, auto&) { c.cluster.kind_of_device[0] = 1; }));
  EXPECT_TRUE(of_any([](auto&, auto& p) { p.whole = CertifiedProof::Whole::Chain; }));
  EXPECT_FALSE(of_any([](auto&, auto& p) { p.whole = CertifiedProof::Whole::No; }));
  EXPECT_FALSE(of_any([](auto& c, auto& p) {
    c.proofs.push_back(p), c.proofs[1].whole = CertifiedProof::Whole::No;
  }));
}

// What the search writes of the model as a whole is never above the best plan of any order of the
// devices, and no claim above that plan is accepted.
TEST(AnyDevices, ProofsOfTheWholeOfRandomProblemsHold) {
  std::mt19937 random(7);
  int tried = 0, chains = 0;
  for (int round = 0; round < 60; ++round) {
    const Instance instance = random_instance(random, 1);
    const auto cuts = std::ranges::count(instance.layers.layers, "", &Layer::no_cut_after) -
                      instance.layers.layers.back().no_cut_after.empty();
    if (instance.schedules[0].stages() > static_cast<std::size_t>(cuts) + 1) continue;
    const auto whole = whole_certificate(instance.problem());
    ASSERT_TRUE(whole);
    Certificate certificate = *whole;
    chains += certificate.proofs[0].whole == CertifiedProof::Whole::Chain;
    ASSERT_TRUE(tool::of_any_devices(certificate, certificate));
    ASSERT_EQ(tool::certify(certificate).refusal, "");
    double best = std::numeric_limits<double>::infinity();
    for (const Order& order : all_orders(instance.cluster.devices())) {
      const Problem placed = with_devices(instance.problem(), order);
      best = std::min(best, brute_force(placed, instance.schedules[0]).time);
      ++tried;
    }
    ASSERT_LE(static_cast<double>(certificate.bound), best) << round;
    if (best == std::numeric_limits<double>::infinity()) continue;
    certificate.bound = static_cast<std::int64_t>(best) + 1;
    ASSERT_NE(tool::certify(certificate).refusal, "") << round;
  }
  EXPECT_GT(tried, 100);
  EXPECT_GT(chains, 5);
}

}  // namespace
}  // namespace pfeife
