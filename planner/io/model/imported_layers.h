// Layers from tables and published profiles; each format is in a source of its name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/io/files/text_file.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

// What readers of tables and published profiles must know besides the file.

struct ImportOptions {
  std::size_t device_kinds =
      1;              ///< how often each layer's times are repeated: they hold for every kind
  Training training;  ///< optimizer: state per parameter; microbatch_size: only samples are counted
                      ///< by it
};

// Published profiles are graphs of nodes with branches; this makes layers in a linear order of
// them.

struct ProfileNode {
  std::string name;
  LayerTimes times;
  Bytes saved;  ///< kept for backward
  Bytes parameters;
  Bytes gradients;
};

/// A value that `to` reads of `from`. Edges of one node with equal output and bytes are one value.
struct ProfileEdge {
  std::size_t from = 0, to = 0;
  int output = 0;  ///< which of the node's outputs, in any numbering
  Bytes bytes;
};

struct ProfileGraph {
  std::string file;
  std::vector<ProfileNode> nodes;
  std::vector<ProfileEdge> edges;
};

/// Layers in topological order; among nodes that could come next, the one listed first does.
/// Gradients are as large as the values. ConfigError if the graph has a cycle or no node.
Layers layers_of_profile(const ProfileGraph& graph, const ImportOptions& options);

/// Splits a published time of forward plus backward, or of backward alone, into what we need.
LayerTimes split_forward_backward(Nanoseconds both);                   ///< 1/3, 2/3 in halves
LayerTimes split_backward(Nanoseconds forward, Nanoseconds backward);  ///< backward in halves

// Layer tables: a model as a CSV file, a row a layer in order of execution, with its times and
// bytes.
//
//   name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes,
//   weight_saved_bytes,temporary_bytes[,optimizer_ms][,output_ms][,words]
//
// Columns may stand in any order. `backward_ms` may replace the two; it is split in halves. A cut
// after row i sends its output forward and as much gradient back; messages of no bytes are waited
// for, too. A second file lists skips, `value,from,to,bytes` by row names: a value of row `from`
// that later rows read; rows of the same value name further readers. Times hold for every device
// kind. `words` says `output` of the last layer, and `input` of the first, if ranks may divide
// their words: Layers::words then names them, and nothing else of them.

/// Layers of the table at `table`, with the skips at `skips` if there are any. ConfigError with
/// file, line and column for unknown or missing columns, names that occur twice or nowhere, numbers
/// that are negative or none, and skips that point backwards.
Layers read_layer_table(const std::filesystem::path& table,
                        const std::optional<std::filesystem::path>& skips,
                        const ImportOptions& options = {});

/// The same from text at hand.
Layers layers_of_table(const TextFile& table, const std::optional<TextFile>& skips,
                       const ImportOptions& options = {});

// Profiles as PipeDream publishes them (Narayanan et al. 2019; msr-fiddle/pipedream, profiler/).
//
//   node7 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348,
//     activation_size=[6291456.0; 131072.0; 131072.0], parameter_size=50364416.000
//   <tab>node6 -- node7
//
// Times in milliseconds, sizes in bytes. A list of activations are several outputs;
// `__getitem__(i)` reads one of them. As in PipeDream's planner, a node keeps its output for
// backward.

/// Layers of the profile, in topological order. ConfigError with line and column for lines that are
/// neither node nor edge, nodes that are missing or there twice, and cycles.
Layers read_pipedream_profile(const std::filesystem::path& path, const ImportOptions& options = {});
/// The same from text at hand.
Layers layers_of_pipedream(const TextFile& file, const ImportOptions& options = {});

// Profiles as Piper publishes them (Tarnawski, Narayanan, Phanishayee 2021; msr-fiddle/piper).
//
// JSON: nodes with, per degree of tensor parallelism, variants ("vanilla", "activation recomp") of
// `timePerSample` (forward and backward of one microbatch), `parameterSize`, and memory =
// `memoryUsageA` x microbatches in flight + `memoryUsageB`; edges with `communicationCost` in
// bytes. Read is degree 1, vanilla. Piper's own devices, bandwidth and batch are not read: the
// cluster and the cases say them.

/// Layers of the profile, in topological order. `time_unit` is what `timePerSample` counts: the
/// published files differ (bert32a100.json seconds, gnmt.json milliseconds). Forward takes a third
/// of the time. Static memory is memoryUsageB (parameters and gradients) and the optimizer's state.
/// ConfigError for other JSON, missing degrees and variants, and cycles.
Layers read_piper_profile(const std::filesystem::path& path, Nanoseconds time_unit,
                          const ImportOptions& options = {});
/// The same from text at hand.
Layers layers_of_piper(const TextFile& file, Nanoseconds time_unit,
                       const ImportOptions& options = {});

}  // namespace pfeife
