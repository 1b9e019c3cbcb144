// The published runs as runs of a mesh, one source a function: what was run, and what was measured.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/io/files/csv_table.h"
#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"

namespace pfeife::published {

struct PublishedRun {
  std::string source;  ///< "vtrain", "narayanan", "korthikanti", "llama3"
  std::string name;    ///< of the row
  MeshRun run;
  double measured = 0;  ///< seconds a step
  /// Every second product of a layer is computed again (torchtitan's selective recomputation): the
  /// mean of nothing and of all.
  bool half_recomputed = false;
  bool hides_experts = false;  ///< its recipe runs experts' exchanges beside another microbatch
  std::optional<double> peak = {};  ///< measured, GiB that torch's allocator gave out
};

struct Source {
  std::string name, title;
  std::string device;  ///< "a100", "h100_500w"
  Network network;
  std::vector<PublishedRun> runs;
};

/// A row of a table of runs. ConfigError if it has no such number.
class Row {
 public:
  Row(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}
  double number(const std::string& column) const;
  std::int64_t count(const std::string& column) const;
  std::string text(const std::string& column) const;

 private:
  const CsvTable& table_;
  std::size_t row_;
};
void each_row(const std::filesystem::path& file, const std::function<void(const Row&)>& read);

/// Each from its file of `data`, with the cluster files of `configs`. ConfigError.
std::vector<Source> read_sources(const std::filesystem::path& data,
                                 const std::filesystem::path& configs);

}  // namespace pfeife::published
