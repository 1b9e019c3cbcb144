// The schedule families by name: what exists, what they accept, the schedules they make.
//   Schedule rows = generate({.family = "1f1b", .ranks = 4, .microbatches = 8});
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/ir/result/choice.h"
#include "planner/schedules/family.h"

namespace pfeife {

/// Every family of training steps, in the order of the contract; of Mode::Forward, those of F
/// alone.
std::span<const Family> families(Mode mode = Mode::Train);

/// Families of training steps whose ranks share the output layer: with S and T in their rows.
std::span<const Family> shared_head_families();

/// Whether its ranks share the output layer.
bool shares_head(const ScheduleSpec& spec);

/// The family of that name, of either mode. Errors: ConfigError with the nearest spelling.
const Family& family(const std::string& name);

/// Why the point is no valid one of its family; empty if it is. Errors: ConfigError if there is no
/// such family.
std::optional<Refusal> refusal(const ScheduleSpec& spec);

/// One sentence with the point, the reason and the nearest valid values.
std::string to_string(const Refusal& refusal, const ScheduleSpec& spec);

/// The compute-only schedule of the point. Errors: ConfigError if the point is refused. Linear in
/// its actions.
Schedule generate(const ScheduleSpec& spec);

/// The compute-only schedule of a choice: its own order, or the one of its spec.
Schedule compute_only(const Choice& choice);

/// Where the family puts the stages of the point.
Placement placement_for(const ScheduleSpec& spec);
/// On these devices; [rank].
Placement placement_for(const ScheduleSpec& spec, std::vector<DeviceId> device_of_rank);

/// The grid of `families: all`: V in `stages_per_rank`; loop batch D and the divisors of N in (D,
/// N]; prefetch 0..D-1; every accepted point of the families named, in the order of the table.
/// `names` empty = all families of training steps whose order does not depend on costs, but for
/// those that are searched by name alone.
/// Families whose ranks share the output layer are there by name alone.
/// Families that cut sequences are tried with these `slices` above 1; those whose order is built
/// for costs, whole as well. `looped` with one loop is
/// left out beside `1f1b`, which is the same schedule. Errors: ConfigError if there is no family of
/// a name.
std::vector<ScheduleSpec> search_set(std::size_t ranks, std::size_t microbatches,
                                     std::span<const std::size_t> stages_per_rank,
                                     std::span<const std::string> names = {},
                                     std::span<const std::size_t> slices = {},
                                     SliceLengths slice_lengths = SliceLengths::EqualTime);

}  // namespace pfeife
