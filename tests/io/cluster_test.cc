#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Cluster shipped(const std::string& name) {
  return read_cluster(std::string(PFEIFE_SOURCE_DIR) + "/configs/clusters/" + name + ".yaml");
}
const Path& path(const Cluster& cluster, int from, int to) {
  return cluster.path(DeviceId{from}, DeviceId{to});
}
/// Names of the links on the way.
std::vector<std::string> way(const Cluster& cluster, int from, int to) {
  std::vector<std::string> names;
  for (const std::size_t link : path(cluster, from, to).links)
    names.push_back(cluster.links[link].name);
  return names;
}

const std::string kHead =
    "version: 1\nname: x\ndevice_kinds: {k: {memory: 1 GiB, memory_bandwidth: 1 GB/s, peak: {fp32: "
    "1 "
    "TFLOP/s}, gemm_efficiency: {fp32: [[1 GFLOP, 1]]}}}\n";
/// A cluster of so many devices with these links and routes.
Cluster with_links(int devices, const std::string& rest) {
  return parse_cluster(
      kHead + "devices: [{kind: k, count: " + std::to_string(devices) + "}]\n" + rest, "c.yaml");
}
std::string error_of(const std::string& text) {
  return pfeife::message_of([&] { parse_cluster(text, "c.yaml"); });
}
std::string link_error(int devices, const std::string& rest) {
  return error_of(kHead + "devices: [{kind: k, count: " + std::to_string(devices) + "}]\n" + rest);
}

TEST(ShippedClusters, AllAreReadAndConnected) {
  const std::vector<std::pair<std::string, std::size_t>> sizes = {
      {"3090_x8", 8},        {"a100_sxm4_40gb_x8", 8},
      {"h200_x8", 8},        {"a100_4x8", 32},
      {"laptop", 2},         {"a100_sxm4_80gb_x8", 8},
      {"h100_sxm_x8", 8},    {"rtx4090_x8", 8},
      {"l40s_x8", 8},        {"a10_x4", 4},
      {"v100_sxm2_x8", 8},   {"v100_pcie_x8", 8},
      {"p40_x8", 8},         {"a10_2x4_ethernet", 8},
      {"h100_sxm_hosts", 8}, {"a100_sxm4_80gb_hosts", 8},
      {"3090_hosts", 8},     {"b200_sxm_hosts", 8},
      {"b300_sxm_hosts", 8}, {"gb200_nvl72", 4},
      {"gb300_nvl72", 4},    {"rtx_pro_6000_x8", 8},
      {"mi300x_hosts", 8},   {"mi355x_hosts", 8}};
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PFEIFE_SOURCE_DIR) + "/configs/clusters"))
    files += entry.path().extension() == ".yaml";
  EXPECT_EQ(files, sizes.size()) << "a cluster file is not in this list";
  for (const auto& [name, devices] : sizes) {
    const Cluster cluster = shipped(name);
    EXPECT_EQ(cluster.name, name);
    EXPECT_EQ(cluster.devices(), devices);
    EXPECT_EQ(cluster.digest.size(), 64u);
    EXPECT_FALSE(cluster.notes.empty());
    for (int a = 0; a < static_cast<int>(devices); ++a)
      for (int b = 0; b < static_cast<int>(devices); ++b)
        EXPECT_EQ(path(cluster, a, b).links.empty(), a == b) << name << " " << a << " " << b;
  }
}

TEST(ShippedClusters, OnlyTheLaptopsDevicesAreProcessors) {
  EXPECT_EQ(shipped("laptop").kinds.front().type, DeviceType::Cpu);
  EXPECT_EQ(shipped("3090_x8").kinds.front().type, DeviceType::Gpu);
}

