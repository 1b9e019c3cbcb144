// What the judge says of every order of the devices, against looking at every order.
#include "planner/schedule_tool/any_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "planner/schedule_tool/certify.h"
#include "planner/search/device_orders.h"
#include "planner/search/proof_record.h"
#include "planner/search/work_certificate.h"
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

/// Few kinds, limits and paths, so that many orders are equal.
struct Devices {
  explicit Devices(std::mt19937& random) {
    const std::size_t count = 1 + random() % 4;
    cluster = uniform_cluster(count, DeviceKind{}, {1e9}, Nanoseconds{5});
    cluster.kinds.push_back(cluster.kinds.front());
    for (std::size_t& kind : cluster.kind_of_device) kind = random() % 4 == 0;
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; b < count; ++b)
        if (a != b && random() % 4 == 0) {
          cluster.paths[a * count + b].latency = Nanoseconds{1};
          if (random() % 2 == 0) cluster.paths[b * count + a].latency = Nanoseconds{1};
        }
    for (Path& path : cluster.paths)
      if (!path.links.empty()) path.links = {0};
    for (std::size_t d = 0; d < count; ++d) limit.emplace_back(random() % 5 == 0 ? 1 : 2);
  }
  /// All that tells two orders apart.
  std::vector<std::int64_t> text(const Order& order) const {
    std::vector<std::int64_t> text;
    for (const DeviceId a : order) {
      text.push_back(static_cast<std::int64_t>(cluster.kind_of_device[a.index()]));
      text.push_back(limit[a.index()].value);
      for (const DeviceId b : order) text.push_back(cluster.path(a, b).latency.count());
    }
    return text;
  }
  Cluster cluster;
  std::vector<Bytes> limit;
};

TEST(AnyDevices, EveryOrderIsListedIfOneOfEachThatDiffersIs) {
  std::mt19937 random(3);
  int one_left_out = 0, by_another = 0;
  for (int round = 0; round < 400; ++round) {
    const Devices devices(random);
    std::vector<Order> orders = all_orders(devices.cluster.devices());
    std::ranges::shuffle(orders, random);
    std::vector<Order> different;
    std::set<std::vector<std::int64_t>> known;
    for (const Order& order : orders)
      if (known.insert(devices.text(order)).second) different.push_back(order);
    by_another += different.size() < orders.size();
    ASSERT_TRUE(tool::every_order_listed(devices.cluster, devices.limit, different)) << round;
    for (std::size_t k = 0; k < different.size(); ++k) {
      std::vector<Order> fewer = different;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
      ASSERT_FALSE(tool::every_order_listed(devices.cluster, devices.limit, fewer)) << round;
      ++one_left_out;
    }
  }
  EXPECT_GT(one_left_out, 500);
  EXPECT_GT(by_another, 50);
}

// So many orders are not looked at one by one: equal devices have one.
TEST(AnyDevices, ManyEqualOnesHaveOneOrder) {
  Cluster cluster = uniform_cluster(64, DeviceKind{}, {1e9}, Nanoseconds{5});
  for (Path& path : cluster.paths)
    if (!path.links.empty()) path.links = {0};
  Order order;
  for (int d = 0; d < 64; ++d) order.emplace_back(d);
  EXPECT_TRUE(tool::every_order_listed(cluster, std::vector<Bytes>(64, Bytes{1}), {order}));
}

// The judge makes the easier problem itself; the search has its own.
TEST(AnyDevices, AlikeOnesAreThoseOfTheSearch) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const Instance instance = random_instance(random, 1);
    const RelaxedDevices relaxed(instance.problem());
    const Certificate alike = tool::alike_devices(certificate_of(instance.problem(), 1, {}));
    const Certificate expected = certificate_of(relaxed.problem(), 1, {});
    EXPECT_EQ(alike.layers, expected.layers) << round;
    EXPECT_EQ(alike.cluster.paths, expected.cluster.paths) << round;
    EXPECT_EQ(alike.cluster.kind_of_device, expected.cluster.kind_of_device) << round;
    EXPECT_EQ(alike.cluster.kinds, expected.cluster.kinds) << round;
    EXPECT_EQ(alike.memory_limit, expected.memory_limit) << round;
  }
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
  certificate.proofs = {{.spec = {"gpipe", 2, 1, 1, {}, {}}, .any_order = true, .shares = {3, 1}}};
  return certificate;
}

// With shares 3 and 1: 30 and 30, 30 and 30, 120 and 40: 100 of 4, so that 25 is proven and 26 not.
TEST(AnyDevices, SharesOfWorkProveTheirWeightedMean) {
  Certificate certificate = two_speeds();
  for (const bool any : {false, true}) {
    certificate.any_devices = any;
    certificate.bound = 25;
    EXPECT_EQ(tool::certify(certificate).refusal, "");
    certificate.bound = 26;
    EXPECT_NE(tool::certify(certificate).refusal, "");
  }
  certificate.bound = 25;
  certificate.proofs[0].shares = {3};
  EXPECT_NE(tool::certify(certificate).refusal, "");
  // Negative ones would turn the inequality round: 180 < 4 x 999.
  certificate.proofs[0].shares = {-3, -1};
  certificate.bound = 1000;
  EXPECT_NE(tool::certify(certificate).refusal, "");
  certificate.bound = 25;
  certificate.proofs[0].shares = {0, 0};
  EXPECT_NE(tool::certify(certificate).refusal, "");
  certificate.proofs[0].shares = {std::int64_t{1} << 60, 1};
  EXPECT_NE(tool::certify(certificate).refusal, "");
  certificate.proofs[0].shares = {3, 1};
  certificate.proofs[0].spec.ranks = 3;
  EXPECT_NE(tool::certify(certificate).refusal, "");
  certificate.proofs[0].spec.ranks = 2, certificate.proofs[0].spec.microbatches = 2;
  certificate.bound = 50;
  EXPECT_EQ(tool::certify(certificate).refusal, "");
}

// Shares that the search writes are never above the best plan of any order, and raising the claim
// by one is refused.
TEST(AnyDevices, SharesOfRandomProblemsHold) {
  std::mt19937 random(7);
  int tried = 0;
  for (int round = 0; round < 60; ++round) {
    const Instance instance = random_instance(random, 1);
    const auto shared = shared_work_certificate(instance.problem());
    ASSERT_TRUE(shared);
    Certificate certificate = *shared;
    certificate.any_devices = true;
    ASSERT_EQ(tool::certify(certificate).refusal, "");
    for (const Order& order : all_orders(instance.cluster.devices())) {
      const Problem placed = with_devices(instance.problem(), order);
      const double best = brute_force(placed, instance.schedules[0]).time;
      ASSERT_LE(static_cast<double>(certificate.bound), best) << round;
      ++tried;
    }
    ++certificate.bound;
    ASSERT_NE(tool::certify(certificate).refusal, "");
  }
  EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace pfeife
