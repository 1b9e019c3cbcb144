#include "planner/io/cluster/cluster_reader.h"

#include <algorithm>

#include "planner/io/cluster/cluster_links.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/yaml_document.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMostDevices = 1024;  // paths are kept for every pair
const std::vector<std::string> kPrecisions = {"fp32", "tf32", "bf16", "fp16"};
const std::vector<std::pair<std::string, DeviceType>> kDeviceTypes = {{"gpu", DeviceType::Gpu},
                                                                      {"cpu", DeviceType::Cpu}};

constexpr double kLeastFraction = 1e-6;

EfficiencyCurve read_efficiency(const YamlNode& node) {
  EfficiencyCurve curve;
  if (!node.is_sequence())
    node.fail("expected points [work, fraction] such as [[2.1 GFLOP, 0.73]]");
  for (const YamlNode& point : node.items()) {
    const auto pair = point.items();
    if (pair.size() != 2) point.fail("expected [work, fraction] such as [2.1 GFLOP, 0.73]");
    const Flops work = pair[0].as_flops();
    if (work.value <= 0) pair[0].fail("the work must be above 0");
    if (!curve.points.empty() && work <= curve.points.back().work)
      pair[0].fail("the work must grow from point to point");
    // Cards that run above their nominal clock exceed the published peak.
    const double fraction = pair[1].as_double(0, 1.5);
    if (fraction < kLeastFraction) pair[1].fail("the fraction must be above 0, at least 1e-6");
    curve.points.push_back({work, fraction});
  }
  if (curve.points.empty()) node.fail("expected at least one point [work, fraction]");
  return curve;
}

template <class T, class Read>
std::map<std::string, T> read_by_precision(const YamlNode& node, Read read) {
  node.check_keys(kPrecisions);
  std::map<std::string, T> values;
  for (const auto& [precision, value] : node.entries()) values.emplace(precision, read(value));
  if (values.empty()) node.fail("expected at least one of fp32, tf32, bf16, fp16");
  return values;
}

/// The speeds may be missing: models that bring their own times need none, and the roofline says
/// what it lacks.
DeviceKind read_kind(const std::string& name, const YamlNode& node) {
  node.check_keys({"type", "memory", "reserve", "memory_bandwidth", "memory_efficiency", "peak",
                   "gemm_efficiency", "kernel_overhead", "stage_overhead", "iteration_overhead",
                   "compute_factor"});
  DeviceKind kind;
  kind.name = name;
  if (const auto type = node.find("type")) kind.type = type->as_one_of(kDeviceTypes);
  kind.memory = node.at("memory").as_bytes();
  if (const auto reserve = node.find("reserve")) {
    kind.reserve = reserve->as_bytes();
    if (kind.reserve >= kind.memory) reserve->fail("the reserve leaves nothing of the memory");
  }
  if (const auto rate = node.find("memory_bandwidth"))
    kind.memory_bandwidth = rate->as_bytes_per_second();
  if (const auto efficiency = node.find("memory_efficiency")) {
    kind.memory_efficiency = efficiency->as_double(0, 1);
    if (kind.memory_efficiency < kLeastFraction)
      efficiency->fail("the fraction must be above 0, at least 1e-6");
  }
  if (const auto peaks = node.find("peak"))
    kind.peak = read_by_precision<FlopsPerSecond>(
        *peaks, [](const YamlNode& peak) { return peak.as_flops_per_second(); });
  if (const auto curves = node.find("gemm_efficiency"))
    kind.gemm_efficiency = read_by_precision<EfficiencyCurve>(*curves, read_efficiency);
  if (const auto time = node.find("kernel_overhead")) kind.kernel_overhead = time->as_duration();
  if (const auto time = node.find("stage_overhead")) kind.stage_overhead = time->as_duration();
  if (const auto time = node.find("iteration_overhead"))
    kind.iteration_overhead = time->as_duration();
  if (const auto factor = node.find("compute_factor"))
    kind = slowed(std::move(kind), factor->as_double(0.01, 100));
  return kind;
}

void read_devices(const YamlNode& root, Cluster& cluster) {
  std::vector<std::pair<std::string, std::size_t>> kinds;
  for (const auto& [name, node] : root.at("device_kinds").entries()) {
    kinds.emplace_back(name, kinds.size());
    cluster.kinds.push_back(read_kind(name, node));
  }
  const YamlNode devices = root.at("devices");
  for (const YamlNode& entry : devices.items()) {
    entry.check_keys({"kind", "count"});
    const std::size_t kind = entry.at("kind").as_one_of(kinds);
    const auto count = entry.find("count");
    const std::size_t number = count ? count->as_count(1, kMostDevices) : 1;
    cluster.kind_of_device.insert(cluster.kind_of_device.end(), number, kind);
  }
  const auto total = static_cast<std::int64_t>(cluster.devices());
  if (total == 0) devices.fail("there is no device");
  if (total > kMostDevices)
    devices.fail("a cluster may have " + std::to_string(kMostDevices) + " devices, here are " +
                 std::to_string(total));
}

Cluster read_document(const YamlDocument& document) {
  const YamlNode root = document.root();
  root.check_version(1);
  root.check_keys({"version", "name", "notes", "device_kinds", "devices", "devices_per_node",
                   "links", "routes", "rings", "between_hosts", "all_reduce"});
  Cluster cluster;
  cluster.name = root.at("name").as_string();
  if (const auto notes = root.find("notes"))
    for (const YamlNode& note : notes->items_or_self()) cluster.notes.push_back(note.as_string());
  read_devices(root, cluster);
  add_links_and_paths(root, cluster);
  return cluster;
}

YamlDocument with_replaced(const std::filesystem::path& file, const Replaced& replaced) {
  YamlDocument document = YamlDocument::read(file);
  for (const auto& [path, value] : replaced) document.set(path, value, to_string(value.where));
  return document;
}

}  // namespace

Cluster parse_cluster(std::string_view text, const std::string& file) {
  Cluster cluster = read_document(YamlDocument::parse(text, file));
  cluster.digest = sha256(text);
  return cluster;
}

Cluster read_cluster(const std::filesystem::path& file, const Replaced& replaced) {
  const YamlDocument document = with_replaced(file, replaced);
  Cluster cluster = read_document(document);
  if (replaced.empty()) cluster.file = file.string();
  cluster.digest = replaced.empty() ? sha256_file(file) : sha256(document.text());
  return cluster;
}

std::string cluster_text(const std::filesystem::path& file, const Replaced& replaced) {
  return with_replaced(file, replaced).text();
}

}  // namespace pfeife
