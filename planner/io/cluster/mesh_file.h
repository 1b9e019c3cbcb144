// A mesh file: a transformer on equal hosts, and how a run divides it; what is one pipeline to the
// planner. Written by pfeife-exp for the mesh that it chose; names its files with their
// digests, so that its own digest stands for all of them.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "planner/io/files/fields.h"
#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"

namespace pfeife {

struct MeshFile {
  MeshRun run;
  Network network;
  std::string digest;  ///< SHA-256 of the file
  friend bool operator==(const MeshFile&, const MeshFile&) = default;
};

/// The axes of a mesh, neighbours first, each once.
Kind<std::array<Axis, kAxes>> axis_order();
/// Modules of a layer by Megatron-LM's names, each once, sorted.
Kind<std::vector<Module>> module_list();
/// The type of parameters and activations.
/// What `precision` of a mesh says: a type of 16 bits, and the format of its linear layers'
/// products.
struct MeshPrecision {
  DType type = DType::BFloat16;
  Format format = Format::Wide;
  friend bool operator==(const MeshPrecision&, const MeshPrecision&) = default;
};
Kind<RankKernels> rank_kernels();
Field<MeshRun> mesh_precision_field(std::string about);
/// ConfigError without a place, with the nearest word.
MeshPrecision mesh_precision_named(const std::string& text);

/// The run as one pipeline of it is planned (pipeline_run()). Errors: ConfigError with the place,
/// also if a file that it names is another one than was meant.
MeshFile read_mesh_file(const std::filesystem::path& file);

/// Writes `folder`/mesh.yaml with architecture.yaml and hosts.yaml (their texts are given),
/// layers.csv where layers are measured, and cluster.yaml: one device for each rank of the
/// pipeline. Hosts must align with the mesh (planner/mesh/collective.h).
void write_mesh_files(const std::filesystem::path& folder, const MeshRun& run,
                      const Network& network, const std::string& architecture,
                      const std::string& hosts);

}  // namespace pfeife
