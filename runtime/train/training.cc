
#include "runtime/train/training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "planner/ir/basics/error.h"
#include "runtime/device/machine.h"
#include "runtime/device/rank_memory.h"
#include "runtime/execute/check.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kProgressTask = ~std::uint32_t{0} - 40;
constexpr RankId kZero{0};

/// The memory of the rank's process on a CPU, of its tensors on an accelerator.
Bytes most_memory(const RankMemory& memory, at::Device device) {
  return device.is_cpu() ? most_process_memory() : memory.allocated().peak;
}

/// On rank 0: loss and memory over all ranks; the others send theirs.
void gather_progress(StepProgress& progress, RankPipeline& own, Bytes memory,
                     Transport& transport) {
  const Tag tag{static_cast<std::uint64_t>(progress.step), kProgressTask, 0};
  const std::optional<double> loss = own.mean_loss();
  transport.send(kZero, tag,
                 {loss ? at::scalar_tensor(*loss, at::kDouble) : at::Tensor(),
                  at::scalar_tensor(memory.value, at::kLong)});
  if (transport.rank() != kZero) return;
  for (std::size_t r = 0; r < transport.ranks(); ++r) {
    const Tensors found = transport.receive(RankId{r}, tag).tensors;
    if (found.at(0).defined()) progress.loss += found.at(0).item<double>();  // of a replica
    progress.memory = std::max(progress.memory, Bytes{found.at(1).item<std::int64_t>()});
  }
  progress.loss = plain_nan(progress.loss);
}

/// What is trained on; a checkpoint of other data continues at the first sample.
void continue_from(const TrainingSettings& settings, const Pipeline& pipeline, Optimizer optimizer,
                   RankPipeline& own, CheckpointInfo& reached) {
  if (settings.data && !(settings.save.empty() && settings.resume.empty()))
    reached.dataset = settings.data->digest(), reached.samples = settings.data->samples();
  if (settings.resume.empty()) return;
  const CheckpointInfo info = read_checkpoint_info(settings.resume / "checkpoint.json");
  load_checkpoint(settings.resume, info, pipeline, optimizer, own);
  reached.steps = info.steps;
  if (LossScale* scale = own.loss_scale(); scale && info.loss_scale > 0)
    scale->set(static_cast<float>(info.loss_scale), info.good_steps);
  if (info.dataset == reached.dataset)
    reached.epoch = info.epoch, reached.next_sample = info.next_sample;
}

/// Undefined where samples are taken as they lie.
at::Tensor order_of(const TrainingSettings& settings, const CheckpointInfo& reached) {
  if (!settings.data || !settings.shuffle) return {};
  return shuffled_order(settings.data->samples(), reached.seed, reached.epoch);
}

}  // namespace

void train(const Pipeline& pipeline, const WeightSource& source, const RankOptions& options,
           const TrainingSettings& settings, const RankSeat& seat,
           const std::function<void(const StepProgress&)>& report) {
  CheckpointInfo reached{.model_digest = pipeline.graph.digest,
                         .optimizer = options.optimizer,
                         .seed = options.seed,
                         .shuffle = settings.shuffle};
  const RankMemory memory(options.placing.device);
  RankOptions untimed = options;
  untimed.time_actions = false;
  RankPipeline own(pipeline, seat.rank, source, untimed, seat.turns, seat.transport);
  if (seat.entering) own.on_entering(seat.entering);
  continue_from(settings, pipeline, options.optimizer.kind, own, reached);
  const std::set<ValueId> needed = inputs_of(pipeline, own.stages());
  at::Tensor order = order_of(settings, reached);
  Nanoseconds last = now();
  for (int i = 0; i < settings.steps; ++i) {
    const auto step = static_cast<std::uint64_t>(reached.steps);
    std::int64_t samples =
        static_cast<std::int64_t>(pipeline.microbatches * pipeline.replicas.count) *
        pipeline.graph.microbatch_size;
    if (settings.data) {
      samples = settings.data->in_step(reached.next_sample);
      if (samples <= 0) throw RuntimeFault(stream_all("step ", step + 1, " has no samples"));
      own.step(settings.data->step(step, reached.next_sample, needed, options.placing,
                                   own.replica(), order));
      reached.next_sample = settings.data->after(reached.next_sample);
      if (reached.next_sample == 0) ++reached.epoch, order = order_of(settings, reached);
    } else {
      own.step(synthetic_step(pipeline, step, options.seed, options.placing, own.replica()));
    }
    ++reached.steps;
    reached.updates = own.updates();
    if (const LossScale* scale = own.loss_scale())
      reached.loss_scale = scale->scale(), reached.good_steps = scale->good_steps();
    StepProgress progress{
        .step = reached.steps,
        .learning_rate = learning_rate(options.optimizer, static_cast<std::int64_t>(step))};
    gather_progress(progress, own, most_memory(memory, options.placing.device), seat.transport);
    // With a loss scale such a step was skipped: unless the scale has become useless.
    if (const LossScale* scale = own.loss_scale(); !scale || scale->scale() < 1)
      require_finite(progress.loss, progress.step);
    progress.seconds = seconds(now() - std::exchange(last, now()));
    progress.samples_per_second = static_cast<double>(samples) / progress.seconds;
    if (seat.rank == kZero && report) report(progress);
    const bool end = i + 1 == settings.steps;
    if (!settings.save.empty() &&
        (end || (settings.save_every > 0 && (i + 1) % settings.save_every == 0)))
      save_checkpoint(settings.save, pipeline, own, options, reached, seat.transport);
  }
}

std::string to_string(const StepProgress& progress) {
  char text[160];
  std::snprintf(text, sizeof text,
                "step %lld: loss %.6g, learning rate %.4g, %.4g samples/s, %lld MiB",
                static_cast<long long>(progress.step), progress.loss, progress.learning_rate,
                progress.samples_per_second, static_cast<long long>(progress.memory.value >> 20));
  return text;
}

}  // namespace pfeife
