// Step times of cuts under one schedule: one at a time, or sixteen side by side.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "planner/search/price/cut_costs.h"

namespace pfeife {

class CutTimes {
 public:
  /// `last_apart` as in Program. Keeps a reference to `model`.
  CutTimes(const CutModel& model, const Schedule& compute_only, const Placement& placement,
           bool last_apart);

  const Program& program() const { return program_; }
  const CutCosts& costs() const { return costs_; }
  bool is_large() const { return program_.compute_nodes() > kLarge; }

  /// Step time (ns), exact. The stages of `recompute` ([stage]) are recomputed; each B or I of a
  /// stage takes `again` ([stage], ns) more.
  double time(const Cuts& cuts, const std::vector<bool>* recompute = nullptr,
              const std::vector<double>* again = nullptr);
  /// The same for many, nothing recomputed: Candidates::times, search_times and search_time.
  void times(std::span<const Cuts> cuts, std::vector<double>& out, double enough);
  void search_times(std::span<const Cuts> cuts, std::vector<double>& out, std::vector<char>& exact);
  double search_time(const Cuts& cuts);
  /// The path that makes time(cuts) as long as it is (reductions and skips left out).
  PathCounts<std::int32_t> critical_path(const Cuts& cuts);
  /// The turns of the path that critical_path has just given.
  CertifiedPath last_turns() const { return program_.critical_turns(durations_, ends_); }

  struct Counts {
    std::size_t priced = 0;
    std::size_t with_skips = 0;  ///< those that took a look at skips
  };
  const Counts& counts() const { return counts_; }
  /// What has been counted so far; begins anew.
  Counts take_counts() { return std::exchange(counts_, {}); }
  void add(const Counts& counts) {
    counts_.priced += counts.priced, counts_.with_skips += counts.with_skips;
  }

 private:
  static constexpr std::size_t kLarge = 4096;  ///< compute nodes
  CutCosts::Priced price(const Cuts& cuts, const std::vector<bool>* recompute = nullptr,
                         const std::vector<double>* again = nullptr);
  void lane_times(std::span<const Cuts> cuts, std::vector<double>& out, std::vector<char>& exact,
                  bool link);
  template <class Number>
  void price_lanes(std::span<const Cuts> cuts, Program::Lanes<Number>& lanes, char* exact,
                   char* hopeless, bool link);

  Program program_;
  CutCosts costs_;
  std::vector<double> durations_, ends_;
  Program::Lanes<double> lanes_;
  Program::Lanes<Program::Narrow> narrow_lanes_;
  std::vector<char> exact_;
  Counts counts_;
};

}  // namespace pfeife
