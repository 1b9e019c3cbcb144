#include "planner/schedules/families.h"

#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/schedules/looped.h"

namespace pfeife {

// The table of families: one line each, defined in the file of the same name
// (zb_h1 and zb_h2 share zb_h.cc).
#define PFEIFE_FAMILIES(FAMILY)    \
  FAMILY(gpipe)                    \
  FAMILY(one_forward_one_backward) \
  FAMILY(looped)                   \
  FAMILY(interleaved_1f1b)         \
  FAMILY(looped_bfs)               \
  FAMILY(zb_h1)                    \
  FAMILY(zb_h2)                    \
  FAMILY(zb1p)                     \
  FAMILY(zbv)                      \
  FAMILY(v_half)                   \
  FAMILY(v_min)                    \
  FAMILY(dualpipev)                \
  FAMILY(combined_1f1b)            \
  FAMILY(zb_greedy)                \
  FAMILY(zbv_greedy)               \
  FAMILY(seq1f1b)                  \
  FAMILY(terapipe)                 \
  FAMILY(slimpipe)

// Families whose ranks share the output layer.
#define PFEIFE_SHARED_HEAD(FAMILY) \
  FAMILY(vocab_1)                  \
  FAMILY(vocab_2)                  \
  FAMILY(interlaced)

#define PFEIFE_DECLARE(name) Family name();
PFEIFE_FAMILIES(PFEIFE_DECLARE)
PFEIFE_SHARED_HEAD(PFEIFE_DECLARE)
#undef PFEIFE_DECLARE
Family forward_only();

std::span<const Family> families(Mode mode) {
  static const std::vector<Family> of_forward{forward_only()};
  if (mode == Mode::Forward) return of_forward;
#define PFEIFE_ENTRY(name) name(),
  static const std::vector<Family> table{PFEIFE_FAMILIES(PFEIFE_ENTRY)};
  return table;
}

std::span<const Family> shared_head_families() {
  static const std::vector<Family> table{PFEIFE_SHARED_HEAD(PFEIFE_ENTRY)};
#undef PFEIFE_ENTRY
  return table;
}

bool shares_head(const ScheduleSpec& spec) {
  return std::ranges::any_of(shared_head_families(),
                             [&](const Family& known) { return known.name == spec.family; });
}

const Family& family(const std::string& name) {
  std::vector<std::string> names;
  for (const auto table : {families(), shared_head_families(), families(Mode::Forward)})
    for (const Family& known : table) {
      if (known.name == name) return known;
      names.push_back(known.name);
    }
  std::string message = "unknown schedule family '" + name + "'";
  const std::string nearest = nearest_spelling(name, names);
  if (!nearest.empty()) message += ", did you mean " + nearest + "?";
  message += "; known:";
  for (const std::string& known : names) message += " " + known;
  throw ConfigError({}, message);
}

/// Schedules above this are a slip of the pen: 2 to 3 actions for each stage and microbatch, 32
/// bytes each.
static constexpr std::size_t kLargest = std::size_t{1} << 24;

static std::optional<Refusal> refuse_size(const ScheduleSpec& spec) {
  if (spec.ranks < 1 || spec.microbatches < 1 || spec.stages_per_rank < 1)
    return Refusal{"ranks, microbatches and stages a rank are 1 or more", {}, {}};
  if (spec.ranks > kLargest || spec.stages_per_rank > kLargest / spec.ranks ||
      spec.microbatches > kLargest / spec.stages() ||
      spec.slices > kLargest / spec.stages() / spec.microbatches)
    return Refusal{"more than " + std::to_string(kLargest) + " microbatches times stages", {}, {}};
  if (spec.slices < 1 || spec.slices > static_cast<std::size_t>(kMostSlices))
    return Refusal{"a microbatch has 1 to " + std::to_string(kMostSlices) + " slices", {}, {}};
  return std::nullopt;
}

/// A placement of the point's own.
static std::optional<Refusal> refuse_placement(const ScheduleSpec& spec, const Family& known) {
  if (!known.takes_placement) return Refusal{"its stages are where the family has them", {}, {}};
  const std::size_t mean = spec.rank_of_stage.size() / spec.ranks;
  if (mean != spec.stages_per_rank)
    return Refusal{"its placement has " + std::to_string(mean) + " stages a rank", {}, mean};
  std::vector<bool> has_stage(spec.ranks, false);
  for (const RankId rank : spec.rank_of_stage) {
    if (rank.value < 0 || rank.index() >= spec.ranks)
      return Refusal{"its placement names rank " + to_string(rank), {}, {}};
    has_stage[rank.index()] = true;
  }
  if (std::ranges::find(has_stage, false) == has_stage.end()) return std::nullopt;
  return Refusal{"its placement leaves a rank without a stage", {}, {}};
}

static std::optional<Refusal> refuse_knobs(const ScheduleSpec& spec, const Family& known) {
  if (spec.loop_batch && !known.takes_loop_batch) return Refusal{"it has no loop batch", {}, {}};
  if (spec.loop_batch && (*spec.loop_batch < 1 || *spec.loop_batch > kLargest))
    return Refusal{"the loop batch is 1 or more", {}, {}};
  if (spec.slices > 1 && !known.takes_slices)
    return Refusal{"it takes whole microbatches, no slices", {}, {}};
  if (!spec.prefetch.empty() && !known.takes_prefetch) return Refusal{"it has no prefetch", {}, {}};
  if (spec.prefetch.size() > 1 && spec.prefetch.size() != spec.ranks)
    return Refusal{"prefetch is one number, or one for each of the " + std::to_string(spec.ranks) +
                       " ranks, not " + std::to_string(spec.prefetch.size()),
                   {},
                   {}};
  for (const std::size_t p : spec.prefetch)
    if (p > kLargest) return Refusal{"a prefetch is at most " + std::to_string(kLargest), {}, {}};
  return std::nullopt;
}

std::optional<Refusal> refusal(const ScheduleSpec& spec) {
  const Family& known = family(spec.family);
  if (auto refused = refuse_size(spec)) return refused;
  if (auto refused = refuse_knobs(spec, known)) return refused;
  if (!spec.rank_of_stage.empty())
    if (auto refused = refuse_placement(spec, known)) return refused;
  return known.refuse(spec);
}

std::string to_string(const Refusal& refusal, const ScheduleSpec& spec) {
  const std::string set = knobs(spec);
  std::string text = spec.family + " cannot be made for " + std::to_string(spec.ranks) +
                     " ranks, " + std::to_string(spec.microbatches) + " microbatches, " +
                     std::to_string(spec.stages_per_rank) +
                     (spec.stages_per_rank == 1 ? " stage" : " stages") + " a rank" +
                     (set.empty() ? "" : ", " + set) + ": " + refusal.reason;
  if (refusal.microbatches)
    text += "; nearest valid number of microbatches: " + std::to_string(*refusal.microbatches);
  if (refusal.stages_per_rank)
    text += "; nearest valid number of stages a rank: " + std::to_string(*refusal.stages_per_rank);
  return text;
}

Schedule generate(const ScheduleSpec& spec) {
  if (const auto refused = refusal(spec)) throw ConfigError({}, to_string(*refused, spec));
  return family(spec.family).generate(spec);
}

Schedule compute_only(const Choice& choice) {
  return choice.order ? *choice.order : generate(choice.spec);
}

Placement placement_for(const ScheduleSpec& spec) {
  Placement placement = family(spec.family).placement(spec);
  if (!spec.rank_of_stage.empty()) placement.rank_of_stage = spec.rank_of_stage;
  return placement;
}

Placement placement_for(const ScheduleSpec& spec, std::vector<DeviceId> device_of_rank) {
  return {placement_for(spec).rank_of_stage, std::move(device_of_rank)};
}

namespace {

std::vector<std::size_t> loop_batches(std::size_t ranks, std::size_t microbatches) {
  std::vector<std::size_t> batches{ranks};
  for (std::size_t b = ranks + 1; b <= microbatches; ++b)
    if (microbatches % b == 0) batches.push_back(b);
  return batches;
}

/// The points of one family at one V, accepted or not.
std::vector<ScheduleSpec> knob_grid(const Family& known, ScheduleSpec spec) {
  std::vector<ScheduleSpec> grid;
  std::vector<std::optional<std::size_t>> batches{std::nullopt};
  if (known.takes_loop_batch && spec.stages_per_rank > 1) {
    batches.clear();
    for (const std::size_t b : loop_batches(spec.ranks, spec.microbatches)) batches.emplace_back(b);
  }
  for (const auto& batch : batches) {
    spec.loop_batch = batch;
    const std::size_t prefetches = known.takes_prefetch ? distinct_prefetches(spec) : 1;
    for (std::size_t p = 0; p < prefetches; ++p) {
      if (known.takes_prefetch) spec.prefetch = {p};
      grid.push_back(spec);
    }
  }
  return grid;
}

}  // namespace

std::vector<ScheduleSpec> search_set(std::size_t ranks, std::size_t microbatches,
                                     std::span<const std::size_t> stages_per_rank,
                                     std::span<const std::string> names,
                                     std::span<const std::size_t> slices,
                                     SliceLengths slice_lengths) {
  for (const std::string& name : names) family(name);
  const auto wanted = [&](const std::string& name) {
    return names.empty() || std::ranges::find(names, name) != names.end();
  };
  std::vector<ScheduleSpec> set;
  const auto add = [&](const Family& known) {
    for (const std::size_t v : stages_per_rank) {
      if (known.name == "looped" && v == 1 && wanted("1f1b")) continue;
      const ScheduleSpec point{
          .family = known.name, .ranks = ranks, .microbatches = microbatches, .stages_per_rank = v};
      std::vector<std::size_t> counts;
      if (known.takes_whole()) counts.push_back(1);
      if (known.takes_slices)
        std::ranges::copy_if(slices, std::back_inserter(counts),
                             [](std::size_t s) { return s > 1; });
      for (const ScheduleSpec& spec : knob_grid(known, point))
        for (const std::size_t s : counts) {
          ScheduleSpec sliced = spec;
          sliced.slices = s;
          if (s > 1) sliced.slice_lengths = slice_lengths;
          if (!refusal(sliced)) set.push_back(sliced);
        }
    }
  };
  for (const Family& known : families())
    if (names.empty() ? !known.built_for_costs && !known.only_by_name : wanted(known.name))
      add(known);
  for (const auto table : {shared_head_families(), families(Mode::Forward)})
    for (const Family& known : table)
      if (!names.empty() && wanted(known.name)) add(known);
  return set;
}

}  // namespace pfeife
