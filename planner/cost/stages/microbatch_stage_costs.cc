#include "planner/cost/stages/microbatch_stage_costs.h"

#include <cmath>

#include "planner/cost/stages/stage_portions.h"

namespace pfeife {
namespace {

Nanoseconds message_time(Nanoseconds of_any, Bytes bytes_of_any, Bytes bytes, double scale,
                         const Path& path) {
  if (of_any == transfer_time(path, bytes_of_any)) return transfer_time(path, bytes);
  return Nanoseconds{std::llround(static_cast<double>(of_any.count()) * scale)};
}

void time_messages(const std::vector<StagePair>& any, double scale, const Placement& placement,
                   const Cluster& cluster, std::vector<StagePair>& pairs) {
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    StagePair& pair = pairs[p];
    if (placement.rank(pair.from) == placement.rank(pair.to)) continue;
    const DeviceId from = placement.device(pair.from), to = placement.device(pair.to);
    pair.forward_time =
        message_time(any[p].forward_time, any[p].bytes, pair.bytes, scale, cluster.path(from, to));
    pair.backward_time = message_time(any[p].backward_time, any[p].gradient_bytes,
                                      pair.gradient_bytes, scale, cluster.path(to, from));
  }
}

/// `sign` times what every forward and every backward of a stage takes, whatever its microbatch.
void add_overheads(const Placement& placement, const Cluster& cluster, std::int64_t sign, Mode mode,
                   std::vector<StageCost>& stages) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Nanoseconds each = sign * cluster.kind(placement.device(StageId{s})).stage_overhead;
    stages[s].forward += each;
    if (mode == Mode::Train) stages[s].backward_input += each;
  }
}

}  // namespace

StageCosts microbatch_stage_costs(StageCosts any, const Layers& layers, const Partition& partition,
                                  const Placement& placement, const Cluster& cluster) {
  if (layers.microbatches.empty()) return any;
  add_overheads(placement, cluster, -1, any.mode, any.stages);
  any = with_microbatches(std::move(any), layers.microbatches, linear_shares(layers, partition));
  expose_reductions(layers, partition, any.kinds, any);
  for (std::size_t k = 0, m = 0; k < any.kinds.size(); ++m) {
    if (any.kind_of[m] != k) continue;
    time_messages(any.pairs, layers.microbatches[m].linear, placement, cluster, any.kinds[k].pairs);
    ++k;
  }
  add_overheads(placement, cluster, 1, any.mode, any.stages);
  for (StageCosts::Slice& kind : any.kinds)
    add_overheads(placement, cluster, 1, any.mode, kind.stages);
  return any;
}

}  // namespace pfeife
