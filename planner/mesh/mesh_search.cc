#include "planner/mesh/mesh_search.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/parallel.h"
#include "planner/mesh/measured_pieces.h"
#include "planner/mesh/repeat_layer.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

std::vector<std::int64_t> divisors(std::int64_t whole) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= whole; ++d)
    if (whole % d == 0) all.push_back(d);
  return all;
}

const std::vector<std::int64_t>& or_all(const std::vector<std::int64_t>& given,
                                        const std::vector<std::int64_t>& all) {
  return given.empty() ? all : given;
}

/// Every combination that the model, the batch and the devices can be divided by.
class Candidates {
 public:
  Candidates(const MeshQuestion& question, const Network& network)
      : question_(question),
        network_(network),
        of_devices_(divisors(question.devices)),
        of_batch_(divisors(question.run.global_batch)),
        cp_(open_sizes(question.cp, divides_context(question.run.architecture))),
        ep_(open_sizes(question.ep, question.run.architecture.experts > 0)),
        again_(recomputations(question)) {
    for (const auto& [name, sizes] : {std::pair("tp", &question.tp), std::pair("cp", &question.cp),
                                      std::pair("pp", &question.pp), std::pair("dp", &question.dp)})
      for (const std::int64_t size : *sizes) must_divide(name, size, "devices", question.devices);
  }

  std::vector<MeshRun> all(MeshAnswer& answer) {
    MeshRun run = question_.run;
    run.balanced = true;
    if (question_.measured_peak) {
      answer.residual = peak_residual(*question_.measured_peak, run, network_);
      run.activation_factor = answer.residual->activation_factor;
    }
    for (const std::int64_t tp : or_all(question_.tp, of_devices_))
      for (const std::int64_t cp : cp_)
        for (const std::int64_t pp : or_all(question_.pp, of_devices_)) add_mesh(run, tp, cp, pp);
    answer.without_times = without_times_;
    answer.missing_times = missing_times_;
    if (found_.empty()) {
      if (!missing_times_.empty()) throw ConfigError({}, missing_times_);
      if (nearest_) throw *nearest_;
      throw ConfigError(
          {}, stream_all("no sizes of tp, cp, pp and dp have the product ", question_.devices,
                         ", the number of devices; leave one of ", "them open (search)"));
    }
    return std::move(found_);
  }

 private:
  /// The sizes asked for; of an open axis all that divide the devices, or 1 if the model has
  /// nothing that it divides.
  std::vector<std::int64_t> open_sizes(const std::vector<std::int64_t>& asked, bool divides) const {
    return !asked.empty() ? asked : divides ? of_devices_ : std::vector<std::int64_t>{1};
  }

  void add_mesh(MeshRun run, std::int64_t tp, std::int64_t cp, std::int64_t pp) {
    const std::int64_t within = tp * cp * pp;
    if (question_.devices % within != 0) return;
    const std::int64_t dp = question_.devices / within;
    if (!question_.dp.empty() && std::ranges::find(question_.dp, dp) == question_.dp.end()) return;
    run.mesh.sizes = {tp, cp, pp, dp};
    run.sequence_parallel = question_.run.sequence_parallel && tp > 1;
    run.microbatch_size = 1;
    run.mesh.experts = ep_.front();
    run.stages_per_rank = 1;
    if (refused(run)) return;
    for (const std::int64_t devices : used_domains(run.mesh, network_)) {
      if (hosts_align(run.mesh, devices)) continue;
      if (!nearest_)
        nearest_ = ConfigError(
            {}, stream_all("the mesh ", to_string(run.mesh), " does not lie alike on hosts of ",
                           devices, " devices; choose sizes, inner axes first, whose ",
                           "products divide ", devices, " or are its multiples"));
      return;
    }
    for (const std::int64_t ep : ep_) {
      run.mesh.experts = ep;
      for (const std::int64_t size : or_all(question_.microbatch_size, of_batch_)) {
        run.microbatch_size = size;
        if (!refused(run)) add_runs(run);
      }
    }
  }

