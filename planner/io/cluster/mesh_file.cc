#include "planner/io/cluster/mesh_file.h"

#include <algorithm>
#include <array>

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/yaml.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/io/model/measured_layers_file.h"
#include "planner/io/model/training_yaml.h"

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

/// Whether replicas reduce over the borders of domains of so many devices.
bool reduces_beyond(const Mesh& mesh, std::int64_t devices) {
  return std::ranges::any_of(std::array{Axis::Context, Axis::Data}, [&](Axis axis) {
    return mesh.size(axis) > std::max<std::int64_t>(1, devices / mesh.stride(axis));
  });
}

/// The ranks of one pipeline, each pair by links of the innermost level that joins it.
ClusterFile pipeline_file(const MeshRun& run, const Network& hosts) {
  const Network network = message_network(run, hosts);
  const std::vector<std::int64_t> domains = used_domains(run.mesh, network);
  const auto ranks = static_cast<std::size_t>(run.mesh.size(Axis::Pipeline));
  ClusterFile file{.name = network.name,
                   .notes = network.notes,
                   .kinds = {mesh_device(run, network)},
                   .devices = {{0, ranks}}};
  file.rings.emplace();
  std::size_t joined = 1;  // ranks that inner levels join
  bool beyond = true;      // they do not reach all replicas
  for (std::size_t level = 0; level < domains.size(); ++level) {
    const std::size_t in_domain = ranks_in_domain(run.mesh, domains[level]);
    const bool reduces = beyond && !reduces_beyond(run.mesh, domains[level]);
    if (level == 0 && in_domain > 1 && in_domain < ranks) file.devices_per_node = in_domain;
    if (in_domain > joined) {
      LinkEntry link = device_link(level_link(level), network.levels[level].bandwidth, ranks);
      if (level + 1 < domains.size())
        for (std::size_t r = 0; r < ranks; ++r) link.groups[r] = r / in_domain;
      if (reduces) file.rings->push_back(file.links.size());
      file.routes.push_back({{file.links.size()}, network.levels[level].latency});
      file.links.push_back(std::move(link));
    }
    joined = in_domain, beyond = beyond && !reduces;
  }
  return file;
}

/// A mesh.yaml, and where it is.
struct Written {
  MeshFile mesh;
  std::string architecture, architecture_digest, hosts, hosts_digest;
  std::optional<std::string> times, times_digest;  ///< of layers, where they are measured
};

template <class T>
Field<Written> of_run(const char* key, T MeshRun::*member, Kind<T> kind) {
  return of_part(&Written::mesh, of_part(&MeshFile::run, field(key, member, std::move(kind), "")))
      .always()
      .needed();
}

Field<Written> of_mesh(const char* key, std::int64_t& (*size)(Mesh&)) {
  const Kind<std::int64_t> kind = whole<std::int64_t>(1, kMost);
  return Field<Written>{key, "", "",
                        [size, kind](const YamlNode& node, Written& written) {
                          size(written.mesh.run.mesh) = kind.read(node);
                        },
                        [size, kind](const Written& written) {
                          Mesh mesh = written.mesh.run.mesh;
                          return kind.value(size(mesh));
                        }}
      .always()
      .needed();
}

const FieldList<Written>& mesh_file_fields() {
  const auto name = [](const char* key, std::string Written::*member) {
    return field(key, member, any_text(), "").always().needed();
  };
  static const FieldList<Written> fields = {
      version_field<Written>(1),
      name("architecture", &Written::architecture),
      name("architecture_digest", &Written::architecture_digest),
      name("hosts", &Written::hosts),
      name("hosts_digest", &Written::hosts_digest),
      field("times", &Written::times, any_text(), ""),
      field("times_digest", &Written::times_digest, any_text(), ""),
      of_part(&Written::mesh,
              of_part(&MeshFile::run,
                      of_part(&MeshRun::architecture, field("sequence", &Architecture::sequence,
                                                            whole<std::int64_t>(1, kMost), ""))))
          .always()
          .needed(),
      of_mesh("tp", [](Mesh& mesh) -> std::int64_t& { return mesh.size(Axis::Tensor); }),
      of_mesh("cp", [](Mesh& mesh) -> std::int64_t& { return mesh.size(Axis::Context); }),
      of_mesh("pp", [](Mesh& mesh) -> std::int64_t& { return mesh.size(Axis::Pipeline); }),
      of_mesh("dp", [](Mesh& mesh) -> std::int64_t& { return mesh.size(Axis::Data); }),
      of_mesh("ep", [](Mesh& mesh) -> std::int64_t& { return mesh.experts; }),
      of_part(&Written::mesh,
              of_part(&MeshFile::run,
                      of_part(&MeshRun::mesh, field("order", &Mesh::order, axis_order(), ""))))
          .always()
          .needed(),
      of_run("zero", &MeshRun::zero, whole<int>(0, 3)),
      of_run("sequence_parallel", &MeshRun::sequence_parallel, flag()),
      of_run("global_batch", &MeshRun::global_batch, whole<std::int64_t>(1, kMost)),
      of_run("microbatch_size", &MeshRun::microbatch_size, whole<std::int64_t>(1, kMost)),
      of_part(&Written::mesh, of_part(&MeshFile::run, mesh_precision_field(""))).always().needed(),
      of_part(&Written::mesh,
              of_part(&MeshFile::run, field("kernels", &MeshRun::kernels, rank_kernels(), ""))),
      of_part(&Written::mesh, of_part(&MeshFile::run, field("optimizer", &MeshRun::optimizer,
                                                            optimizer_kind(), "")))
          .always(),
      of_run("gradient_bytes", &MeshRun::gradient_bytes, whole<std::int64_t>(1, 8)),
      of_run("overlap_reductions", &MeshRun::overlap_reductions, flag()),
      of_part(&Written::mesh,
              of_part(&MeshFile::run, field("once_a_host", &MeshRun::once_a_host, flag(), ""))),
      of_part(&Written::mesh,
              of_part(&MeshFile::run,
                      field("separate_experts", &MeshRun::separate_experts, flag(), ""))),
      of_part(&Written::mesh, of_part(&MeshFile::run, field("recompute_modules", &MeshRun::modules,
                                                            module_list(), ""))),
      of_run("overlap_factor", &MeshRun::overlap_factor, real(1, 4)),
      of_part(
          &Written::mesh,
          of_part(&MeshFile::run, field("overlap_streams", &MeshRun::overlap_streams, flag(), ""))),
      of_part(&Written::mesh,
              of_part(&MeshFile::run,
                      field("expert_imbalance", &MeshRun::expert_imbalance, real(1, 1024), ""))),
      of_part(&Written::mesh,
              of_part(&MeshFile::run, field("activation_factor", &MeshRun::activation_factor,
                                            real(0, kMostActivations), "")))};
  return fields;
}

}  // namespace

