// A step of one rank against the same graph as a plain loop that never waits for the device: what
// pfeife's executor adds, and what its waiting costs.
#include <c10/core/CachingDeviceAllocator.h>

#include "planner/ir/basics/error.h"
#include "runtime/device/rank_memory.h"
#include "runtime/execute/check.h"
#include "runtime/launch/rank_threads.h"
#include "runtime/profile/statistics.h"
#include "tests/gpu/card/plain_loop.h"
#include "tests/gpu/card/probe.h"

namespace pfeife::card {
namespace {

constexpr std::size_t kMicrobatches = 4;

using nlohmann::json;

/// Times of steps, of which the first two warm up; then memory and launches of one more.
json measured(const Probe& probe, const std::function<double()>& step) {
  std::vector<Nanoseconds> wholes, hosts;
  double first_loss = 0;
  for (int i = -2; i < probe.repetitions; ++i) {
    finish(probe.device);
    if (i == 0) c10::getDeviceAllocator(probe.device.type())->resetPeakStats(probe.device.index());
    const Nanoseconds begin = now();
    if (i == -2)
      first_loss = step();
    else
      step();
    const Nanoseconds given = now();
    finish(probe.device);
    if (i >= 0) hosts.push_back(given - begin), wholes.push_back(now() - begin);
  }
  const AllocatorStatistics memory = *allocator_statistics(probe.device);
  return {{"step_ms", milliseconds(median(wholes))},
          {"host_ms", milliseconds(median(hosts))},
          {"steps", probe.repetitions},
          {"first_loss", first_loss},
          {"allocated", memory.allocated.peak.value},
          {"requested", memory.requested.peak.value},
          {"reserved", memory.reserved.peak.value}};
}

class OneRank {
 public:
  OneRank(const Probe& probe, const ProbedModel& model, const std::string& precision)
      : probe_(probe), model_(model), pipeline_(unsplit_pipeline(model.graph, kMicrobatches)) {
    options_.placing.device = probe.device;
    options_.optimizer.kind = Optimizer::AdamW;
    options_.optimizer.learning_rate = 0;  // losses of the variants stay comparable
    set_precision(precision_named(precision), options_);
  }

  json measure() {
    json answer;
    RankTensors tensors;
    of_runtime(answer["pfeife"], /*time_actions=*/false, &tensors);
    of_plain_loop(answer["plain"], tensors);
    tensors = {};
    of_runtime(answer["pfeife_timed"], /*time_actions=*/true, nullptr);
    return answer;
  }

 private:
  /// Memory of earlier variants goes back, so that each begins with an empty allocator.
  void alone(const std::function<void(Transport&)>& body) {
    c10::getDeviceAllocator(probe_.device.type())->emptyCache();
    run_ranks(1, probe_.device, [&](RankId, Transport& transport) { body(transport); });
  }

  void of_runtime(json& answer, bool time_actions, RankTensors* tensors) {
    RankOptions options = options_;
    options.time_actions = time_actions;
    alone([&](Transport& transport) {
      RandomTurns turns;
      RankPipeline own(pipeline_, RankId{0}, model_.source, options, turns, transport);
      const StepInputs inputs = synthetic_step(pipeline_, 0, 0, options.placing);
      const auto step = [&] {
        own.step(inputs);
        return 0.0;
      };
      const auto first = [&, called = false]() mutable {
        step();
        return std::exchange(called, true) ? 0.0 : own.mean_loss().value();
      };
      answer = measured(probe_, first);
      answer["launches"] = to_json(count_launches(probe_, step));
      if (tensors == nullptr) return;
      *tensors = own.tensors();
      for (auto& [p, tensor] : tensors->parameters) tensor.mutable_grad().reset();
    });
  }

  void of_plain_loop(json& answer, const RankTensors& tensors) {
    alone([&](Transport&) {
      PlainLoop loop(model_.graph, tensors, options_);
      const StepInputs inputs = synthetic_step(pipeline_, 0, 0, options_.placing);
      const auto first = [&, called = false]() mutable {
        const at::Tensor loss = loop.step(inputs);
        return std::exchange(called, true) ? 0.0 : loss.item<double>();
      };
      answer = measured(probe_, first);
      answer["launches"] = to_json(count_launches(probe_, [&] { loop.step(inputs); }));
    });
  }

  const Probe& probe_;
  const ProbedModel& model_;
  Pipeline pipeline_;
  RankOptions options_;
};

}  // namespace

void probe_one_rank(const Probe& probe) {
  const ProbedModel model(probe, probe.model);
  json answer{{"model", probe.model},
              {"microbatch_size", model.graph.microbatch_size},
              {"microbatches", kMicrobatches}};
  for (const std::string& precision : precisions_of(probe, {"tf32", "bf16_amp", "fp16_amp"})) {
    answer["precisions"][precision] = OneRank(probe, model, precision).measure();
    probe.write(answer);
  }
}

}  // namespace pfeife::card