  void add_runs(MeshRun run) {
    for (const std::int64_t stages : question_.stages_per_rank) {
      run.stages_per_rank = stages;
      run.schedule = stages > 1 ? "interleaved_1f1b" : "1f1b";
      if (stages > 1 && (run.mesh.size(Axis::Pipeline) == 1 || refused(run) || no_schedule(run)))
        continue;
      for (const auto& [recomputation, modules] : again_) {
        run.recomputation = recomputation, run.modules = modules;
        const bool measured = has_times(run);
        for (const int zero : question_.zero) {
          if (zero > 0 && zero > question_.zero.front() && run.mesh.size(Axis::Data) == 1 &&
              run.mesh.size(Axis::Context) == 1)
            continue;  // nothing is divided
          run.zero = zero;
          if (measured)
            found_.push_back(run);
          else
            ++without_times_;
        }
      }
    }
  }
  bool has_times(const MeshRun& run) {
    if (network_.measured_layers.empty()) return true;
    const std::optional<std::string> missing = missing_layers(run, network_.measured_layers);
    if (missing && missing_times_.empty()) missing_times_ = *missing;
    return !missing;
  }
  static bool no_schedule(const MeshRun& run) {
    return refusal({.family = run.schedule,
                    .ranks = static_cast<std::size_t>(run.mesh.size(Axis::Pipeline)),
                    .microbatches = static_cast<std::size_t>(run.microbatches()),
                    .stages_per_rank = static_cast<std::size_t>(run.stages_per_rank)})
        .has_value();
  }
  bool refused(const MeshRun& run) {
    try {
      check_run(run);
      return false;
    } catch (const ConfigError& error) {
      if (!nearest_) nearest_ = error;
      return true;
    }
  }

  static std::vector<std::pair<Recompute, std::vector<Module>>> recomputations(
      const MeshQuestion& question) {
    std::vector<std::pair<Recompute, std::vector<Module>>> all;
    for (const Recompute again : question.recomputation) {
      if (again != Recompute::Selective)
        all.emplace_back(again, std::vector<Module>{});
      else if (!question.modules.empty())
        all.emplace_back(Recompute::None, question.modules);
      else
        for (std::vector<Module>& modules : modules_to_try(question.run.architecture))
          all.emplace_back(Recompute::None, std::move(modules));
    }
    return all;
  }

  const MeshQuestion& question_;
  const Network& network_;
  const std::vector<std::int64_t> of_devices_, of_batch_, cp_, ep_;
  const std::vector<std::pair<Recompute, std::vector<Module>>> again_;
  std::vector<MeshRun> found_;
  std::optional<ConfigError> nearest_;  // the first refusal
  std::size_t without_times_ = 0;
  std::string missing_times_;  // of the first
};

/// What decides rank_layers().
using LayersKey = std::pair<std::vector<std::int64_t>, std::vector<Module>>;
LayersKey layers_key(const MeshRun& run, const Network& network) {
  const std::vector<std::int64_t> domains = used_domains(run.mesh, network);
  Mesh experts = run.mesh;
  experts.size(Axis::Data) = run.mesh.experts;
  std::vector<std::int64_t> key = {run.mesh.size(Axis::Tensor), run.mesh.size(Axis::Context),
                                   run.mesh.experts, run.microbatch_size, run.sequence_parallel};
  for (const GroupShape& group : {group_shape(run.mesh, {Axis::Tensor}, domains),
                                  group_shape(run.mesh, {Axis::Context}, domains),
                                  group_shape(experts, {Axis::Data}, domains)})
    key.insert(key.end(), group.within.begin(), group.within.end());
  return {std::move(key), run.modules};
}

