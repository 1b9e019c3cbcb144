#include "runtime/train_verb.h"

#include <iostream>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/folder_lock.h"
#include "planner/io/results/chrome_trace_reader.h"
#include "planner/io/results/profiler_trace.h"
#include "planner/ir/basics/error.h"
#include "runtime/device/counting_allocator.h"
#include "runtime/device/rank_memory.h"
#include "runtime/launch/rank_environment.h"
#include "runtime/timed/timed_run.h"
#include "runtime/train/measure.h"
#include "runtime/train/training.h"

namespace pfeife {
namespace {

std::filesystem::path trace_file(const TrainRequest& request) {
  if (!request.timed->empty()) return *request.timed;
  if (request.what.plan.empty())
    throw ConfigError({"--timed"}, "without a plan, needs a trace: --timed=trace.json");
  return std::filesystem::path(request.what.plan).parent_path() / "trace.json";
}

int train_timed(const TrainRequest& request, const Executable& run) {
  const std::filesystem::path file = trace_file(request);
  const ActionTimes times = read_action_times(file, TraceSource::Estimated);
  const TimedPipeline timed{
      run.pipeline.tasks, run.pipeline.placement,
      unit_costs(run.pipeline.graph, run.pipeline.split, run.pipeline.placement),
      task_durations(run.pipeline.tasks, times.length, file.string())};
  return start_ranks(run.pipeline.ranks(), request.launch, [&](const RankSeat& seat) {
    const TimedMeasurement measured =
        measure_timed(timed, seat.rank, request.steps, seat.entering, seat.transport);
    if (seat.rank != RankId{0}) return RankAnswer{};
    return RankAnswer{to_string(measured, times.step), ""};
  });
}

/// The checkpoint's data, or --new-data.
void require_same_data(const std::filesystem::path& file, const CheckpointInfo& info,
                       const TrainingData* data) {
  if (info.dataset == (data ? data->digest() : "")) return;
  const auto data_text = [](bool has_dataset, std::int64_t samples, const std::string& digest) {
    return has_dataset ? stream_all(samples, " samples (digest ", digest.substr(0, 12), ")")
                       : std::string("synthetic data");
  };
  throw ConfigError(
      {file.string()},
      "was trained on " + data_text(!info.dataset.empty(), info.samples, info.dataset) +
          ", now it would be continued on " +
          (data ? data_text(true, data->samples(), data->digest()) : data_text(false, 0, "")) +
          "; give --data the same folder, or --new-data to begin at the first sample "
          "of other data");
}

/// Every file is read once: by the process that starts the ranks, or by another launcher's ranks
/// together.
void require_intact(const std::filesystem::path& checkpoint, const CheckpointInfo& info) {
  std::vector<std::string> mine;
  const auto environment = rank_environment();
  if (environment && environment->shared) return;
  std::size_t i = 0;
  for (const auto& [name, digest] : info.digests)
    if (!environment || i++ % environment->ranks == environment->rank.index()) mine.push_back(name);
  require_digests(checkpoint, info, mine);
}

/// Ranks of our own launcher have it do what one process does for all.
bool acts_for_all() {
  const auto environment = rank_environment();
  return !environment || (!environment->shared && environment->rank == RankId{0});
}

/// What becomes of the loss scale where the checkpoint has none and the plan trains with one, or
/// the other way round; "" where both have one or neither.
std::string scale_text(const std::filesystem::path& file, const CheckpointInfo& info,
                       const RankOptions& rank) {
  if (rank.loss_scale && info.loss_scale == 0)
    return stream_all(file.string(), " has no loss scale, as it was not saved by training in ",
                      to_string(Precision::Fp16Amp), ": it begins at ", rank.loss_scale->initial,
                      "\n");
  if (!rank.loss_scale && info.loss_scale > 0)
    return stream_all(file.string(), ": its loss scale of ", info.loss_scale,
                      " is left out, as the plan does not train in ", to_string(Precision::Fp16Amp),
                      "\n");
  return "";
}

/// What is wrong with a checkpoint for this run is said before anything starts.
std::filesystem::path checkpoint_for(const TrainRequest& request, const TrainingData* data,
                                     Executable& run) {
  if (request.resume.empty()) return {};
  const std::filesystem::path found = newest_checkpoint(request.resume),
                              file = found / "checkpoint.json";
  const CheckpointInfo info = read_checkpoint_info(file);
  require_model(file, info, run.pipeline.graph);
  if (info.optimizer != to_string(run.rank.optimizer.kind))
    throw ConfigError({file.string()}, "was trained with " + info.optimizer +
                                           ", now it would be continued with " +
                                           to_string(run.rank.optimizer.kind));
  for (const auto* names : {&info.model, &info.optimizer_state})
    for (const std::string& name : *names)
      if (!info.digests.contains(name))
        throw ConfigError({file.string()}, "has no sha256 of " + name);
  if (!request.new_data) require_same_data(file, info, data);
  require_intact(found, info);
  if (acts_for_all()) std::cerr << scale_text(file, info, run.rank);
  run.rank.seed = info.seed;
  return found;
}

/// Prints at most a line a second, besides the first and the last step.
class ProgressLines {
 public:
  explicit ProgressLines(int steps) : left_(steps) {}
  void operator()(const StepProgress& progress) {
    since_ += progress.seconds;
    if (--left_ > 0 && since_ < 1 && !first_) return;
    first_ = false;
    since_ = 0;
    std::cout << to_string(progress) << std::endl;
  }

