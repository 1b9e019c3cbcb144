#include "runtime/profiler.h"

#include <numeric>
#include <sstream>

#include "planner/ir/error.h"
#include "runtime/executor_overhead.h"
#include "runtime/machine.h"
#include "runtime/node_clock.h"
#include "runtime/node_memory.h"
#include "runtime/optimizer.h"
#include "runtime/rank_memory.h"
#include "runtime/statistics.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kTogetherTask = ~std::uint32_t{0} - 21;
constexpr std::uint32_t kCountTask = kTogetherTask - 1;
constexpr int kWarmUp = 2;
/// Repetitions, if nobody says how many.
constexpr Nanoseconds kTime = std::chrono::seconds(3);
constexpr std::int64_t kLeast = 10, kMost = 300;

/// A pass over all nodes, by microbatch.
struct PassSamples {
  std::vector<Samples> nodes;  ///< [node]
  std::vector<bool> ran;
  Samples outside;
};

struct NodeTimes {
  std::vector<Nanoseconds> median, spread;  ///< [node]
};

class Profiler {
 public:
  Profiler(const Graph& graph, const WeightSource& source, const ProfileOptions& options,
           Transport* together)
      : graph_(graph),
        options_(options),
        together_(together),
        effects_(effects_of(graph)),
        split_(whole_graph(graph, effects_)),
        tensors_(load_tensors(graph, split_, std::vector<StageId>{StageId{0}}, source,
                              options.placing)),
        joint_(graph, effects_, split_, StageId{0}, tensors_, turns_, stage_options(false)),
        halved_(graph, effects_, split_, StageId{0}, tensors_, turns_, stage_options(true)),
        clock_(graph.nodes.size(), options.placing.device) {
    optimizer_.kind = options.training.optimizer;
    inputs_.loss_scale = equal_scale(options.microbatches);
    for (std::size_t m = 0; m < options.microbatches; ++m)
      inputs_.microbatches.push_back(synthetic_inputs(
          graph, options.seed, MicrobatchId{static_cast<std::int64_t>(m)}, options.placing));
    for (auto* pass : {&forward_, &input_, &weight_}) {
      pass->nodes.resize(graph.nodes.size());
      pass->ran.resize(graph.nodes.size());
    }
    updates_.resize(graph.parameters.size());
  }

  ProfileReport measure() {
    say("warming up");
    for (int i = 0; i < kWarmUp; ++i) plain_joint_step(), plain_split_step();
    say("counting memory");
    const NodeMemory memory = count_memory();
    NodeClock::mark_cost(), NodeClock::backward_mark_cost();  // found once, not while timing
    agree_on_repetitions();
    warmed_up_ = true;
    for (int i = 0; i < repetitions_; ++i) {
      if (i % std::max(1, repetitions_ / 10) == 0)
        say(stream_all("repetition ", i + 1, " of ", repetitions_));
      cycle();
    }
    return report(memory);
  }

 private:
  StageOptions stage_options(bool split) const {
    return {.placing = options_.placing,
            .split_backward = split,
            .recompute = false,
            .autocast_bf16 = options_.training.precision == Precision::Bf16Amp,
            .training = true,
            .seed = options_.seed};
  }
  void say(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }

  void cycle() {
    plain_joint_step();
    plain_split_step();
    observed_step();
  }

