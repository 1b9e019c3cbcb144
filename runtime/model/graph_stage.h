// A stage that computes: its nodes go through LibTorch's dispatcher, recorded by autograd, for
// several microbatches in flight.
//
// Random operators draw the same numbers under every plan: the generator is seeded per step,
// microbatch and node. Not here: subgraphs, custom operators that keep state of their own.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/device/host_engines.h"
#include "runtime/model/cast_cache.h"
#include "runtime/model/stage.h"
#include "runtime/model/stage_observer.h"
#include "runtime/model/stage_program.h"
#include "runtime/model/weights.h"

namespace pfeife {

/// What the stages of a process share: LibTorch has one generator a device, so drawing takes turns.
struct RandomTurns {
  std::mutex mutex;
};

/// One step: what its microbatches read, and how each loss counts.
struct StepInputs {
  std::uint64_t step = 0;
  std::vector<std::map<ValueId, at::Tensor>> microbatches;  ///< [microbatch] model inputs
  /// [microbatch] share of the samples of the step; a model that names a loss weight has its own.
  std::vector<double> shares;
  /// [microbatch] samples; empty = the graph's microbatch size for all. A microbatch of 0 samples
  /// costs nothing and counts nothing; its inputs are not read.
  std::vector<std::int64_t> samples = {};
  /// Number of the first microbatch among those of all replicas: random numbers go by it.
  std::size_t first_microbatch = 0;
  double factor = 1;  ///< of the gradients

  std::int64_t samples_of(MicrobatchId m, const Graph& graph) const {
    return samples.empty() ? graph.microbatch_size : samples.at(m.index());
  }
};

/// Every microbatch weighs the same.
std::vector<double> equal_shares(std::size_t microbatches);

class GraphStage final : public Stage {
 public:
  /// All arguments must outlive it. `tensors` must hold what the stage needs.
  GraphStage(const Graph& graph, const std::vector<NodeEffects>& effects, const GraphSplit& split,
             StageId stage, RankTensors& tensors, RandomTurns& turns, const StageOptions& options);

  /// Prepares for microbatches of another size: `resized` is the graph bound to it, same nodes and
  /// values. Nothing happens if that size is known.
  void add_size(const Graph& resized, const std::vector<NodeEffects>& effects);
  /// Must be called before each step; `inputs` must outlive the step. Gradients are those of the
  /// loss times `factor`, in which each microbatch's loss counts with its share. One whose share is
  /// 0 counts nothing: its loss is 0, whatever the model makes of it, and has no gradient.
  void begin(const StepInputs& inputs, double factor = 1) { begin(inputs, inputs.shares, factor); }
  /// The same with other shares than the inputs'; without any all count, and no backward follows.
  void begin(const StepInputs& inputs, std::vector<double> shares, double factor = 1);
  /// Must be called after each step: deferred statistics of batch norms reach the buffers.
  void end() { statistics_.commit(); }

  const std::vector<StageId>& sources() const override { return sources_; }
  const std::vector<StageId>& destinations() const override { return destinations_; }
  PerStage forward(MicrobatchId m, const PerStage& received) override;
  PerStage backward(MicrobatchId m, const PerStage& gradients) override;
  PerStage backward_input(MicrobatchId m, const PerStage& gradients) override;
  void backward_weight(MicrobatchId m) override;
  std::optional<at::Tensor> loss(MicrobatchId m) const override;

  /// OFFLOAD between F and B or I: of what F saved and nothing but the backward needs, the largest
  /// storages go to the host, as far as StageOptions::offload_share goes. What the stage sent
  /// stays.
  HostEngines::Span offload(MicrobatchId m, HostEngines& engines, const HostEngines::Mark& mark);
  /// RELOAD behind OFFLOAD. B or I needs HostEngines::await(on_host(m)) before it.
  HostEngines::Span reload(MicrobatchId m, HostEngines& engines, const HostEngines::Mark& mark);
  const OnHost& on_host(MicrobatchId m) const;

  /// An output of the model that the stage makes, of a microbatch, detached.
  at::Tensor output(MicrobatchId m, ValueId value) const;

