#include <iostream>
#include <tuple>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/part_locks.h"
#include "planner/io/results/profiler_trace.h"
#include "planner/ir/basics/error.h"
#include "runtime/device/counting_allocator.h"
#include "runtime/device/rank_memory.h"
#include "runtime/launch/rank_environment.h"
#include "runtime/train/measure.h"
#include "runtime/train/training.h"
#include "runtime/verbs.h"

namespace pfeife {
namespace {

/// Errors: ConfigError, always: the checkpoint is of other data.
void refuse_data(const std::filesystem::path& file, const CheckpointInfo& info,
                 const TrainingData* data) {
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

/// Samples continue in the order that the checkpoint is in the middle of.
void require_same_order(const std::filesystem::path& file, const TrainRequest& request,
                        const CheckpointInfo& info) {
  if (!request.shuffle || info.shuffle || info.next_sample == 0) return;
  throw ConfigError({file.string()},
                    stream_all("is at sample ", info.next_sample, " of ", info.samples,
                               ", which are taken as they lie; --shuffle may begin between epochs: "
                               "leave it out"));
}

/// The checkpoint that a run continues from.
struct Resumed {
  std::filesystem::path folder;
  CheckpointInfo info;
  bool same_data = true;
};

/// What is wrong with a checkpoint for this run is said before anything starts.
std::optional<Resumed> checkpoint_for(const TrainRequest& request, const TrainingData* data,
                                      Executable& run) {
  if (request.resume.empty()) return {};
  const std::filesystem::path found = newest_checkpoint(request.resume),
                              file = found / "checkpoint.json";
  const CheckpointInfo info = read_checkpoint_info(file);
  require_model(file, info, run.pipeline.graph);
  if (info.optimizer.kind != run.rank.optimizer.kind)
    throw ConfigError({file.string()}, "was trained with " + to_string(info.optimizer.kind) +
                                           ", now it would be continued with " +
                                           to_string(run.rank.optimizer.kind));
  for (const auto* names : {&info.model, &info.optimizer_state})
    for (const std::string& name : *names)
      if (!info.digests.contains(name))
        throw ConfigError({file.string()}, "has no sha256 of " + name);
  const bool same_data = info.dataset == (data ? data->digest() : "");
  if (!same_data && !request.new_data) refuse_data(file, info, data);
  if (same_data) require_same_order(file, request, info);
  require_intact(found, info);
  if (acts_for_all()) std::cerr << scale_text(file, info, run.rank);
  run.rank.seed = info.seed;
  return Resumed{found, info, same_data};
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

bool is_adam(Optimizer kind) { return kind == Optimizer::Adam || kind == Optimizer::AdamW; }

/// Errors: ConfigError of an option that the plan's optimizer does not have.
void require_own_options(const TrainRequest& request, Optimizer kind) {
  struct Option {
    const char* name;
    bool given, has;
    const char* others;
  };
  const char *adam = "adam and adamw", *momentum = "momentum";
  for (const Option& option :
       {Option{"--momentum", request.momentum.has_value(), kind == Optimizer::Momentum, momentum},
        {"--beta1", request.beta1.has_value(), is_adam(kind), adam},
        {"--beta2", request.beta2.has_value(), is_adam(kind), adam},
        {"--eps", request.epsilon.has_value(), is_adam(kind), adam}})
    if (option.given && !option.has)
      throw ConfigError({option.name},
                        stream_all("is of the optimizer ", option.others, "; the plan trains with ",
                                   to_string(kind),
                                   " (training: {optimizer: ...} of the experiment): leave it out, "
                                   "or plan with another optimizer"));
}

RateSchedule schedule_named(const std::string& name) {
  std::string list;
  for (const RateSchedule known : rate_schedules()) {
    if (to_string(known) == name) return known;
    list += (list.empty()                       ? ""
             : known == rate_schedules().back() ? " or "
                                                : ", ") +
            to_string(known);
  }
  throw ConfigError({"--lr-schedule"}, "unknown schedule '" + name + "'; use " + list);
}

/// `done`: steps of earlier runs.
void set_schedule(const TrainRequest& request, std::int64_t done, OptimizerOptions& options) {
  if (request.schedule) options.schedule = schedule_named(*request.schedule);
  for (const auto& [name, given, place] :
       {std::tuple{"--warmup-steps", request.warmup_steps, &options.warmup_steps},
        {"--lr-decay-steps", request.decay_steps, &options.decay_steps}})
    if (given) {
      if (*given < 0) throw ConfigError({name}, stream_all("is ", *given, "; give 0 or more"));
      *place = *given;
    }
  if (options.schedule == RateSchedule::Constant) {
    for (const auto& [name, given] :
         {std::pair{"--lr-decay-steps", request.decay_steps.has_value()},
          {"--min-lr", request.min_lr.has_value()}})
      if (given)
        throw ConfigError({name},
                          "is where a decay ends, and --lr-schedule is constant: leave it "
                          "out, or use --lr-schedule linear or cosine");
    options.decay_steps = 0, options.min_rate = 0;
    return;
  }
  if (options.decay_steps == 0) options.decay_steps = done + request.steps;
  if (options.warmup_steps >= options.decay_steps)
    throw ConfigError(
        {"--warmup-steps"},
        stream_all("is ", options.warmup_steps, ", the decay ends after ", options.decay_steps,
                   " steps: give fewer, or more --lr-decay-steps"));
  if (options.min_rate > options.learning_rate)
    throw ConfigError({"--min-lr"},
                      stream_all("is ", options.min_rate, "; give at most the learning rate, ",
                                 options.learning_rate));
}

/// The update as the command line has it, else the checkpoint, else the plan.
void set_update(const TrainRequest& request, const CheckpointInfo* resumed, RankOptions& rank) {
  OptimizerOptions& options = rank.optimizer;
  require_own_options(request, options.kind);
  if (resumed) {
    const double planned = options.clip_norm;
    options = resumed->optimizer;
    if (planned > 0) options.clip_norm = planned;
  }
  const auto set = [](const char* name, std::optional<double> given, double& place,
                      bool below_one = false) {
    if (!given) return;
    if (!(*given >= 0 && *given <= 1e30 && (!below_one || *given < 1)))
      throw ConfigError({name}, stream_all("is ", *given, "; give a number of at least 0",
                                           below_one ? " and less than 1" : ""));
    place = *given;
  };
  set("--learning-rate", request.learning_rate, options.learning_rate);
  set("--min-lr", request.min_lr, options.min_rate);
  set("--momentum", request.momentum, options.momentum);
  set("--beta1", request.beta1, options.beta1, /*below_one=*/true);
  set("--beta2", request.beta2, options.beta2, /*below_one=*/true);
  set("--eps", request.epsilon, options.epsilon);
  set("--weight-decay", request.weight_decay, options.weight_decay);
  set("--clip-norm", request.clip_norm, options.clip_norm);
  set_schedule(request, resumed ? resumed->steps : 0, options);
  if (request.defer_batch_norm && request.what.replicas.count > 1)
    throw ConfigError({"--defer-batch-norm"},
                      "is of one pipeline: with --dp each replica has statistics of its share, and "
                      "those of the first are kept; leave one of the two out");
  rank.defer_batch_norm = request.defer_batch_norm;
}

RunFact training_fact(const TrainRequest& request, const RankOptions& rank) {
  const OptimizerOptions& o = rank.optimizer;
  const auto decay = [&] {
    return o.schedule == RateSchedule::Constant
               ? std::string()
               : stream_all(", ", to_string(o.schedule), " to ", o.min_rate, " at step ",
                            o.decay_steps);
  };
  return {
      "",
      stream_all(request.steps, " steps to train (learning rate ", o.learning_rate, ", warm-up of ",
                 o.warmup_steps, decay(), ", momentum ", o.momentum, ", betas ", o.beta1, " and ",
                 o.beta2, ", eps ", o.epsilon, ", weight decay ", o.weight_decay, ", clip norm ",
                 o.clip_norm, rank.defer_batch_norm ? ", deferred batch norm" : "",
                 request.data.empty() ? ", synthetic data" : ", data",
                 request.shuffle ? ", shuffled" : "", ", saved every ", request.save_every, ")"),
      "give all ranks the same arguments"};
}

std::string losses_line(const StepProgress& progress) {
  char line[128];
  std::snprintf(
      line, sizeof line, "%lld,%lld,%.17g,%.17g\n", static_cast<long long>(progress.step - 1),
      static_cast<long long>(progress.seconds * 1e9), progress.loss, progress.learning_rate);
  return line;
}

/// `resumed`: nullptr = from the model's own weights.
void prepare_update(TrainRequest& request, const CheckpointInfo* resumed, Executable& run) {
  set_update(request, resumed, run.rank);
  if (run.rank.optimizer.clip_norm > 0) add_norm_reduction(run.pipeline);
  run.place(request.launch);
  request.launch.facts.push_back(training_fact(request, run.rank));
}

int train_on_data(TrainRequest& request, Executable& run) {
  std::optional<FolderLock> lock;
  if (!request.save.empty() && acts_for_all()) {
    make_folder(request.save, "--save");
    lock.emplace(request.save, true,
                 "is in use: another training saves there; give --save another folder");
  }
  std::optional<TrainingData> data;
  if (!request.data.empty()) data.emplace(request.data, run.pipeline);
  const auto resumed = checkpoint_for(request, data ? &*data : nullptr, run);
  prepare_update(request, resumed ? &resumed->info : nullptr, run);
  const TrainingSettings settings{
      .steps = request.steps,
      .data = data ? &*data : nullptr,
      .shuffle = request.shuffle || (resumed && resumed->same_data && resumed->info.shuffle),
      .save = request.save,
      .save_every = request.save_every,
      .resume = resumed ? resumed->folder : std::filesystem::path()};
  LaunchOptions launch = request.launch;
  if (!request.save.empty()) launch.clean_up = [&] { remove_partial_checkpoints(request.save); };
  return start_ranks(run.pipeline.all_ranks(), launch, [&](const RankSeat& seat) {
    ProgressLines lines(request.steps);
    std::string steps = "step,time_ns,loss,learning_rate\n";
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
  if (!request.traces.empty() && request.trains())
    throw ConfigError({"--traces"},
                      "is of timed steps on synthetic data: leave out --data, --save and --resume");
  if (request.shuffle && request.data.empty())
    throw ConfigError({"--shuffle"}, "is of the samples of --data: give both, or leave it out");
  if (request.trains()) return train_on_data(request, run);
  prepare_update(request, nullptr, run);
  const at::Device device = request.launch.device;
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
