// A small case as files: model, cluster, plan.yaml, schedule.csv, certificate.txt.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "planner/cost/estimate/priced_plan.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/search/search.h"

namespace pfeife {

/// Two devices, 1 GB/s, 3 us.
inline const char* const kTwoDevices = R"(version: 1
name: two
device_kinds: {one: {memory: 1 GiB}}
devices: [{kind: one, count: 2}]
links: [{name: wire, between: [[0, 1]], bandwidth: 1 GB/s, latency: 3 us, duplex: full}]
routes: [{over: wire}]
)";

/// What is planned.
struct CaseOf {
  std::string file, text;  ///< the model's
  ModelFormat format = ModelFormat::PipeDream;
  std::vector<ScheduleSpec> schedules;
  std::optional<Partition> cuts = std::nullopt;
  double memory = 10;  ///< of each of the ranks, as a share of what the best plan of all takes
  Recompute recompute = Recompute::None;
};

class CaseFolder {
 public:
  CaseFolder(const CaseOf& of, const std::string& name)
      : folder_(std::filesystem::temp_directory_path() /
                ("pfeife_" + name + "." + std::to_string(::getpid()))) {
    make_folder(folder_ / "case");
    write_file(folder_ / of.file, of.text);
    write_file(folder_ / "cluster.yaml", kTwoDevices);
    cluster = read_cluster(folder_ / "cluster.yaml");
    layers = read_layers({.file = folder_ / of.file, .format = of.format}, cluster);
    Problem problem{layers, cluster, of.schedules, {}, {}, of.cuts};
    problem.device_of_rank = {DeviceId{0}, DeviceId{1}};
    problem.memory_limit = std::vector(2, Bytes{std::int64_t{1} << 30});
    const Bytes most = std::ranges::max(search(problem, {}).plans.at(0).peak_memory);
    for (Bytes& limit : problem.memory_limit)
      limit = Bytes{static_cast<std::int64_t>(of.memory * static_cast<double>(most.value))};
    problem.recompute = of.recompute;
    outcome = search(problem, {.certificate = true});
    Plan chosen = plan_of(outcome.plans.at(0));
    chosen.model = of.file, chosen.cluster = "cluster.yaml";
    auto priced = priced_plan(chosen, false, layers, cluster);
    plan = std::get<PricedPlan>(priced).plan;
    plan.bound = outcome.bound;
    plan.files = PlanFiles{.model = {.file = "../" + of.file, .format = of.format},
                           .cluster = "../cluster.yaml"};
    write(plan);
    write("certificate.txt", certificate_text(*outcome.certificate));
  }
  ~CaseFolder() { std::filesystem::remove_all(folder_); }
  CaseFolder(const CaseFolder&) = delete;
  CaseFolder& operator=(const CaseFolder&) = delete;

  std::filesystem::path file(const std::string& name) const { return folder_ / "case" / name; }
  std::string read(const std::string& name) const { return read_file(file(name)); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;  // not to disk: there are many
  }
  void write(const Plan& any) const {
    const std::string schedule = write_schedule(any.schedule);
    write("schedule.csv", schedule);
    write("plan.yaml", plan_text(any, sha256(schedule)));
  }

  Cluster cluster;
  Layers layers;
  Answer outcome;
  Plan plan;

 private:
  std::filesystem::path folder_;
};

}  // namespace pfeife
