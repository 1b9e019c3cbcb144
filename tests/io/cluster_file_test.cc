// Cluster files as values: what is written reads as the same value, to the last bit.
#include "planner/io/cluster/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/yaml.h"
#include "planner/ir/request/calibrated.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

ClusterFile parsed_file(const std::string& text) {
  const YamlDocument document = YamlDocument::parse(text, "c.yaml");
  return read_cluster_file(document.root());
}

class RandomCluster {
 public:
  explicit RandomCluster(std::uint32_t seed) : random_(seed) {}

  ClusterFile file() {
    ClusterFile file{.name = "c " + std::to_string(up_to(9)), .notes = {"a \"note\": one", "two"}};
    for (std::size_t k = 0; k < 1 + up_to(2); ++k) file.kinds.push_back(kind(k));
    for (std::size_t i = 0; i < 1 + up_to(3); ++i)
      file.devices.push_back({up_to(file.kinds.size() - 1), 2 * (1 + up_to(4))});
    devices_ = file.device_count();
    if (up_to(1) == 1) file.devices_per_node = devices_ % 4 == 0 && up_to(1) == 1 ? 4 : 2;
    for (std::size_t i = 0; i < up_to(4); ++i) add_link(file);
    for (const auto link : {std::size_t{0}, std::size_t{1}})
      if (link < file.links.size() && file.links[link].shape != LinkEntry::Shape::Pair)
        file.rings = {link};
    if (!file.rings && up_to(3) == 0) file.rings.emplace();
    const auto hosts = static_cast<std::int64_t>(devices_);
    if (up_to(1) == 1) file.domains.push_back({2 * hosts});
    if (up_to(1) == 1) file.domains.push_back({6 * hosts, rate(), time()});
    if (up_to(1) == 1) file.between_hosts = {0, rate(), time()};
    for (auto* tables :
         {&file.all_reduce, &file.all_gather, &file.reduce_scatter, &file.all_to_all})
      for (std::int64_t ranks = 2; ranks <= static_cast<std::int64_t>(devices_); ranks *= 2)
        tables->push_back({ranks, {{Bytes{5}, time()}, {bytes(6), time()}}});
    return file;
  }

 private:
  std::size_t up_to(std::size_t most) { return random_() % (most + 1); }
  double within(double least, double most) {
    return std::exp(std::uniform_real_distribution<>(std::log(least), std::log(most))(random_));
  }
  BytesPerSecond rate() { return {within(2e3, 0.5e18)}; }
  Bytes bytes(std::int64_t least) {
    return Bytes{least + static_cast<std::int64_t>(within(1, 1e18)) + static_cast<int>(up_to(9))};
  }
  Nanoseconds time() { return Nanoseconds{static_cast<std::int64_t>(within(1, 1e14))}; }

  DeviceKind kind(std::size_t number) {
    DeviceKind kind{.name = "kind " + std::to_string(number), .memory = bytes(1000)};
    if (up_to(1) == 1) kind.type = DeviceType::Cpu, kind.reserve = Bytes{kind.memory.value / 3};
    if (up_to(2) > 0) kind.memory_bandwidth = rate(), kind.memory_efficiency = within(1e-5, 1);
    for (const char* precision : {"fp32", "tf32", "bf16", "fp16"})
      if (up_to(1) == 1) {
        kind.peak[precision] = {within(2e3, 0.5e21)};
        kind.gemm_efficiency[precision] = {
            {{{within(1, 1e9)}, within(1e-5, 1.5)}, {{within(2e9, 1e20)}, within(1e-5, 1.5)}}};
      }
    if (up_to(1) == 1) kind.attention = {"a kernel", within(1e-5, 1), within(1e-5, 1)};
    if (up_to(1) == 1) kind.kernel_overhead = time(), kind.stage_overhead = time();
    if (up_to(1) == 1) kind.iteration_overhead = time(), kind.compute_factor = within(0.02, 99);
    return kind;
  }

  BandwidthCurve curve() {
    if (up_to(1) == 1) return {{{Bytes{1}, rate()}}};
    BandwidthCurve curve;
    double seconds = 1e-6 * static_cast<double>(1 + up_to(9));
    std::int64_t size = 1 + static_cast<std::int64_t>(up_to(99));
    for (std::size_t i = 0; i < 1 + up_to(3); ++i) {
      curve.points.push_back({Bytes{size}, {static_cast<double>(size) / seconds}});
      size += 1 + static_cast<std::int64_t>(within(1, 1e6));
      seconds *= within(1.1, 9);
    }
    for (auto& point : curve.points) point.rate.value *= 1e3;
    return curve;
  }

