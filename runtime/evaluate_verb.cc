#include <cstdio>
#include <set>

#include "planner/ir/basics/error.h"
#include "runtime/device/counting_allocator.h"
#include "runtime/device/machine.h"
#include "runtime/device/rank_memory.h"
#include "runtime/train/training.h"
#include "runtime/verbs.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kEvaluatedTask = ~std::uint32_t{0} - 41;
constexpr RankId kZero{0};

/// What rank 0 hears of all ranks.
struct Evaluated {
  double loss = 0;  ///< mean over the samples
  std::int64_t samples = 0, steps = 0;
  double seconds = 0;
  Bytes memory{0};  ///< most of a rank
};

std::string to_string(const Evaluated& evaluated, std::int64_t left_out) {
  char text[200];
  std::snprintf(text, sizeof text,
                "%lld samples in %lld steps: loss %.6g, %.4g samples/s, %lld MiB\n",
                static_cast<long long>(evaluated.samples), static_cast<long long>(evaluated.steps),
                evaluated.loss, static_cast<double>(evaluated.samples) / evaluated.seconds,
                static_cast<long long>(evaluated.memory.value >> 20));
  std::string said = text;
  if (left_out > 0)
    said += stream_all(left_out,
                       " samples at the end do not fill a step and are left out: export "
                       "the model with an open batch size to evaluate them\n");
  return said;
}

/// Sums what each rank has of the loss so far, and takes the largest memory.
void gather(Evaluated& evaluated, Bytes memory, Transport& transport) {
  const Tag tag{0, kEvaluatedTask, 0};
  transport.send(
      kZero, tag,
      {at::scalar_tensor(evaluated.loss, at::kDouble), at::scalar_tensor(memory.value, at::kLong)});
  if (transport.rank() != kZero) return;
  evaluated.loss = 0;
  for (std::size_t r = 0; r < transport.ranks(); ++r) {
    const Tensors found = transport.receive(RankId{r}, tag).tensors;
    evaluated.loss += found.at(0).item<double>();
    evaluated.memory = std::max(evaluated.memory, Bytes{found.at(1).item<std::int64_t>()});
  }
}

Evaluated evaluate_all(const Executable& run, const TrainingData& data,
                       const std::filesystem::path& checkpoint, const RankSeat& seat) {
  const RankMemory memory(run.rank.placing.device);
  RankPipeline own(run.pipeline, seat.rank, run.source, run.rank, seat.turns, seat.transport);
  if (!checkpoint.empty())  // an optimizer without state: it is not needed
    load_checkpoint(checkpoint, read_checkpoint_info(checkpoint / "checkpoint.json"), run.pipeline,
                    Optimizer::Sgd, own);
  const std::set<ValueId> needed = inputs_of(run.pipeline, own.stages());
  Evaluated evaluated;
  const Nanoseconds begin = now();
  std::int64_t sample = 0;
  do {
    const std::int64_t samples = data.in_step(sample);
    own.evaluate(data.step(static_cast<std::uint64_t>(evaluated.steps), sample, needed,
                           run.rank.placing, own.replica()));
    evaluated.loss += own.mean_evaluation_loss().value_or(0) * static_cast<double>(samples);
    evaluated.samples += samples, ++evaluated.steps;
    sample = data.after(sample);
  } while (sample != 0);
  evaluated.loss /= static_cast<double>(evaluated.samples);
  const at::Device device = run.rank.placing.device;
  gather(evaluated, device.is_cpu() ? most_process_memory() : memory.allocated().peak,
         seat.transport);
  evaluated.seconds = seconds(now() - begin);
  return evaluated;
}

}  // namespace

int evaluate_verb(EvaluateRequest request) {
  if (request.data.empty())
    throw ConfigError({"--data"}, "needs a folder of .npy files named after the model's inputs");
  count_allocations();
  Executable run = read_executable(request.what);
  run.rank.update = false;
  run.rank.loss_scale.reset();
  run.rank.time_actions = false;
  run.place(request.launch);
  const TrainingData data(request.data, run.pipeline);
  std::filesystem::path checkpoint;
  if (!request.resume.empty()) {
    checkpoint = newest_checkpoint(request.resume);
    const std::filesystem::path file = checkpoint / "checkpoint.json";
    require_model(file, read_checkpoint_info(file), run.pipeline.graph);
  }
  return start_ranks(run.pipeline.all_ranks(), request.launch, [&](const RankSeat& seat) {
    const Evaluated evaluated = evaluate_all(run, data, checkpoint, seat);
    if (seat.rank != kZero) return RankAnswer{};
    return RankAnswer{to_string(evaluated, data.samples() - evaluated.samples), ""};
  });
}

}  // namespace pfeife