/// Whether layer `l` is the attention of a transformer layer.
bool attends(const MeshRun& run, std::size_t l) {
  const auto layer = static_cast<std::int64_t>((l - 1) / kPiecesOfLayer);
  return (l - 1) % kPiecesOfLayer == 1 &&
         layer_kind(run.architecture, layer).mixer == MixerKind::Attention;
}

/// A microbatch on layer `l`, what is recomputed included.
Nanoseconds work_of_layer(const MeshRun& run, const MeshLayers& pieces, std::size_t l) {
  const LayerTimes& times = pieces.layers.layers[l].times.front();
  const bool transformer = l > 0 && l + 1 < pieces.layers.size();
  const bool again =
      transformer && (run.recomputation == Recompute::Full ||
                      (run.recomputation == Recompute::Attention && attends(run, l)));
  return times.forward * (again ? 2 : 1) + times.backward_input + times.backward_weight;
}

Nanoseconds work_of_microbatch(const MeshRun& run, const MeshLayers& pieces) {
  Nanoseconds sum{0};
  for (std::size_t l = 0; l < pieces.layers.size(); ++l) sum += work_of_layer(run, pieces, l);
  return sum;
}

/// The bound by the run's own stages, under 1f1b and interleaved_1f1b. Rank r has nothing to do
/// before a microbatch has come through the first stages of the ranks before it, and nothing behind
/// its last backward of its first stage but, on the one hand, what of that stage's reductions is
/// exposed, on the other, what is left of the microbatch's way back through them.
Nanoseconds bound_of_stages(const MeshRun& run, const MeshLayers& pieces,
                            const std::vector<LayerReduction>& reductions) {
  const Partition partition = mesh_partition(run, pieces);
  const auto ranks = static_cast<std::size_t>(run.mesh.size(Axis::Pipeline));
  struct Rank {
    Nanoseconds forward{0}, backward{0};  ///< of its first stage
    Nanoseconds load{0};                  ///< of all its stages
    Nanoseconds exposed{0};
  };
  std::vector<Rank> of(ranks);
  std::size_t l = 0;
  for (std::size_t s = 0; s < partition.stages(); ++s) {
    const std::size_t begin = l;
    Nanoseconds work{0}, forward{0};
    for (; l < partition.end(s, pieces.layers.size()); ++l) {
      work += work_of_layer(run, pieces, l);
      forward += pieces.layers.layers[l].times.front().forward;
    }
    if (s < ranks)
      of[s] = {forward, work - forward, Nanoseconds{0}, exposed_reduction(reductions, begin, l)};
    of[s % ranks].load += work;
  }
  Nanoseconds forward{0}, backward{0}, most{0};  // of the ranks before
  for (const Rank& rank : of) {
    most =
        std::max(most, forward + run.microbatches() * rank.load + std::max(backward, rank.exposed));
    forward += rank.forward, backward += rank.backward;
  }
  return most;
}

Nanoseconds bound_of(const MeshRun& run, Nanoseconds work, Nanoseconds optimizer) {
  return std::max(work, (run.microbatches() * work + optimizer) / run.mesh.size(Axis::Pipeline));
}

MeshOutcome priced(const MeshQuestion& question, const MeshRun& run, Nanoseconds bound,
                   const MeshLayers& pieces, const Network& network) {
  const MeshPrice price = price_mesh(run, pieces, network);
  MeshOutcome outcome{.run = run, .bound = bound, .step = price.plan.estimate};
  for (const Bytes peak : price.plan.peak_memory) outcome.peak = std::max(outcome.peak, peak);
  outcome.reserved = reserved_by(run, question.allocator, outcome.peak);
  outcome.limit = reserved_limit(question, run, network);
  outcome.fits = outcome.reserved <= outcome.limit;
  for (const MeshShares& share : price.shares) {
    outcome.mean.compute += share.compute;
    outcome.mean.collectives += share.collectives;
    outcome.mean.reduction += share.reduction;
    outcome.mean.exposed += share.exposed;
    outcome.mean.optimizer += share.optimizer;
  }
  const auto ranks = static_cast<std::int64_t>(price.shares.size());
  MeshShares& mean = outcome.mean;
  mean.compute /= ranks, mean.collectives /= ranks, mean.reduction /= ranks, mean.exposed /= ranks,
      mean.optimizer /= ranks;
  outcome.waiting = outcome.step - mean.compute - mean.collectives - mean.exposed - mean.optimizer;
  return outcome;
}