Kind<std::array<Axis, kAxes>> axis_order() {
  using Order = std::array<Axis, kAxes>;
  return {
      "a list of the four axes",
      [](const YamlNode& node) {
        const Words<Axis> axes =
            words_of<Axis>({Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data});
        const std::vector<YamlNode> items = node.items();
        if (items.size() != kAxes)
          node.fail("expected the four axes, neighbours first: [tp, cp, dp, pp]");
        Order order{};
        for (std::size_t i = 0; i < kAxes; ++i) {
          order[i] = items[i].as_one_of<Axis>(axes);
          if (std::find(order.begin(), order.begin() + i, order[i]) != order.begin() + i)
            items[i].fail(to_string(order[i]) + " stands twice; each of tp, cp, dp and pp once");
        }
        return order;
      },
      [](const Order& order) {
        return list_value(std::vector<Axis>(order.begin(), order.end()),
                          [](Axis axis) { return yaml_scalar(to_string(axis)); });
      },
      true};
}

Kind<std::vector<Module>> module_list() {
  Kind<std::vector<Module>> kind = list_of(word(words_of<Module>(all_modules())));
  kind.read = [read = kind.read](const YamlNode& node) {
    std::vector<Module> modules = read(node);
    std::ranges::sort(modules);
    modules.erase(std::unique(modules.begin(), modules.end()), modules.end());
    if (modules.empty()) node.fail("a list of no modules; name one, or leave it out");
    return modules;
  };
  return kind;
}

namespace {

const Words<MeshPrecision>& mesh_precisions() {
  static const Words<MeshPrecision> words = [] {
    Words<MeshPrecision> all = {{"bf16", {DType::BFloat16, Format::Wide}},
                                {"fp16", {DType::Float16, Format::Wide}}};
    for (const Recipe& recipe : known_recipes())
      all.push_back({to_string(recipe.format), {DType::BFloat16, recipe.format}});
    return all;
  }();
  return words;
}

}  // namespace

Kind<RankKernels> rank_kernels() {
  return word(words_of<RankKernels>({RankKernels::Eager, RankKernels::Megatron}));
}

Field<MeshRun> mesh_precision_field(std::string about) {
  const Kind<MeshPrecision> kind = word(mesh_precisions());
  return {"precision", kind.values, std::move(about),
          [read = kind.read](const YamlNode& node, MeshRun& run) {
            const MeshPrecision named = read(node);
            run.type = named.type, run.format = named.format;
          },
          [](const MeshRun& run) { return yaml_scalar(precision_of(run)); }};
}

MeshPrecision mesh_precision_named(const std::string& text) {
  const YamlDocument document = YamlDocument::parse("precision: " + text, "--precision");
  return document.root().at("precision").as_one_of<MeshPrecision>(mesh_precisions());
}

MeshFile read_mesh_file(const std::filesystem::path& file) {
  const YamlDocument document = YamlDocument::read(file);
  const YamlNode root = document.root();
  root.check_version(1);
  root.check_keys(mesh_file_fields().keys());
  const std::filesystem::path folder = file.parent_path();
  Written written;
  MeshFile& mesh = written.mesh;
  mesh.run = {.architecture = read_architecture(named_file(root, "architecture", folder)),
              .balanced = true};
  mesh.network = read_network(named_file(root, "hosts", folder));
  if (root.find("times"))
    mesh.network.measured_layers = read_measured_layers(named_file(root, "times", folder));
  mesh_file_fields().read(root, written);
  mesh.digest = sha256_file(file);
  return mesh;
}

void write_mesh_files(const std::filesystem::path& folder, const MeshRun& run,
                      const Network& network, const std::string& architecture,
                      const std::string& hosts) {
  make_folder(folder);
  write_file(folder / "architecture.yaml", architecture);
  write_file(folder / "hosts.yaml", hosts);
  write_file(folder / "cluster.yaml", cluster_text(pipeline_file(run, network)));
  Written written{
      {run, network, ""}, "architecture.yaml", sha256(architecture), "hosts.yaml", sha256(hosts)};
  if (!network.measured_layers.empty()) {
    const std::string times = measured_layers_text(network.measured_layers);
    write_file(folder / "layers.csv", times);
    written.times = "layers.csv", written.times_digest = sha256(times);
  }
  write_file(folder / "mesh.yaml", to_text(mesh_file_fields().value(written)));
}

}  // namespace pfeife
