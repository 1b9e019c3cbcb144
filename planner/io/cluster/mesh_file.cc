#include "planner/io/cluster/mesh_file.h"

#include <algorithm>
#include <array>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/yaml_document.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 30;

std::filesystem::path named_file(const YamlNode& root, const std::string& key,
                                 const std::filesystem::path& folder) {
  const YamlNode node = root.at(key);
  const std::filesystem::path file = folder / node.as_string();
  if (!is_there(file)) node.fail("there is no file \"" + file.string() + "\"");
  if (sha256_file(file) != root.at(key + "_digest").as_string())
    node.fail("\"" + file.string() +
              "\" is not the file that was meant (another digest); run "
              "pfeife-exp again with the config of the mesh");
  return file;
}

std::string rate(BytesPerSecond bandwidth) { return fixed(bandwidth.value / 1e9, 9) + " GB/s"; }

YamlValue link(const std::string& name, bool within_node, BytesPerSecond bandwidth) {
  std::vector<YamlEntry> entries = {{"name", yaml_scalar(name), {}},
                                    {"per", yaml_scalar("device"), {}}};
  if (within_node) entries.push_back({"within", yaml_scalar("node"), {}});
  entries.push_back({"bandwidth", yaml_scalar(rate(bandwidth)), {}});
  return yaml_map(std::move(entries));
}
YamlValue route(const std::string& over, Nanoseconds latency) {
  return yaml_map({{"over", yaml_scalar(over), {}}, {"latency", yaml_amount(latency), {}}});
}

/// Whether what replicas reduce goes from host to host.
bool reduces_between_hosts(const Mesh& mesh, std::int64_t devices_per_host) {
  return std::ranges::any_of(std::array{Axis::Context, Axis::Data}, [&](Axis axis) {
    return mesh.size(axis) > std::max<std::int64_t>(1, devices_per_host / mesh.stride(axis));
  });
}

/// The ranks of one pipeline: those of a host by its port, the others each by its NIC.
std::string pipeline_cluster_text(const MeshRun& run, const Network& of_hosts,
                                  const std::string& hosts) {
  const Network network = message_network(run, of_hosts);
  const YamlDocument document = YamlDocument::parse(hosts, "hosts.yaml");
  const std::int64_t ranks = run.mesh.size(Axis::Pipeline);
  const std::int64_t in_host = std::clamp<std::int64_t>(
      network.devices_per_host / run.mesh.stride(Axis::Pipeline), 1, ranks);
  std::vector<YamlEntry> entries;
  for (const char* key : {"version", "name", "notes"})
    if (const auto node = document.root().find(key)) entries.push_back({key, node->value(), {}});
  const std::string& kind = network.device.name;  // the layers have times of no other
  entries.push_back({"device_kinds",
                     yaml_map({{kind, document.root().at("device_kinds").at(kind).value(), {}}}),
                     {}});
  entries.push_back({"devices",
                     yaml_sequence({yaml_map({{"kind", yaml_scalar(network.device.name), {}},
                                              {"count", yaml_scalar(std::to_string(ranks)), {}}})}),
                     {}});
  if (ranks == 1) return to_text(yaml_map(std::move(entries)));
  std::vector<YamlValue> links, routes;
  if (in_host > 1) {
    if (in_host < ranks)
      entries.push_back({"devices_per_node", yaml_scalar(std::to_string(in_host)), {}});
    links.push_back(link("port", in_host < ranks, network.port));
    routes.push_back(route("port", network.port_latency));
  }
  if (in_host < ranks) {
    links.push_back(link("nic", false, network.nic));
    routes.push_back(route("nic", network.nic_latency));
  }
  entries.push_back({"links", yaml_sequence(std::move(links)), {}});
  entries.push_back({"routes", yaml_sequence(std::move(routes)), {}});
  const bool far = reduces_between_hosts(run.mesh, network.devices_per_host);
  std::vector<YamlValue> rings;
  if (far ? in_host < ranks : in_host > 1) rings.push_back(yaml_scalar(far ? "nic" : "port"));
  entries.push_back({"rings", yaml_sequence(std::move(rings)), {}});
  return to_text(yaml_map(std::move(entries)));
}

}  // namespace