/// Better first; equals as they were asked for.
bool better(const MeshOutcome& a, const MeshOutcome& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.step < b.step : a.reserved - a.limit < b.reserved - b.limit;
}

class Search {
 public:
  Search(const MeshQuestion& question, const Network& network, const MeshSearchOptions& options)
      : question_(question),
        runs_(Candidates(question, network).all(answer_)),
        network_(network),
        options_(options) {
    answer_.candidates = runs_.size();
  }

  MeshAnswer answer() {
    price_layers();
    bound_all();
    price_all();
    std::ranges::stable_sort(answer_.priced, better);
    return std::move(answer_);
  }

 private:
  void report(double share) const {
    if (options_.progress) options_.progress(share);
  }
  MeshLayers layers_of(std::size_t run) const {
    MeshLayers pieces = layers_.at(layers_key(runs_[run], network_));
    divide_state(pieces, runs_[run], network_);
    return pieces;
  }
  /// Each distinct set of layers once.
  void price_layers() {
    std::vector<std::pair<const LayersKey*, std::size_t>> open;  // and a run that has it
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const auto [at, is_new] = layers_.try_emplace(layers_key(runs_[r], network_));
      if (is_new) open.emplace_back(&at->first, r);
    }
    parallel_for(open.size(), options_.threads, [&](std::size_t i) {
      layers_.at(*open[i].first) = rank_layers(runs_[open[i].second], network_);
    });
    report(0.1);
  }

  struct Bounded {
    std::size_t run = 0;
    Nanoseconds bound{0};   ///< of all schedules
    Nanoseconds closer{0};  ///< of the run's own
    bool holds = false;     ///< parameters, gradients and state fit
  };
  /// On average over the ranks of a pipeline.
  bool holds(const MeshRun& run, Bytes fixed) const {
    const std::int64_t ranks = run.mesh.size(Axis::Pipeline);
    const Bytes each{fixed.value / ranks};
    return reserved_by(run, question_.allocator, each) <= reserved_limit(question_, run, network_);
  }
  void bound_all() {
    bounded_.resize(runs_.size());
    parallel_for(runs_.size(), options_.threads, [&](std::size_t r) {
      const MeshRun& run = runs_[r];
      const MeshLayers& pieces = layers_.at(layers_key(run, network_));
      const StateSums state = divided_state(pieces, run, network_);
      const Nanoseconds work = work_of_microbatch(run, pieces),
                        bound = bound_of(run, work, state.optimizer);
      bounded_[r] = {r, bound, std::max(bound, bound_of_stages(run, pieces, state.reductions)),
                     holds(run, state.fixed)};
    });
    report(0.2);
    std::erase_if(bounded_, [](const Bounded& bounded) { return !bounded.holds; });
    answer_.without_memory = runs_.size() - bounded_.size();
    std::ranges::stable_sort(bounded_, {}, &Bounded::closer);
    if (!bounded_.empty()) answer_.bound = std::ranges::min(bounded_, {}, &Bounded::bound).bound;
  }

  void price_all() {
    constexpr std::size_t kAtOnce = 16;  // whatever the number of threads
    std::optional<Nanoseconds> best;
    for (std::size_t begin = 0; begin < bounded_.size(); begin += kAtOnce) {
      std::size_t end = std::min(begin + kAtOnce, bounded_.size());
      if (!options_.all && best)
        while (end > begin && bounded_[end - 1].closer >= *best) --end;
      if (end == begin) {
        answer_.ruled_out = bounded_.size() - begin;
        break;
      }
      std::vector<MeshOutcome> outcomes(end - begin);
      parallel_for(outcomes.size(), options_.threads, [&](std::size_t i) {
        const Bounded& bounded = bounded_[begin + i];
        outcomes[i] =
            priced(question_, runs_[bounded.run], bounded.bound, layers_of(bounded.run), network_);
      });
      for (MeshOutcome& outcome : outcomes) {
        if (outcome.fits && (!best || outcome.step < *best)) best = outcome.step;
        answer_.priced.push_back(std::move(outcome));
      }
      if (end - begin < std::min(kAtOnce, bounded_.size() - begin)) {
        answer_.ruled_out = bounded_.size() - end;
        break;
      }
      report(0.2 + 0.8 * static_cast<double>(end) / static_cast<double>(bounded_.size()));
    }
    report(1);
  }

  const MeshQuestion& question_;
  MeshAnswer answer_;
  const std::vector<MeshRun> runs_;
  const Network& network_;
  const MeshSearchOptions& options_;
  std::map<LayersKey, MeshLayers> layers_;
  std::vector<Bounded> bounded_;  // by their bounds
};

}  // namespace

