// A stage that waits instead of computing: its tensors are real, of the right number of bytes.
//
// With it a pipeline of many ranks runs on few cores, and executor, transports and timing model are
// tested at that depth. Every message carries the number of its maker, so that one that went astray
// is noticed. Not here: memory that a stage keeps between its forward and its backward.
#pragma once

#include <functional>
#include <set>

#include "planner/ir/schedule/action.h"
#include "planner/ir/schedule/stage_costs.h"
#include "runtime/model/stage.h"
#include "runtime/timed/timed_wait.h"

namespace pfeife {

class TimedStage final : public Stage {
 public:
  /// `costs` says who exchanges how many bytes with the stage (its times are not read), `time` how
  /// long an action takes. `lateness` must outlive it.
  TimedStage(const StageCosts& costs, StageId stage, std::function<Nanoseconds(const Action&)> time,
             Lateness& lateness);

  const std::vector<StageId>& sources() const override { return sources_; }
  const std::vector<StageId>& destinations() const override { return destinations_; }
  PerStage forward(MicrobatchId m, const PerStage& received) override;
  PerStage backward(MicrobatchId m, const PerStage& gradients) override;
  PerStage backward_input(MicrobatchId m, const PerStage& gradients) override;
  void backward_weight(MicrobatchId m) override;
  std::optional<at::Tensor> loss(MicrobatchId) const override { return {}; }

 private:
  struct Messages {  // per neighbour
    std::vector<Bytes> in, out;
  };
  PerStage perform(const Action& action, const std::vector<StageId>& senders,
                   const PerStage& received, const Messages& messages);

  StageId stage_;
  std::function<Nanoseconds(const Action&)> time_;
  Lateness& lateness_;
  std::vector<StageId> sources_, destinations_;
  Messages onward_, back_;
  std::set<MicrobatchId> in_flight_, weights_pending_;
};

}  // namespace pfeife