 private:
  int left_;
  bool first_ = true;
  double since_ = 0;
};

/// What the command line says of the update, over what the plan says.
void set_update(const TrainRequest& request, RankOptions& rank) {
  const auto set = [](const char* name, std::optional<double> given, double least, double& place) {
    if (!given) return;
    if (!(*given >= least && *given <= 1e30))
      throw ConfigError({name}, stream_all("must be a number of at least ", least));
    place = *given;
  };
  set("--learning-rate", request.learning_rate, 0, rank.optimizer.learning_rate);
  set("--momentum", request.momentum, 0, rank.optimizer.momentum);
  set("--weight-decay", request.weight_decay, 0, rank.optimizer.weight_decay);
  set("--clip-norm", request.clip_norm, 0, rank.optimizer.clip_norm);
  if (request.momentum && rank.optimizer.kind != Optimizer::Momentum)
    throw ConfigError({"--momentum"}, "is of SGD with momentum; the plan trains with " +
                                          to_string(rank.optimizer.kind) +
                                          " (training: {optimizer: momentum} of the experiment)");
  if (request.defer_batch_norm && request.what.replicas.count > 1)
    throw ConfigError({"--defer-batch-norm"},
                      "is of one pipeline: with --dp each replica has statistics of its share, and "
                      "those of the first are kept; leave one of the two out");
  rank.defer_batch_norm = request.defer_batch_norm;
}

RunFact training_fact(const TrainRequest& request, const RankOptions& rank) {
  const OptimizerOptions& o = rank.optimizer;
  return {"",
          stream_all(request.steps, " steps to train (learning rate ", o.learning_rate,
                     ", momentum ", o.momentum, ", weight decay ", o.weight_decay, ", clip norm ",
                     o.clip_norm, rank.defer_batch_norm ? ", deferred batch norm" : "",
                     request.data.empty() ? ", synthetic data" : ", data", ", saved every ",
                     request.save_every, ")"),
          "give all ranks the same arguments"};
}

std::string losses_line(const StepProgress& progress) {
  char line[96];
  std::snprintf(line, sizeof line, "%lld,%lld,%.17g\n", static_cast<long long>(progress.step - 1),
                static_cast<long long>(progress.seconds * 1e9), progress.loss);
  return line;
}

int train_on_data(const TrainRequest& request, Executable& run) {
  std::optional<FolderLock> lock;
  if (!request.save.empty() && acts_for_all()) {
    make_folder(request.save, "--save");
    lock.emplace(request.save, true,
                 "is in use: another training saves there; give --save another folder");
  }
  std::optional<TrainingData> data;
  if (!request.data.empty()) data.emplace(request.data, run.pipeline);
  const std::filesystem::path resume = checkpoint_for(request, data ? &*data : nullptr, run);
  const TrainingSettings settings{.steps = request.steps,
                                  .data = data ? &*data : nullptr,
                                  .save = request.save,
                                  .save_every = request.save_every,
                                  .resume = resume};
  LaunchOptions launch = request.launch;
  if (!request.save.empty()) launch.clean_up = [&] { remove_partial_checkpoints(request.save); };
  return start_ranks(run.pipeline.all_ranks(), launch, [&](const RankSeat& seat) {
    ProgressLines lines(request.steps);
    std::string steps = "step,time_ns,loss\n";
    train(run.pipeline, run.source, run.rank, settings, seat, [&](const StepProgress& progress) {
      lines(progress);
      steps += losses_line(progress);
    });
    if (seat.rank == RankId{0} && !request.out.empty()) write_file(request.out, steps);
    return RankAnswer{};
  });
}

/// rank0.json, rank1.json, ...
void write_traces(const std::filesystem::path& folder, const std::vector<Trace>& steps) {
  make_folder(folder, "--traces");
  for (std::size_t r = 0; r < steps.front().ranks; ++r)
    write_file(folder / ("rank" + std::to_string(r) + ".json"), profiler_trace(steps, RankId{r}),
               "--traces");
}

}  // namespace

int train_verb(TrainRequest request) {
  count_allocations();
  Executable run = read_executable(request.what);
  require_training(run);
  set_update(request, run.rank);
  if (request.clip_norm && *request.clip_norm > 0) add_norm_reduction(run.pipeline);
  run.place(request.launch);
  request.launch.facts.push_back(training_fact(request, run.rank));
  const at::Device device = request.launch.device;
  if (!request.traces.empty() && (request.timed || request.trains()))
    throw ConfigError(
        {"--traces"},
        "is of timed steps on synthetic data: leave out --timed, --data, --save and --resume");
  if (request.timed && request.trains())
    throw ConfigError({"--timed"}, "computes nothing: leave out --data, --save and --resume");
  if (request.timed && run.pipeline.replicas.count > 1)
    throw ConfigError({"--timed"}, "is of the plan's own pipeline: leave out --dp");
  if (request.timed) return train_timed(request, run);
  if (request.trains()) return train_on_data(request, run);
  return start_ranks(run.pipeline.all_ranks(), request.launch, [&](const RankSeat& seat) {
    const auto [measured, steps, clocks] =
        measure_steps(run.pipeline, seat.rank, run.source, run.rank, request.steps,
                      /*count_memory=*/!request.launch.threads || !device.is_cpu(), seat.turns,
                      seat.entering, seat.transport);
    if (seat.rank != RankId{0}) return RankAnswer{};
    if (!request.out.empty()) write_file(request.out, measurement_text(measured));
    if (!request.traces.empty()) write_traces(request.traces, steps);
    const double samples = static_cast<double>(run.pipeline.microbatches) *
                           static_cast<double>(run.pipeline.replicas.count) *
                           static_cast<double>(run.pipeline.graph.microbatch_size);
    return RankAnswer{summary(measured, samples) + clocks + to_string(allocator_statistics(device)),
                      ""};
  });
}

}  // namespace pfeife
