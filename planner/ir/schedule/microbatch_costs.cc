#include "planner/ir/schedule/microbatch_costs.h"

#include <cmath>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

std::int64_t times(std::int64_t value, double factor) {
  return std::llround(static_cast<double>(value) * factor);
}

StageCosts::Slice kind_of(const StageCosts& any, const MicrobatchScale& scale,
                          std::span<const double> linear) {
  const auto bytes = [&](Bytes of_any) { return Bytes{times(of_any.value, scale.linear)}; };
  const auto by = [](double factor) {
    return [factor](Nanoseconds of_any) { return Nanoseconds{times(of_any.count(), factor)}; };
  };
  StageCosts::Slice kind{{}, any.pairs, any.values, {}};
  for (std::size_t s = 0; s < any.stages.size(); ++s) {
    const double share = linear[linear.size() == 1 ? 0 : s];
    const double compute = scale.linear == scale.attention
                               ? scale.linear
                               : share * scale.linear + (1 - share) * scale.attention;
    kind.stages.push_back(scaled_stage(
        any.stages[s], {.time = by(compute), .copy = by(scale.linear), .bytes = bytes}));
  }
  scale_messages(bytes, kind);
  kind.key_gradients.assign(any.stages.size(), Bytes{0});
  return kind;
}

}  // namespace

StageCost scaled_stage(const StageCost& whole, const Scaling& scaling) {
  StageCost part = whole;
  for (Nanoseconds StageCost::*time :
       {&StageCost::forward, &StageCost::backward_input, &StageCost::backward_weight,
        &StageCost::forward_collectives, &StageCost::backward_collectives})
    part.*time = scaling.time(whole.*time);
  for (Nanoseconds StageCost::*copy : {&StageCost::offload, &StageCost::reload})
    part.*copy = scaling.copy(whole.*copy);
  for (Bytes StageCost::*bytes :
       {&StageCost::saved, &StageCost::weight_saved, &StageCost::unkept_forward,
        &StageCost::recomputed, &StageCost::forward_again, &StageCost::model_input,
        &StageCost::offloaded})
    part.*bytes = scaling.bytes(whole.*bytes);
  const PassBytes& temporary = whole.temporary;
  part.temporary = {scaling.bytes(temporary.forward), scaling.bytes(temporary.backward),
                    scaling.bytes(temporary.input), scaling.bytes(temporary.weight)};
  return part;
}

void scale_messages(const std::function<Bytes(Bytes)>& bytes, StageCosts::Slice& part) {
  for (StagePair& pair : part.pairs)
    pair.bytes = bytes(pair.bytes), pair.gradient_bytes = bytes(pair.gradient_bytes);
  for (StageValue& value : part.values)
    value.bytes = bytes(value.bytes), value.gradient_bytes = bytes(value.gradient_bytes);
}

StageCosts with_microbatches(StageCosts any, std::span<const MicrobatchScale> scales,
                             std::span<const double> linear) {
  PFEIFE_CHECK(linear.size() == 1 || linear.size() == any.stages.size(), linear.size());
  any.kinds.clear();
  any.kind_of = kinds_of({scales.begin(), scales.end()});
  for (std::size_t m = 0; m < scales.size(); ++m)
    if (any.kind_of[m] == any.kinds.size()) any.kinds.push_back(kind_of(any, scales[m], linear));
  return any;
}

}  // namespace pfeife
