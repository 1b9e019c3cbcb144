#include "planner/search/choices/advice.h"

#include <algorithm>

#include "planner/cost/stages/blocks.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::size_t kEffort = 30;      ///< of each search: enough to find what fits
constexpr std::size_t kMostStages = 48;  ///< more make a search slow
constexpr std::int64_t kMostParts = 8;   ///< into which a microbatch is divided

class Adviser {
 public:
  Adviser(const Problem& problem, const Surroundings& surroundings, const SearchOptions& options)
      : problem_(problem), surroundings_(surroundings), options_(options) {
    options_.keep = 1, options_.iterations = kEffort, options_.progress = {};
    const ScheduleSpec& spec = problem.schedules.front();
    ranks_ = spec.ranks, microbatches_ = spec.microbatches;
  }

  std::vector<Remedy> advise() {
    if (const std::size_t most = most_stages(problem_.layers); most < ranks_) {
      note(with_devices(most));  // more of anything does not make more layers
      return std::move(remedies_);
    }
    if (problem_.cuts) {
      Problem searched = problem_;
      searched.cuts.reset();
      note(attempt("cuts chosen by the search", searched));
    }
    if (problem_.recompute == Recompute::None) {
      Problem recomputed = problem_;
      recomputed.recompute = Recompute::Choose;
      note(attempt("recomputing stages", recomputed));
    }
    try_expandable_segments();
    try_all_families();
    try_more_devices();
    try_smaller_microbatches();
    return std::move(remedies_);
  }

 private:
  void note(std::optional<Remedy> remedy) {
    if (remedy) remedies_.push_back(std::move(*remedy));
  }

  /// nullopt if there is no schedule to try.
  std::optional<Remedy> attempt(const std::string& change, Problem problem) const {
    const auto slow = [](const ScheduleSpec& spec) { return spec.stages() > kMostStages; };
    if (!std::ranges::all_of(problem.schedules, slow)) std::erase_if(problem.schedules, slow);
    if (problem.schedules.empty()) return std::nullopt;
    Answer outcome = search(problem, options_);
    const ScheduleSpec& spec = problem.schedules.front();
    Remedy remedy{change, spec.ranks, spec.microbatches, problem.layers->microbatch_size, {}, {}};
    if (!outcome.plans.empty()) remedy.plan = std::move(outcome.plans.front());
    remedy.lack = std::move(outcome.infeasible);
    return remedy;
  }

  /// Where not all reserved bytes are needed. Named if it helps: mostly what is allocated is too
  /// much already.
  void try_expandable_segments() {
    if (!problem_.allocator || problem_.allocator->expandable_segments) return;
    Problem expandable = problem_;
    expandable.allocator->expandable_segments = true;
    std::optional<Remedy> tried =
        attempt("PYTORCH_ALLOC_CONF=expandable_segments:True (plan.allocator)", expandable);
    if (tried && tried->plan) note(std::move(tried));
  }

  /// The problem on `ranks` devices with `microbatches` of another size, its cuts searched.
  Problem changed(const Layers& layers, std::size_t ranks, std::size_t microbatches,
                  bool all) const {
    Problem problem = with_layers(problem_, layers);
    problem.schedules = surroundings_.schedules(ranks, microbatches, all);
    problem.device_of_rank.assign(
        surroundings_.devices.begin(),
        surroundings_.devices.begin() + static_cast<std::ptrdiff_t>(ranks));
    problem.memory_limit.assign(
        surroundings_.memory_limit.begin(),
        surroundings_.memory_limit.begin() + static_cast<std::ptrdiff_t>(ranks));
    problem.cuts.reset();
    if (&layers != &*problem_.layers) problem.blocks = model_blocks(layers);
    return problem;
  }

  void try_all_families() {
    Problem all = changed(problem_.layers, ranks_, microbatches_, true);
    const auto listed = [&](const ScheduleSpec& spec) {
      return std::ranges::find(problem_.schedules, spec) != problem_.schedules.end();
    };
    if (!problem_.cuts) std::erase_if(all.schedules, listed);
    const bool too_long = std::ranges::all_of(
        problem_.schedules, [most = most_stages(problem_.layers)](const ScheduleSpec& spec) {
          return spec.stages() > most;
        });
    note(attempt(too_long ? "other schedules, which have fewer stages"
                          : "other schedules, which keep fewer microbatches in flight",
                 std::move(all)));
  }

  std::optional<Remedy> with_devices(std::size_t ranks) const {
    return attempt(stream_all(ranks, ranks == 1 ? " device" : " devices", " instead of ", ranks_),
                   changed(problem_.layers, ranks, microbatches_, false));
  }
  /// Doubles the step until something fits, then looks for the fewest in between.
  void try_more_devices() {
    const std::size_t most = surroundings_.devices.size();
    std::size_t fails = ranks_;
    std::optional<Remedy> found, last;
    for (std::size_t step = 1; fails < most && !found; step *= 2) {
      const std::size_t ranks = std::min(most, ranks_ + step);
      last = with_devices(ranks);
      if (last && last->plan)
        found = std::move(last);
      else
        fails = ranks;
    }
    while (found && found->devices - fails > 1) {
      const std::size_t middle = (found->devices + fails) / 2;
      std::optional<Remedy> tried = with_devices(middle);
      if (tried && tried->plan)
        found = std::move(tried);
      else
        fails = middle;
    }
    note(found ? std::move(found) : std::move(last));
  }

  void try_smaller_microbatches() {
    const std::int64_t size = problem_.layers->microbatch_size;
    std::optional<Remedy> last;
    for (std::int64_t parts = 2; surroundings_.layers && parts <= std::min(size, kMostParts);
         ++parts) {
      if (size % parts != 0) continue;
      const Layers* layers = surroundings_.layers(size / parts);
      if (!layers) return;
      const std::size_t count = microbatches_ * static_cast<std::size_t>(parts);
      std::optional<Remedy> tried = attempt(stream_all(count, " microbatches of ", size / parts,
                                                       " instead of ", microbatches_, " of ", size),
                                            changed(*layers, ranks_, count, false));
      if (tried) last = std::move(tried);
      if (last && last->plan) break;
    }
    note(std::move(last));
  }

  const Problem& problem_;
  const Surroundings& surroundings_;
  SearchOptions options_;
  std::size_t ranks_ = 0, microbatches_ = 0;
  std::vector<Remedy> remedies_;
};

}  // namespace

std::size_t most_stages(const Layers& layers) {
  std::size_t stages = 1;
  for (std::size_t l = 0; l + 1 < layers.size(); ++l)
    stages += layers.layers[l].no_cut_after.empty();
  return stages;
}

std::vector<Remedy> remedies(const Problem& problem, const Surroundings& surroundings,
                             const SearchOptions& options) {
  return Adviser(problem, surroundings, options).advise();
}

}  // namespace pfeife