MeshFile read_mesh_file(const std::filesystem::path& file) {
  const YamlDocument document = YamlDocument::read(file);
  const YamlNode root = document.root();
  root.check_version(1);
  root.check_keys({"version",
                   "architecture",
                   "architecture_digest",
                   "hosts",
                   "hosts_digest",
                   "sequence",
                   "tp",
                   "cp",
                   "pp",
                   "dp",
                   "ep",
                   "order",
                   "zero",
                   "sequence_parallel",
                   "global_batch",
                   "microbatch_size",
                   "precision",
                   "gradient_bytes",
                   "overlap_reductions",
                   "overlap_factor"});
  MeshFile made;
  MeshRun& run = made.run;
  const std::filesystem::path folder = file.parent_path();
  run.architecture = read_architecture(named_file(root, "architecture", folder));
  run.architecture.sequence = root.at("sequence").as_int(1, kMost);
  made.network = read_network(named_file(root, "hosts", folder));
  const std::vector<YamlNode> order = root.at("order").items();
  if (order.size() != kAxes) root.at("order").fail("expected the four axes tp, cp, pp, dp");
  std::vector<std::pair<std::string, Axis>> axes;
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data}) {
    axes.emplace_back(to_string(axis), axis);
    run.mesh.size(axis) = root.at(to_string(axis)).as_int(1, kMost);
  }
  for (std::size_t i = 0; i < kAxes; ++i) run.mesh.order[i] = order[i].as_one_of<Axis>(axes);
  run.mesh.experts = root.at("ep").as_int(1, kMost);
  run.zero = static_cast<int>(root.at("zero").as_int(0, 3));
  run.sequence_parallel = root.at("sequence_parallel").as_bool();
  run.global_batch = root.at("global_batch").as_int(1, kMost);
  run.microbatch_size = root.at("microbatch_size").as_int(1, kMost);
  run.type =
      root.at("precision").as_one_of<DType>({{"bf16", DType::BFloat16}, {"fp16", DType::Float16}});
  run.gradient_bytes = root.at("gradient_bytes").as_int(1, 8);
  run.overlap_reductions = root.at("overlap_reductions").as_bool();
  run.overlap_factor = root.at("overlap_factor").as_double(1, 4);
  run.balanced = true;
  made.digest = sha256_file(file);
  return made;
}

void write_mesh_files(const std::filesystem::path& folder, const MeshRun& run,
                      const Network& network, const std::string& architecture,
                      const std::string& hosts) {
  make_folder(folder);
  write_file(folder / "architecture.yaml", architecture);
  write_file(folder / "hosts.yaml", hosts);
  write_file(folder / "cluster.yaml", pipeline_cluster_text(run, network, hosts));
  const auto number = [](std::int64_t value) { return yaml_scalar(std::to_string(value)); };
  std::vector<YamlEntry> entries = {
      {"version", number(1), {}},
      {"architecture", yaml_scalar("architecture.yaml"), {}},
      {"architecture_digest", yaml_string(sha256(architecture)), {}},
      {"hosts", yaml_scalar("hosts.yaml"), {}},
      {"hosts_digest", yaml_string(sha256(hosts)), {}},
      {"sequence", number(run.architecture.sequence), {}},
  };
  std::vector<YamlValue> order;
  for (const Axis axis : run.mesh.order) order.push_back(yaml_scalar(to_string(axis)));
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data})
    entries.push_back({to_string(axis), number(run.mesh.size(axis)), {}});
  entries.insert(
      entries.end(),
      {{"ep", number(run.mesh.experts), {}},
       {"order", yaml_sequence(std::move(order)), {}},
       {"zero", number(run.zero), {}},
       {"sequence_parallel", yaml_scalar(run.sequence_parallel ? "true" : "false"), {}},
       {"global_batch", number(run.global_batch), {}},
       {"microbatch_size", number(run.microbatch_size), {}},
       {"precision", yaml_scalar(run.type == DType::BFloat16 ? "bf16" : "fp16"), {}},
       {"gradient_bytes", number(run.gradient_bytes), {}},
       {"overlap_reductions", yaml_scalar(run.overlap_reductions ? "true" : "false"), {}},
       {"overlap_factor", yaml_scalar(fixed(run.overlap_factor, 6)), {}}});
  write_file(folder / "mesh.yaml", to_text(yaml_map(std::move(entries))));
}

}  // namespace pfeife
