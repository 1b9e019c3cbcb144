#include "runtime/profile/profiler.h"

#include <thread>

#include "planner/ir/basics/error.h"
#include "runtime/device/machine.h"
#include "runtime/device/rank_memory.h"
#include "runtime/execute/executor_overhead.h"
#include "runtime/model/loss.h"
#include "runtime/profile/part_steps.h"
#include "runtime/profile/profile_samples.h"
#include "runtime/transport/reason.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kTogetherTask = ~std::uint32_t{0} - 21;
constexpr std::uint32_t kCountTask = kTogetherTask - 1;
constexpr int kWarmUpSteps = 2;
constexpr std::size_t kParts = 4;
constexpr const char* kNoHalf = "not implemented for 'Half'";
/// Repetitions, if nobody says how many.
constexpr Nanoseconds kTime = std::chrono::seconds(6);
constexpr std::int64_t kLeast = 10, kMost = 300;
/// They are done in so many rounds with pauses between: a machine drifts over tens of seconds.
constexpr int kRounds = 10;
constexpr Nanoseconds kPause = std::chrono::milliseconds(1500);

class Profiler {
 public:
  Profiler(const Graph& graph, const WeightSource& source, const ProfileOptions& options,
           Transport* together)
      : graph_(graph),
        options_(options),
        together_(together),
        effects_(effects_of(graph)),
        split_(whole_graph(graph, effects_)),
        tensors_(
            load_tensors(graph, split_, std::vector<StageId>{StageId{0}}, source, options.placing)),
        joint_(graph, effects_, split_, StageId{0}, tensors_, turns_, stage_options(false)),
        halved_(graph, effects_, split_, StageId{0}, tensors_, turns_, stage_options(true)),
        clock_(graph.nodes.size(), options.placing.device),
        in_one_(graph, effects_, 1, tensors_, turns_, stage_options(true), together),
        parts_(graph, effects_, kParts, tensors_, turns_, stage_options(true), together),
        samples_(graph.nodes.size(), graph.parameters.size()) {
    optimizer_.kind = options.training.optimizer;
    if (options.training.precision == Precision::Fp16Amp) factor_.emplace(LossScaleOptions{});
    for (std::size_t m = 0; m < options.microbatches; ++m)
      inputs_.microbatches.push_back(
          synthetic_inputs(graph, options.seed, MicrobatchId{m}, options.placing));
  }

  ProfileReport measure() {
    const std::optional<ProfileSamples> earlier = earlier_samples();
    warm_up();
    say("counting memory");
    const NodeMemory memory = count_memory();
    NodeClock::mark_cost(), NodeClock::backward_mark_cost();  // found once, not while timing
    agree_on_repetitions();
    warmed_up_ = true;
    for (int i = 0; i < repetitions_; ++i) {
      if (i % std::max(1, repetitions_ / kRounds) == 0) {
        say(stream_all("repetition ", i + 1, " of ", repetitions_));
        if (i == 0 || options_.repetitions == 0) begin_round(i > 0);
      }
      cycle();
    }
    if (earlier) samples_.append(*earlier);
    if (!options_.samples.empty()) write_samples(options_.samples, timed_of(), samples_);
    ProfileReport report = report_of(samples_, memory, state_);
    describe(report.profile);
    return report;
  }

 private:
  StageOptions stage_options(bool split) const {
    const Precision precision = options_.training.precision;
    std::optional<at::ScalarType> autocast;
    if (precision == Precision::Bf16Amp) autocast = at::kBFloat16;
    if (precision == Precision::Fp16Amp) autocast = at::kHalf;
    return {.placing = options_.placing,
            .split_backward = split,
            .recompute = false,
            .autocast = autocast,
            .training = true,
            .seed = options_.seed};
  }
  void say(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }

  /// What the times are of, as the file of samples says it.
  std::string timed_of() const {
    const Training& training = options_.training;
    return stream_all(graph_.digest, " ", options_.device_kind, " ", to_string(training.precision),
                      " ", to_string(training.optimizer), " ", training.microbatch_size, " x ",
                      options_.microbatches, " samples, ", where(options_.placing.device));
  }
  std::optional<ProfileSamples> earlier_samples() const {
    if (options_.samples.empty()) return std::nullopt;
    return read_samples(options_.samples, timed_of(), graph_.nodes.size(),
                        graph_.parameters.size());
  }

