#include "planner/ir/schedule/scaled_stage.h"

namespace pfeife {

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

}  // namespace pfeife