TEST(ShippedClusters, Rtx3090PairsUseNvlinkAndOthersTheHost) {
  const Cluster cluster = shipped("3090_x8");
  EXPECT_THAT(way(cluster, 0, 1), ElementsAre("nvlink[0-1].up"));
  EXPECT_THAT(way(cluster, 1, 0), ElementsAre("nvlink[0-1].down"));
  EXPECT_THAT(way(cluster, 1, 2), ElementsAre("pcie_slot[1].up", "pcie_slot[2].down"));
  EXPECT_THAT(way(cluster, 3, 4),
              ElementsAre("pcie_slot[3].up", "root[0].up", "root[1].down", "pcie_slot[4].down"));
  EXPECT_EQ(path(cluster, 0, 1).latency, Nanoseconds{15000});
  EXPECT_EQ(path(cluster, 3, 4).latency, Nanoseconds{25000});
  EXPECT_EQ(path(cluster, 3, 4).bandwidth.at(Bytes{1 << 20}).value, 11e9);
  // 11 GB/s: 11 MB in 1 ms after the latency.
  EXPECT_EQ(transfer_time(path(cluster, 3, 4), Bytes{11'000'000}), Nanoseconds{1'025'000});
  const DeviceKind& kind = cluster.kind(DeviceId{7});
  EXPECT_EQ(kind.name, "rtx3090");
  EXPECT_EQ(kind.memory, 24576 * kMiB);
  EXPECT_EQ(kind.peak.at("tf32").value, 35.6e12);
  EXPECT_EQ(kind.memory_efficiency, 0.85);
  EXPECT_EQ(kind.gemm_efficiency.at("tf32").at({1100e9}), 0.98);
  EXPECT_EQ(kind.stage_overhead, Nanoseconds{0});
}

// Six links a GPU (NVIDIA's description of the DGX-1), 20 GB/s each.
TEST(ShippedClusters, V100sOfADgx1HaveSixLinksEachAndNoneToThreeOthers) {
  const Cluster cluster = shipped("v100_sxm2_x8");
  for (int a = 0; a < 8; ++a) {
    double links = 0;
    int through_host = 0;
    for (int b = 0; b < 8; ++b) {
      if (a == b) continue;
      const bool host = way(cluster, a, b).front().starts_with("pcie");
      through_host += host;
      if (!host) links += path(cluster, a, b).bandwidth.at(kMiB).value / 20e9;
    }
    EXPECT_EQ(links, 6) << a;
    EXPECT_EQ(through_host, 3) << a;
  }
}

TEST(ShippedClusters, TheEthernetOfAHostIsSharedByItsDevices) {
  const Cluster cluster = shipped("a10_2x4_ethernet");
  EXPECT_THAT(way(cluster, 0, 4), ElementsAre("ethernet[0].up", "ethernet[1].down"));
  EXPECT_EQ(way(cluster, 3, 7), way(cluster, 0, 4));
  EXPECT_THAT(way(cluster, 5, 6), ElementsAre("pcie_slot[5].up", "pcie_slot[6].down"));
}