Bytes memory_limit(const Network& network) {
  return network.device.memory - network.device.reserve;
}

Bytes reserved_by(const MeshRun& run, const std::optional<AllocatorSettings>& allocator,
                  Bytes allocated) {
  if (!allocator) return allocated;
  // Published of several stages a rank with recomputation: up to 1.43 (arXiv 2507.16274).
  constexpr double kTornUp = 1.15;
  const bool torn =
      run.stages_per_rank > 1 && (run.recomputation != Recompute::None || !run.modules.empty());
  const double factor =
      torn && !allocator->expandable_segments ? kTornUp : reserved_factor(*allocator);
  return Bytes{static_cast<std::int64_t>(factor * static_cast<double>(allocated.value))};
}

Bytes reserved_limit(const MeshQuestion& question, const MeshRun& run, const Network& network) {
  const DeviceKind device = mesh_device(run, network);
  const Bytes usable = device.memory - question.reserve.value_or(device.reserve);
  const double margin = memory_margin(question.memory_margin, question.allocator.has_value());
  return Bytes{static_cast<std::int64_t>((1 - margin) * static_cast<double>(usable.value))};
}

Bytes undivided_state(const MeshRun& run, const Network& network) {
  MeshRun whole = run;
  whole.mesh.sizes = {1, 1, 1, 1};
  whole.mesh.experts = 1;
  whole.sequence_parallel = false;
  whole.zero = 0;
  return divided_state(rank_layers(whole, network), whole, network).fixed;
}

MeshAnswer find_mesh(const MeshQuestion& question, const Network& network,
                     const MeshSearchOptions& options) {
  return Search(question, network, options).answer();
}

std::string why_not(const MeshOutcome& other, const MeshOutcome& best) {
  if (!other.fits)
    return "memory: reserves " + to_string(other.reserved) + " of " + to_string(other.limit);
  const std::array<std::pair<const char*, Nanoseconds>, 5> terms = {{
      {"compute", other.mean.compute - best.mean.compute},
      {"collectives of tp, cp, ep", other.mean.collectives - best.mean.collectives},
      {"exposed reduction of gradients", other.mean.exposed - best.mean.exposed},
      {"optimizer", other.mean.optimizer - best.mean.optimizer},
      {"waiting (bubble, messages)", other.waiting - best.waiting},
  }};
  const auto most = std::ranges::max(terms, {}, [](const auto& term) { return term.second; });
  if (other.step == best.step) return "as fast; stands behind in the order of preference";
  return std::string(most.first) + " +" + to_string(most.second);
}

}  // namespace pfeife