  /// Tells `observer` of every node that runs; nullptr = nobody. It must outlive the stage's use.
  void observe(StageObserver* observer) { observer_ = observer; }
  /// Weight gradients of a microbatch that its W will compute.
  const WeightQueue& pending(MicrobatchId m) const;

  /// Microbatches whose forward has run and whose backward has not; and W that is outstanding.
  std::size_t in_flight() const { return flights_.size(); }

 private:
  /// A microbatch between its forward and its backward.
  struct Flight {
    const StageProgram* program = nullptr;  ///< none: no samples
    const std::vector<ProgramBlock>* blocks = nullptr;
    bool again = false;                        ///< backward begins with the forward
    PerStage received;                         ///< leaves
    std::vector<torch::autograd::Edge> roots;  ///< [sent value] its history; not its bytes
    torch::autograd::Edge loss_root;
    /// Tensors over what F saved and does not send, if it goes to the host.
    std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> saved;
    OnHost on_host;
    std::map<ValueId, at::Tensor> buffers;  ///< recomputation: as they were before the forward;
                                            ///< evaluation: its own, then lost
  };

  std::vector<at::Tensor> run_nodes(MicrobatchId m, Flight& flight, bool with_history, bool again);
  void run_instruction(const Instruction& instruction, MicrobatchId m, bool again);
  void run_block(const ProgramBlock& block, MicrobatchId m, const Flight& flight);
  torch::autograd::variable_list run_block_backward(
      const ProgramBlock& block, MicrobatchId m, const std::vector<at::Tensor>& inputs,
      const std::map<ValueId, at::Tensor>& buffers,
      const torch::autograd::variable_list& gradients);
  void let_go_of_received(Flight& flight) const;
  std::vector<at::Tensor> run_noting_saved(MicrobatchId m, Flight& flight);
  std::vector<c10::Storage> to_offload(const Flight& flight) const;
  void execute(const Instruction& instruction, MicrobatchId m, bool again);
  void call_plainly(const Instruction& instruction, std::vector<c10::IValue>& stack);
  void fill_values(MicrobatchId m, const Flight& flight);
  void take_own_buffers(Flight& flight);
  PerStage forward_nothing(MicrobatchId m);
  bool counts(MicrobatchId m) const { return shares_.empty() || shares_.at(m.index()) != 0; }
  at::Tensor gradient_of(MicrobatchId m, const Crossing& received, at::Tensor& leaf);
  PerStage run_backward(MicrobatchId m, const PerStage& gradients);
  c10::intrusive_ptr<WeightQueue> queue(MicrobatchId m);

  const Graph& graph_;
  RankTensors& tensors_;
  RandomTurns& turns_;
  StageOptions options_;
  CastCache casts_;
  StageSlice slice_;
  std::vector<StageId> sources_, destinations_;
  std::vector<std::vector<Crossing>> from_, to_;   ///< [source], [destination]
  std::vector<ValueId> sent_;                      ///< values that leave the stage, sorted
  std::map<std::int64_t, StageProgram> programs_;  ///< by samples a microbatch
  std::map<std::int64_t, std::vector<ProgramBlock>> blocks_;  ///< of the same
  const std::vector<ProgramBlock> no_blocks_;
  std::optional<ValueId> loss_value_;
  StageObserver* observer_ = nullptr;
  BatchStatistics statistics_;

  const StepInputs* inputs_ = nullptr;
  std::vector<double> shares_;      ///< [microbatch]
  double factor_ = 1;               ///< of the loss, in backward
  std::set<ValueId> no_gradient_;   ///< received values that got none though they may
  std::vector<at::Tensor> values_;  ///< [value] during a forward
  std::map<MicrobatchId, Flight> flights_;
  const Flight* backward_ = nullptr;  ///< whose backward runs
  std::map<MicrobatchId, c10::intrusive_ptr<WeightQueue>> queues_;
  std::map<MicrobatchId, at::Tensor> losses_;
  std::map<std::pair<MicrobatchId, ValueId>, at::Tensor> outputs_;
};

/// The value that is the model's loss: the first floating scalar among its outputs. ConfigError if
/// there is none.
ValueId loss_of(const Graph& graph);

}  // namespace pfeife