  /// As many as were asked for, or as fill the time; what rank 0 says.
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
        together_->send(RankId{static_cast<std::int64_t>(r)}, tag,
                        {at::scalar_tensor(repetitions_)});
    else
      repetitions_ = together_->receive(RankId{0}, tag).tensors.at(0).item<int>();
  }

  /// Waits until all ranks are here.
  void meet() {
    ++inputs_.step;
    if (together_ == nullptr) return;
    const Tag tag{inputs_.step, kTogetherTask, 0};
    for (std::size_t r = 0; r < together_->ranks(); ++r)
      together_->send(RankId{static_cast<std::int64_t>(r)}, tag, {});
    for (std::size_t r = 0; r < together_->ranks(); ++r)
      together_->receive(RankId{static_cast<std::int64_t>(r)}, tag);
  }

  /// Runs and, unless this is to warm up, keeps the time.
  template <class Run>
  void time(Samples& samples, const Run& run) const {
    const long before = interruptions();
    const Nanoseconds begin = now();
    run();
    finish(options_.placing.device);
    const Nanoseconds end = now();
    if (warmed_up_) samples.add(end - begin, interruptions() != before);
  }
  MicrobatchId microbatch(std::size_t m) const {
    return MicrobatchId{static_cast<std::int64_t>(m)};
  }

  void plain_joint_step() {
    meet();
    joint_.begin(inputs_);
    for (std::size_t m = 0; m < options_.microbatches; ++m) {
      time(whole_forward_, [&] { joint_.forward(microbatch(m), {}); });
      time(whole_backward_, [&] { joint_.backward(microbatch(m), {}); });
    }
    time(whole_optimizer_, [&] { update_all(); });
  }

  void plain_split_step() {
    meet();
    halved_.begin(inputs_);
    for (std::size_t m = 0; m < options_.microbatches; ++m) {
      time(whole_split_forward_, [&] { halved_.forward(microbatch(m), {}); });
      time(whole_input_, [&] { halved_.backward_input(microbatch(m), {}); });
      time(whole_weight_, [&] { halved_.backward_weight(microbatch(m)); });
    }
    time(whole_optimizer_, [&] { update_all(); });
  }

  /// Node by node, parameter by parameter.
  void observed_step() {
    meet();
    halved_.begin(inputs_);
    halved_.observe(&clock_);
    for (std::size_t m = 0; m < options_.microbatches; ++m) {
      add(clock_.forward([&] { halved_.forward(microbatch(m), {}); }), forward_);
      add(clock_.backward([&] { halved_.backward_input(microbatch(m), {}); }), input_);
      add(clock_.weight([&] { halved_.backward_weight(microbatch(m)); }), weight_);
    }
    halved_.observe(nullptr);
    ++update_count_;
    for (const ParameterId p : split_.stages[0].parameters)
      time(updates_[p.index()], [&] { update_some({&p, 1}); });
  }

  void add(const PassTimes& times, PassSamples& samples) const {
    if (!warmed_up_) return;
    samples.outside.add(times.outside, times.interrupted);
    for (std::size_t n = 0; n < samples.nodes.size(); ++n) {
      samples.nodes[n].add(times.nodes[n], times.interrupted);
      samples.ran[n] = samples.ran[n] || times.ran[n];
    }
  }

  void update_all() {
    ++update_count_;
    update_some(split_.stages[0].parameters);
  }
  void update_some(std::span<const ParameterId> parameters) {
    update(tensors_, parameters, state_, optimizer_, update_count_);
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

  /// Medians of the nodes, scaled so that they add up to `sum.whole`: what lies outside the nodes
  /// (setting up values, autograd's walk before its first function) grows with their number, so it
  /// is spread evenly over those that take part; the rest is noise and goes by their time.
  NodeTimes add_up(const PassSamples& samples, MeasuredSum& sum) const {
    const auto nodes = samples.nodes.size();
    NodeTimes times{std::vector<Nanoseconds>(nodes), std::vector<Nanoseconds>(nodes)};
    const auto ran = std::ranges::count(samples.ran, true);
    const Nanoseconds each = ran > 0 ? median(samples.outside) / ran : Nanoseconds{0};
    for (std::size_t n = 0; n < nodes; ++n) {
      if (!samples.ran[n]) continue;
      times.median[n] = median(samples.nodes[n]) + each;
      times.spread[n] = spread(samples.nodes[n]);
      sum.nodes += times.median[n];
    }
    if (sum.nodes == Nanoseconds{0}) return times;
    const double scale =
        static_cast<double>(sum.whole.count()) / static_cast<double>(sum.nodes.count());
    for (auto* list : {&times.median, &times.spread})
      for (Nanoseconds& time : *list)
        time = Nanoseconds{std::llround(static_cast<double>(time.count()) * scale)};
    return times;
  }

  ProfileReport report(const NodeMemory& memory) const {
    ProfileReport report;
    const auto whole = [](const Samples& samples) {
      return MeasuredSum{median(samples), spread(samples), {}, samples.size(),
                         samples.interrupted()};
    };
    report.forward = whole(whole_forward_);
    report.backward_input = whole(whole_input_);
    report.backward_weight = whole(whole_weight_);
    report.optimizer = whole(whole_optimizer_);
    report.backward = whole(whole_backward_);
    report.split_forward = whole(whole_split_forward_);
    report.saved = memory.all_saved();
    report.weight_saved = memory.all_weight_saved();
    const NodeTimes f = add_up(forward_, report.forward), i = add_up(input_, report.backward_input),
                    w = add_up(weight_, report.backward_weight);
    Profile& profile = report.profile;
    describe(profile);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      profile.nodes.push_back({.forward = f.median[n],
                               .backward_input = i.median[n],
                               .backward_weight = w.median[n],
                               .saved = memory.saved[n],
                               .weight_saved = memory.weight_saved[n],
                               .temporary = memory.temporary[n],
                               .forward_spread = f.spread[n],
                               .backward_input_spread = i.spread[n],
                               .backward_weight_spread = w.spread[n]});
    profile.storages = memory.storages;
    add_parameters(report);
    return report;
  }

  void describe(Profile& profile) const {
    profile.graph_digest = graph_.digest;
    profile.device_kind = options_.device_kind;
    profile.training = options_.training;
    profile.source = FigureSource::Measured;
    profile.origin = stream_all(
        where_and_when(options_.placing.device), ", medians of ", repetitions_,
        " steps of ", options_.microbatches, " microbatches",
        together_ == nullptr || together_->ranks() == 1
            ? ""
            : stream_all(", ", together_->ranks() - 1, " other process beside"));
    profile.executor_overhead = executor_overhead(8, 16, 50);
  }

  void add_parameters(ProfileReport& report) const {
    for (std::size_t p = 0; p < updates_.size(); ++p) {
      ParameterProfile cost;
      cost.optimizer = median(updates_[p]);
      if (const auto found = state_.find(ParameterId{static_cast<std::int64_t>(p)});
          found != state_.end())
        for (const auto& [name, tensor] : found->second)
          cost.state += Bytes{static_cast<std::int64_t>(tensor.nbytes())};
      report.optimizer.nodes += cost.optimizer;
      report.profile.parameters.push_back(cost);
    }
    if (report.optimizer.nodes == Nanoseconds{0}) return;
    const double scale = static_cast<double>(report.optimizer.whole.count()) /
                         static_cast<double>(report.optimizer.nodes.count());
    for (ParameterProfile& cost : report.profile.parameters)
      cost.optimizer = Nanoseconds{
          std::llround(static_cast<double>(cost.optimizer.count()) * scale)};
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
  RankMemory memory_{options_.placing.device};
  OptimizerOptions optimizer_;
  OptimizerState state_;
  StepInputs inputs_;
  std::int64_t update_count_ = 0;
  int repetitions_ = 0;
  bool warmed_up_ = false;

  Samples whole_forward_, whole_backward_, whole_split_forward_, whole_input_, whole_weight_,
      whole_optimizer_;
  PassSamples forward_, input_, weight_;
  std::vector<Samples> updates_;  // [parameter]
};

}  // namespace

void require_possible(const ProfileOptions& options) {
  const Precision precision = options.training.precision;
  const bool on_cpu = options.placing.device.is_cpu();
  if (precision == Precision::Fp16Amp)
    throw ConfigError({"--precision"},
                      "fp16_amp needs a loss scale, which is not there; use bf16_amp");
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