TEST(ShippedClusters, AnyKeyOfAFileMayBeReplacedByItsPath) {
  const std::filesystem::path file =
      std::filesystem::path(PFEIFE_SOURCE_DIR) / "configs" / "clusters" / "a100_4x8.yaml";
  const Cluster before = read_cluster(file);
  const Cluster after =
      read_cluster(file, {{"links.nic.bandwidth", yaml_scalar("12 GB/s")},
                          {"routes[1].latency", yaml_scalar("50 us")},
                          {"device_kinds.a100_sxm4_40gb.memory", yaml_scalar("80 GiB")}});
  EXPECT_EQ(path(after, 0, 8).bandwidth.at(kMiB).value, 12e9);
  EXPECT_EQ(path(after, 0, 8).latency, Nanoseconds{50'000});
  EXPECT_EQ(path(after, 0, 1), path(before, 0, 1));
  EXPECT_EQ(after.kinds[0].memory, 80 * kGiB);
  EXPECT_NE(after.digest, before.digest);
  EXPECT_MESSAGE(pfeife::message_of([&] {
    read_cluster(file, {{"links.nick.bandwidth", yaml_scalar("12 GB/s")}});
  }));
}

TEST(ShippedClusters, TheReadmesTwoHostsShareTheirCards) {
  std::ifstream in(std::string(PFEIFE_SOURCE_DIR) + "/configs/clusters/README.md");
  const std::string page(std::istreambuf_iterator<char>(in), {});
  const std::size_t begin = page.find("devices: [{kind: rtx4090"), end = page.find("```", begin);
  ASSERT_NE(begin, std::string::npos);
  std::string head = kHead;
  head.replace(head.find("{k:"), 3, "{rtx4090:");
  const Cluster cluster = parse_cluster(head + page.substr(begin, end - begin), "README");
  EXPECT_THAT(way(cluster, 0, 1), ElementsAre("pcie[0].up", "pcie[1].down"));
  EXPECT_THAT(way(cluster, 0, 2),
              ElementsAre("pcie[0].up", "nic[0].up", "nic[1].down", "pcie[2].down"));
  EXPECT_EQ(path(cluster, 1, 3).latency, Nanoseconds{100'000});
}

TEST(ShippedClusters, NodesAreJoinedByTheNicsOnly) {
  const Cluster cluster = shipped("a100_4x8");
  EXPECT_THAT(way(cluster, 8, 15), ElementsAre("nvswitch_port[8].up", "nvswitch_port[15].down"));
  EXPECT_THAT(way(cluster, 7, 8), ElementsAre("nic[7].up", "nic[8].down"));
  EXPECT_EQ(path(cluster, 7, 8).latency, Nanoseconds{20000});
}

TEST(ClusterLinks, TheFirstRouteThatConnectsIsTaken) {
  const Cluster cluster = with_links(
      3,
      "links: [{name: a, between: [[2, 1]], bandwidth: 3 GB/s, latency: 1 us}, {name: b, per: "
      "device, bandwidth: 1 GB/s, latency: 2 us}]\nroutes: [{over: a}, {over: b}]\n");
  EXPECT_THAT(way(cluster, 1, 2), ElementsAre("a[1-2].up"));
  EXPECT_THAT(way(cluster, 0, 1), ElementsAre("b[0].up", "b[1].down"));
  EXPECT_EQ(path(cluster, 0, 1).latency, Nanoseconds{4000}) << "two links of 2 us";
}

TEST(ClusterLinks, HalfDuplexDirectionsShareOneLink) {
  const Cluster cluster = with_links(
      2,
      "links: [{name: a, between: [[0, 1]], bandwidth: 3 GB/s, duplex: half}]\nroutes: [{over: a, "
      "latency: 1 us}]\n");
  EXPECT_EQ(path(cluster, 0, 1).links, path(cluster, 1, 0).links);
  EXPECT_THAT(way(cluster, 0, 1), ElementsAre("a[0-1]"));
}

TEST(ClusterLinks, DirectionsMayDiffer) {
  const Cluster cluster = with_links(2,
                                     "links: [{name: a, between: [[0, 1]], bandwidth: {up: 3 GB/s, "
                                     "down: 1 GB/s}}]\nroutes: [{over: "
                                     "a, latency: 1 us}]\n");
  EXPECT_EQ(transfer_time(path(cluster, 0, 1), Bytes{3000}), Nanoseconds{2000});
  EXPECT_EQ(transfer_time(path(cluster, 1, 0), Bytes{3000}), Nanoseconds{4000});
}

TEST(ClusterLinks, ThePathIsAsNarrowAsItsNarrowestLinkAtEachSize) {
  const Cluster cluster = with_links(
      4,
      "links:\n  - {name: port, per: device, bandwidth: [[1 KiB, 1 GB/s], [1 MiB, 9 GB/s]]}\n  - "
      "{name: root, per: [[0, 1], [2-3]], bandwidth: 4 GB/s}\nroutes: [{over: [port, root], "
      "latency: "
      "1 us}]\n");
  EXPECT_THAT(way(cluster, 0, 3),
              ElementsAre("port[0].up", "root[0].up", "root[1].down", "port[3].down"));
  EXPECT_EQ(path(cluster, 0, 1).bandwidth.at(kMiB).value, 9e9);
  EXPECT_EQ(path(cluster, 0, 3).bandwidth.at(kMiB).value, 4e9);
  EXPECT_EQ(path(cluster, 0, 3).bandwidth.at(kKiB).value, 1e9);
  EXPECT_EQ(cluster.links[path(cluster, 0, 1).links[0]].bandwidth.value, 9e9)
      << "capacity = fastest";
}

/// Names of the links that what a device's replicas reduce goes over.
std::vector<std::string> ring(const Cluster& cluster, int device) {
  std::vector<std::string> names;
  for (const std::size_t link : ring_links(cluster, DeviceId{device}))
    names.push_back(cluster.links[link].name);
  return names;
}

TEST(ClusterLinks, RingsGoOverWhatEveryWayOutOfADeviceHasUnlessTheyAreGiven) {
  const std::string links =
      "links:\n  - {name: port, per: device, bandwidth: 4 GB/s}\n  - {name: root, per: [[0, 1], "
      "[2-3]], bandwidth: 4 GB/s}\nroutes: [{over: [port, root], latency: 1 us}]\n";
  EXPECT_THAT(ring(with_links(4, links), 1), ElementsAre("port[1].up", "port[1].down"));
  EXPECT_THAT(ring(with_links(4, links + "rings: root\n"), 1),
              ElementsAre("root[0].up", "root[0].down"));
  EXPECT_THAT(ring(with_links(4, links + "rings: [port, root]\n"), 3),
              ElementsAre("port[3].up", "port[3].down", "root[1].up", "root[1].down"));
  EXPECT_THAT(ring(with_links(4, links + "rings: []\n"), 3), ElementsAre());
  EXPECT_THAT(
      ring(with_links(2,
                      "links: [{name: slot, per: device, bandwidth: 4 GB/s, duplex: half}]\n"
                      "routes: [{over: slot, latency: 1 us}]\nrings: slot\n"),
           1),
      ElementsAre("slot[1]"));
  EXPECT_THAT(
      link_error(2,
                 "links: [{name: wire, between: [[0, 1]], bandwidth: 4 GB/s, latency: 1 us}]"
                 "\nroutes: [{over: wire}]\nrings: wire\n"),
      HasSubstr("wire"));
  // Each pair has a cable of its own.
  EXPECT_THAT(ring(uniform_cluster(3, {}, {1e9}, Nanoseconds{0}), 0), ElementsAre());
}

// The sizes are those of any link on the way, not of the first alone.
TEST(ClusterLinks, ThePathKnowsTheSizesOfEveryLink) {
  const Cluster cluster = with_links(
      2,
      "links:\n  - {name: port, per: device, bandwidth: 4 GB/s}\n  - {name: root, per: [[0], [1]], "
      "bandwidth: [[1 KiB, 1 GB/s], [1 MiB, 9 GB/s]]}\nroutes: [{over: [port, root], latency: 1 "
      "us}]\n");
  EXPECT_EQ(path(cluster, 0, 1).bandwidth.at(kKiB).value, 1e9);
  EXPECT_EQ(path(cluster, 0, 1).bandwidth.at(kMiB).value, 4e9);
}

// A curve that is cut to one rate everywhere is that rate.
TEST(ClusterLinks, APathNarrowedToOneRateHasOnePoint) {
  const Cluster cluster = with_links(
      2,
      "links:\n  - {name: port, per: device, bandwidth: [[1 KiB, 4 GB/s], [1 MiB, 9 GB/s]]}\n  - "
      "{name: root, per: [[0], [1]], bandwidth: 1 GB/s}\nroutes: [{over: [port, root], latency: 1 "
      "us}]\n");
  ASSERT_EQ(path(cluster, 0, 1).bandwidth.points.size(), 1u);
  EXPECT_EQ(path(cluster, 0, 1).bandwidth.at(kMiB).value, 1e9);
}

TEST(ClusterLinks, ALinkOfGroupsJoinsNoDeviceThatIsInNone) {
  const std::string groups = "links: [{name: g, per: [[0], [1]], bandwidth: 1 GB/s, latency: 1 us}";
  EXPECT_MESSAGE(link_error(3, groups + "]\nroutes: [{over: g}]"));
  const Cluster cluster = with_links(
      3, groups +
             ", {name: d, per: device, bandwidth: 1 GB/s, latency: 1 us}]\nroutes: [{over: g}, "
             "{over: d}]");
  EXPECT_THAT(way(cluster, 0, 1), ElementsAre("g[0].up", "g[1].down"));
  EXPECT_THAT(way(cluster, 0, 2), ElementsAre("d[0].up", "d[2].down"));
  EXPECT_THAT(way(cluster, 2, 1), ElementsAre("d[2].up", "d[1].down"));
}

TEST(ClusterLinks, ALinkWithinGroupsJoinsNoDevicesOfDifferentOnes) {
  const std::string within =
      "devices_per_node: 2\nlinks: [{name: bus, per: device, within: node, bandwidth: 1 GB/s, "
      "latency: 1 us}, {name: nic, per: device, bandwidth: 1 GB/s, latency: 5 us}]\n";
  const Cluster cluster = with_links(4, within + "routes: [{over: bus}, {over: nic}]\n");
  EXPECT_THAT(way(cluster, 2, 3), ElementsAre("bus[2].up", "bus[3].down"));
  EXPECT_THAT(way(cluster, 1, 2), ElementsAre("nic[1].up", "nic[2].down"));
}

TEST(ClusterLinks, ASingleDeviceNeedsNone) { EXPECT_EQ(with_links(1, "").devices(), 1u); }

TEST(ClusterFile, SaysWhatDevicesHaveOfTheirHost) {
  const std::string head =
      "version: 1\nname: x\ndevice_kinds: {k: {memory: 1 GiB, host_link: {bandwidth: 25 GB/s, "
      "duplex: half, shared_by: 2}}}\ndevices: [{kind: k}]\n";
  const Cluster cluster = parse_cluster(head + "host_memory: 512 GiB\ndevices_per_node: 1", "c");
  EXPECT_EQ(cluster.kinds[0].host_link,
            (HostLink{.bandwidth = {25e9}, .half_duplex = true, .shared_by = 2}));
  EXPECT_EQ(cluster.host_memory, 512 * kGiB);
  EXPECT_EQ(cluster.devices_per_node, 1U);
  const Cluster unlimited = parse_cluster(head + "devices_per_node: 1", "c");
  EXPECT_EQ(unlimited.host_memory, std::nullopt);
  EXPECT_EQ(unlimited.devices_per_node, 1U);
  EXPECT_EQ(parse_cluster(kHead + "devices: [{kind: k}]", "c").kinds[0].host_link, std::nullopt);
  EXPECT_THAT(error_of(std::string(head).replace(head.find("half"), 4, "both")),
              HasSubstr("full, half"));
  EXPECT_THAT(error_of(std::string(head).replace(head.find("bandwidth"), 9, "banwidth")),
              HasSubstr("did you mean \"bandwidth\"?"));
}

TEST(ClusterErrors, AreSaidAtThePlace) {
  EXPECT_EQ(link_error(2, ""),
            "c.yaml:1:1: no route connects device 0 with device 1; add one, the last may be a link "
            "`per: device` that joins all");
  const std::string port = "links: [{name: p, per: device, bandwidth: 1 GB/s}]\n";
  EXPECT_MESSAGE(link_error(2, port + "routes: [{over: q}]"));
  EXPECT_MESSAGE(link_error(2, port + "routes: [{over: p}]"));
  EXPECT_MESSAGE(link_error(2, port));
  EXPECT_MESSAGE(link_error(2, "links: [{name: p, per: device, bandwidth: 46}]"));
  EXPECT_MESSAGE(link_error(
      2, "links: [{name: p, per: device, bandwidth: [[1 KiB, 1 GB/s], [4 KiB, 5 GB/s]]}]"));
  EXPECT_MESSAGE(link_error(2, "links: [{name: p, per: device, bandwith: 1 GB/s}]"));
  EXPECT_MESSAGE(link_error(2, "links: [{name: p, per: device, bandwidth: [[1 KiB, 1 GB/s, 2]]}]"));
  EXPECT_MESSAGE(
      link_error(2,
                 "links: [{name: p, per: device, bandwidth: 1 GB/s}, {name: p, per: node, "
                 "bandwidth: 1 GB/s}]\ndevices_per_node: 1"));
}

TEST(ClusterErrors, DomainsAreWholeOnesOfTheLevelInsideAndHaveARate) {
  const std::string port =
      "links: [{name: p, per: device, bandwidth: 1 GB/s}]\nroutes: [{over: p, latency: 1 us}]\n";
  const auto error = [&](const std::string& domains) {
    return link_error(4, port + "domains: [" + domains + "]");
  };
  EXPECT_EQ(error("{devices: 72}, {devices: 144, bandwidth: 1 GB/s, latency: 1 us}"), "");
  EXPECT_MESSAGE(error("{devices: 70}"));
  EXPECT_MESSAGE(error("{devices: 4}"));
  EXPECT_MESSAGE(error("{devices: 72}, {devices: 100, bandwidth: 1 GB/s, latency: 1 us}"));
  EXPECT_MESSAGE(error("{devices: 72}, {devices: 144}"));
  EXPECT_MESSAGE(error("{devices: 72, bandwidth: 1 GB/s}"));
  EXPECT_MESSAGE(error("{devices: 72, latency: 1 us}"));
  EXPECT_MESSAGE(
      error("{devices: 8, bandwidth: 1 GB/s, latency: 1 us}, "
            "{devices: 16, bandwidth: 2 GB/s, latency: 1 us}"));
}

// The port joins all four devices, so nothing is left for the network card.
TEST(ClusterErrors, ARouteThatIsNeverTakenIsOne) {
  const std::string nodes = "devices_per_node: 2\n";
  const std::string links =
      "links:\n- {name: port, per: device, bandwidth: 300 GB/s, latency: 1 us}\n"
      "- {name: nic, per: node, bandwidth: 10 GB/s, latency: 9 us}\n";
  EXPECT_EQ(link_error(4, nodes + links + "routes:\n- {over: port}\n- {over: nic}\n"),
            "c.yaml:11:3: routes[1]: this route is never taken: an earlier one connects every pair "
            "of devices that it does, as 0 with 2 over \"port\" (line 10); limit the earlier link "
            "(`within: node` of a link `per: device`), put this route before it, or remove it");
  EXPECT_EQ(link_error(4, nodes + links + "routes:\n- {over: nic}\n- {over: port}\n"), "");
  EXPECT_EQ(link_error(2, nodes + links + "routes:\n- {over: port}\n- {over: nic}\n"), "")
      << "one node has no way to another";
}

TEST(ClusterErrors, DevicesAndGroupsAreChecked) {
  const auto between = [](const std::string& pairs) {
    return link_error(3, "links: [{name: p, between: " + pairs + ", bandwidth: 1 GB/s}]");
  };
  EXPECT_MESSAGE(between("[[0, 3]]"));
  EXPECT_MESSAGE(between("[[1, 1]]"));
  EXPECT_MESSAGE(between("[[0, 1], [1, 0]]"));
  EXPECT_MESSAGE(between("[[0, 1, 2]]"));
  EXPECT_MESSAGE(between("[0, 1]"));
  const auto per = [](const std::string& groups) {
    return link_error(3, "links: [{name: p, per: " + groups + ", bandwidth: 1 GB/s}]");
  };
  EXPECT_MESSAGE(per("[[0, 1], [1, 2]]"));
  EXPECT_MESSAGE(per("[[0-3]]"));
  EXPECT_MESSAGE(per("[[2-1]]"));
  EXPECT_MESSAGE(per("[[99999999999999999999-1]]"));
  EXPECT_MESSAGE(per("node"));
  EXPECT_MESSAGE(per("dvice"));
  EXPECT_MESSAGE(per("device, between: [[0, 1]]"));
  EXPECT_MESSAGE(per("[[0, 1]], within: node"));
  EXPECT_MESSAGE(link_error(3, "devices_per_node: 2"));
}

TEST(ClusterErrors, KindsAreChecked) {
  const auto kind = [](const std::string& text) {
    return error_of("version: 1\nname: x\ndevice_kinds: {k: {" + text +
                    "}}\ndevices: [{kind: k}]\n");
  };
  EXPECT_MESSAGE(kind("reserve: 0 GiB"));
  EXPECT_EQ(kind("memory: 1 GiB"), "") << "what layer tables need";
  EXPECT_MESSAGE(kind("memory: 1 GiB, reserve: 1 GiB"));
  const std::string base = "memory: 1 GiB, memory_bandwidth: 1 GB/s, ";
  EXPECT_MESSAGE(kind(base + "peak: {fp23: 1 TFLOP/s}"));
  EXPECT_MESSAGE(kind(base + "peak: {}"));
  const std::string curve = base + "peak: {fp32: 1 TFLOP/s}, gemm_efficiency: {fp32: ";
  EXPECT_MESSAGE(kind(curve + "[[2 GFLOP, 1], [1 GFLOP, 1]]}"));
  EXPECT_MESSAGE(kind(curve + "[[2 GFLOP, 0]]}"));
  EXPECT_MESSAGE(kind(curve + "[[0 GFLOP, 1]]}"));
  EXPECT_MESSAGE(kind(curve + "[[1 GFLOP, 1, 1]]}"));
  EXPECT_MESSAGE(kind(curve + "[]}"));
  EXPECT_MESSAGE(kind(base + "memory_efficiency: 0"));
  EXPECT_MESSAGE(kind(base + "memory_efficiency: 1.1"));
  EXPECT_MESSAGE(kind(curve + "0.7}"));
  EXPECT_EQ(kind(curve + "[[1 GFLOP, 1]]}"), "");
  EXPECT_MESSAGE(error_of(kHead + "devices: [{kind: kk}]"));
  EXPECT_MESSAGE(error_of(kHead + "devices: []"));
  EXPECT_MESSAGE(error_of(kHead + "devices: [{kind: k, count: 0}]"));
  EXPECT_MESSAGE(error_of(kHead + "devices: [{kind: k, count: 1000}, {kind: k, count: 1000}]"));
  EXPECT_MESSAGE(error_of("version: 2"));
  EXPECT_MESSAGE(error_of(""));
}

}  // namespace
}  // namespace pfeife