  Groups groups() {
    Groups groups(devices_, 0);
    for (std::size_t d = 0; d < devices_; ++d)
      groups[d] = up_to(9) == 0 ? kNoGroup : 2 * d / devices_;
    return groups;
  }

  void add_link(ClusterFile& file) {
    const std::size_t number = file.links.size();
    LinkEntry link{.name = "link " + std::to_string(number), .up = curve()};
    link.down = up_to(1) == 1 ? link.up : curve();
    link.half_duplex = link.up == link.down && up_to(1) == 1;
    if (up_to(1) == 1) link.latency = time();
    link.shape = static_cast<LinkEntry::Shape>(up_to(2));
    if (link.shape == LinkEntry::Shape::Pair) {
      for (std::size_t d = 1; d < devices_; d += 2) link.pairs.emplace(d - 1, d);
    } else {
      link.groups = groups();
    }
    file.links.push_back(std::move(link));
    file.routes.push_back({{number}, time()});
    if (up_to(1) == 1) file.routes.back().latency.reset();
  }

  std::mt19937 random_;
  std::size_t devices_ = 0;
};

TEST(ClusterFile, ReadsAsItWasWritten) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    const ClusterFile file = RandomCluster(seed).file();
    const std::string text = cluster_text(file);
    EXPECT_TRUE(parsed_file(text) == file) << "seed " << seed << ":\n" << text;
  }
}

TEST(ClusterFile, ShippedFilesReadAsTheSameClustersWhenTheyAreWrittenAgain) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PFEIFE_SOURCE_DIR) + "/configs/clusters")) {
    if (entry.path().extension() != ".yaml") continue;
    const YamlDocument document = YamlDocument::read(entry.path());
    const ClusterFile file = read_cluster_file(document.root());
    const YamlDocument again = YamlDocument::parse(cluster_text(file), "again.yaml");
    EXPECT_TRUE(resolved(read_cluster_file(again.root()), again.root()) ==
                resolved(file, document.root()))
        << entry.path();
    ++files;
  }
  EXPECT_GT(files, 10u);
}

TEST(ClusterFile, AKeyInTheWrongMapIsRefusedWithItsPlace) {
  const std::string head = "version: 1\nname: x\n";
  const auto error = [&](const std::string& rest) {
    return pfeife::message_of([&] { parsed_file(head + rest); });
  };
  EXPECT_THAT(error("memory: 1 GiB\n"),
              HasSubstr("\"memory\" stands below \"device_kinds\": device_kinds: {NAME: {memory: "
                        "...}}"));
  EXPECT_THAT(error("device_kinds: {k: {memory: 1 GiB, duplex: half}}\n"),
              HasSubstr("\"duplex\" stands below \"links\": links: [{duplex: ...}]"));
  EXPECT_THAT(error("device_kinds: {k: {memory: 1 GiB}}\ndevices: [{kind: k, rings: []}]\n"),
              HasSubstr("\"rings\" stands at the top of the file, not below \"devices\""));
  EXPECT_THAT(error("device_kinds: {k: {memori: 1 GiB}}\n"), HasSubstr("did you mean \"memory\"?"));
}

TEST(ClusterFile, ACalibrationIsTheFilesOwnFactorToTheLastBit) {
  const auto text = [](double factor) {
    return "version: 1\nname: x\ndevice_kinds: {k: {memory: 1 GiB, memory_bandwidth: 1 GB/s, peak: "
           "{fp32: 1 TFLOP/s}, kernel_overhead: 12345 ns, compute_factor: " +
           std::to_string(factor) + "}}\ndevices: [{kind: k}]\n";
  };
  Request request;
  request.calibration = {{.compute = 1.7}};
  const Cluster wanted = parse_cluster(text(1.7), "c.yaml");
  Cluster found = calibrated(parse_cluster(text(0.37), "c.yaml"), request);
  found.digest = wanted.digest;
  EXPECT_TRUE(found == wanted);
  const DeviceKind& kind = found.kinds.front();
  EXPECT_EQ(kind.operator_time(), Nanoseconds{20987}) << "20986.5";
  EXPECT_EQ(kind.peak_of("fp32").value, 1e12 / 1.7);
  EXPECT_EQ(kind.element_wise_rate().value, 0.85 * (1e9 / 1.7));
}

// 2^53 + 1 is no double.
TEST(ClusterFile, WholeBytesAndNanosecondsAreExact) {
  const YamlDocument document =
      YamlDocument::parse("a: 9007199254740993 B\nb: 99007199254740 ns\n", "f.yaml");
  EXPECT_EQ(document.root().at("a").as_bytes(), Bytes{9007199254740993});
  EXPECT_EQ(document.root().at("b").as_duration(), Nanoseconds{99007199254740});
}

}  // namespace
}  // namespace pfeife