  /// What LibTorch cannot compute in the precision shows here.
  void warm_up() {
    say("warming up");
    const auto steps = [&] {
      for (int i = 0; i < kWarmUpSteps; ++i) plain_joint_step(), plain_split_step(), part_steps();
    };
    if (!factor_) return steps();
    try {
      steps();
    } catch (const std::exception& error) {
      const std::string text = reason_of(error);
      if (text.find(kNoHalf) == std::string::npos) throw;
      throw RuntimeFault("LibTorch has no fp16 kernel on " + where(options_.placing.device) +
                         " for an operator of the model (" + text +
                         "): profile with --precision bf16_amp, or on another --device");
    }
  }

  void begin_round(bool pause) {
    if (pause) std::this_thread::sleep_for(kPause);
    samples_.steps.begin_round();
  }

  void cycle() {
    plain_joint_step();
    plain_split_step();
    part_steps();
    observed_step();
  }

  /// Sets the repetitions that were asked for, else those that fill the time on rank 0.
  void agree_on_repetitions() {
    repetitions_ = options_.repetitions;
    if (repetitions_ > 0) return;
    const Nanoseconds begin = now();
    cycle();
    const auto fit = kTime / std::max(now() - begin, Nanoseconds{1});
    repetitions_ = static_cast<int>(std::clamp<std::int64_t>(fit, kLeast, kMost));
    if (together_ == nullptr) return;
    const Tag tag{++inputs_.step, kCountTask, 0};
    if (together_->rank() == RankId{0})
      for (std::size_t r = 1; r < together_->ranks(); ++r)
        together_->send(RankId{r}, tag, {at::scalar_tensor(repetitions_)});
    else
      repetitions_ = together_->receive(RankId{0}, tag).tensors.at(0).item<int>();
  }

  /// Waits until all ranks are here.
  void meet() {
    ++inputs_.step;
    set_loss_scale();
    if (together_ == nullptr) return;
    const Tag tag{inputs_.step, kTogetherTask, 0};
    for (std::size_t r = 0; r < together_->ranks(); ++r) together_->send(RankId{r}, tag, {});
    for (std::size_t r = 0; r < together_->ranks(); ++r) together_->receive(RankId{r}, tag);
  }

  /// Runs and, unless this is to warm up, hands its time and whether it was interrupted to `keep`.
  template <class Keep, class Run>
  void time(const Keep& keep, const Run& run) {
    const long before = interruptions();
    const Nanoseconds begin = now();
    run();
    finish(options_.placing.device);
    const Nanoseconds end = now();
    if (warmed_up_) keep(end - begin, interruptions() != before);
  }
  template <class Run>
  void time(Whole pass, const Run& run) {
    time([&](Nanoseconds time, bool interrupted) { samples_.add(pass, time, interrupted); }, run);
  }

  void plain_joint_step() {
    meet();
    if (warmed_up_) samples_.steps.begin_step();
    joint_.begin(inputs_);
    for (std::size_t m = 0; m < options_.microbatches; ++m) {
      time(Whole::Forward, [&] { joint_.forward(MicrobatchId{m}, {}); });
      time(Whole::Backward, [&] { joint_.backward(MicrobatchId{m}, {}); });
    }
    time(Whole::Optimizer, [&] { update_all(); });
  }

  void plain_split_step() {
    meet();
    if (warmed_up_) samples_.steps.begin_step();
    halved_.begin(inputs_);
    for (std::size_t m = 0; m < options_.microbatches; ++m) {
      time(Whole::SplitForward, [&] { halved_.forward(MicrobatchId{m}, {}); });
      time(Whole::BackwardInput, [&] { halved_.backward_input(MicrobatchId{m}, {}); });
      time(Whole::BackwardWeight, [&] { halved_.backward_weight(MicrobatchId{m}); });
    }
    time(Whole::Optimizer, [&] { update_all(); });
  }

  /// On an accelerator the host runs ahead: what it does between two actions is not theirs.
  void part_steps() {
    if (parts_.parts() < 2 || !options_.placing.device.is_cpu()) return;
    for (PartSteps* steps : {&in_one_, &parts_}) {
      meet();
      if (warmed_up_) samples_.parts.begin_step();
      steps->run(inputs_, [&](PartSteps::Pass pass, std::size_t part, const auto& action) {
        const std::size_t kind = ProfileSamples::part_kind(
            pass, steps->parts() > 1 ? std::optional(part) : std::nullopt);
        time([&](Nanoseconds time, bool) { samples_.parts.add(kind, time); }, action);
      });
      update_all();
    }
    meet();
    if (warmed_up_) samples_.turns.begin_step();
    parts_.take_turns(inputs_, [&](PartSteps::Turn turn, Nanoseconds time) {
      if (warmed_up_) samples_.turns.add(turn, time);
    });
    update_all();
  }

  /// Node by node, parameter by parameter.
  void observed_step() {
    meet();
    halved_.begin(inputs_);
    halved_.observe(&clock_);
    for (std::size_t m = 0; m < options_.microbatches; ++m) {
      keep(clock_.forward([&] { halved_.forward(MicrobatchId{m}, {}); }), samples_.forward);
      keep(clock_.backward([&] { halved_.backward_input(MicrobatchId{m}, {}); }), samples_.input);
      keep(clock_.weight([&] { halved_.backward_weight(MicrobatchId{m}); }), samples_.weight);
    }
    halved_.observe(nullptr);
    ++update_count_;
    for (const ParameterId p : split_.stages[0].parameters)
      time([&](Nanoseconds time,
               bool interrupted) { samples_.updates[p.index()].add(time, interrupted); },
           [&] {
             update_some({&p, 1});
           });
  }

  void keep(const PassTimes& times, PassSamples& samples) const {
    if (warmed_up_) samples.add(times);
  }

  void update_all() {
    ++update_count_;
    update_some(split_.stages[0].parameters);
  }
  /// Before a step. With fp16, smaller than before if gradients were not finite.
  void set_loss_scale() {
    inputs_.shares = equal_shares(options_.microbatches);
    if (!factor_) return;
    if (std::exchange(overflowed_, false)) factor_->update(/*finite=*/false);
    for (double& share : inputs_.shares) share *= factor_->scale();
  }
  /// Part of the update, as on a rank. Gradients that are not finite become zero, which leaves the
  /// weights what they are and has the update timed all the same.
  void take_scale_off(std::span<const ParameterId> parameters) {
    Tensors gradients;
    for (const ParameterId p : parameters)
      if (const at::Tensor& gradient = tensors_.parameters.at(p).grad(); gradient.defined())
        gradients.push_back(gradient);
    if (unscale(gradients, factor_->inverse()).item<float>() == 0) return;
    overflowed_ = true;
    for (at::Tensor& gradient : gradients) gradient.zero_();
  }
  void update_some(std::span<const ParameterId> parameters) {
    if (factor_) take_scale_off(parameters);
    std::vector<ParameterRange> whole;
    for (const ParameterId p : parameters)
      whole.push_back({p, 0, tensors_.parameters.at(p).numel()});
    update(tensors_, whole, state_, optimizer_, update_count_);
  }

  NodeMemory count_memory() {
    meet();
    joint_.begin(inputs_);
    joint_.forward(MicrobatchId{0}, {});  // makes the gradients, so that they are not counted
    joint_.backward(MicrobatchId{0}, {});
    joint_.begin(inputs_);
    halved_.begin(inputs_);
    NodeMemory memory = measure_memory(graph_, tensors_, inputs_, joint_, halved_);
    update_all();
    return memory;
  }

  void describe(Profile& profile) const {
    profile.graph_digest = graph_.digest;
    profile.device_kind = options_.device_kind;
    profile.training = options_.training;
    profile.origin =
        stream_all(where_and_when(options_.placing.device), ", medians of ",
                   samples_.forward.outside.size() / options_.microbatches, " steps of ",
                   options_.microbatches, " microbatches",
                   together_ == nullptr || together_->ranks() == 1
                       ? ""
                       : stream_all(", ", together_->ranks() - 1, " other process beside"));
    profile.executor_overhead = executor_overhead(8, 16, 50);
  }

  const Graph& graph_;
  const ProfileOptions& options_;
  Transport* together_;
  std::vector<NodeEffects> effects_;
  GraphSplit split_;
  RankTensors tensors_;
  RandomTurns turns_;
  GraphStage joint_, halved_;
  NodeClock clock_;
  PartSteps in_one_, parts_;
  RankMemory memory_{options_.placing.device};
  OptimizerOptions optimizer_;
  OptimizerState state_;
  std::optional<LossScale> factor_;  ///< of fp16
  bool overflowed_ = false;
  StepInputs inputs_;
  std::int64_t update_count_ = 0;
  int repetitions_ = 0;
  bool warmed_up_ = false;

  ProfileSamples samples_;
};

}  // namespace

void require_possible(const ProfileOptions& options) {
  const Precision precision = options.training.precision;
  const bool on_cpu = options.placing.device.is_cpu();
  if (precision == Precision::Tf32 && on_cpu)
    throw ConfigError({"--precision"}, "tf32 is of accelerators (--device cuda); use fp32");
}

ProfileReport profile_model(const Graph& graph, const WeightSource& source,
                            const ProfileOptions& options, Transport* together) {
  require_possible(options);
  count_allocations();
  return Profiler(graph, source, options, together).measure();
}

}  // namespace pfeife
