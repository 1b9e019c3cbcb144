#include "tests/gpu/card/probe.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include "planner/io/files/atomic_file.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"
#include "runtime/device/machine.h"
#include "runtime/profile/statistics.h"
#include "tests/gpu/card/first_layers.h"
#include "tests/gpu/fake_card.h"

namespace pfeife::card {
namespace {

std::filesystem::path file_of(const Probe& probe, const std::string& model) {
  return probe.files / "configs/models" / (model.substr(0, model.find(':')) + ".pt2");
}

Graph graph_of(const Probe& probe, const std::string& model) {
  Graph graph = read_pt2(file_of(probe, model));
  const auto colon = model.find(':');
  return colon == model.npos ? graph : first_layers(graph, std::stoi(model.substr(colon + 1)));
}

bool is(const std::string& name, const char* word) { return name.find(word) != name.npos; }

}  // namespace

std::string Probe::name() const { return stand_in ? "stand_in" : card_name(device); }

void Probe::write(nlohmann::json answer) const {
  answer["device"] = name();
  answer["stand_in"] = stand_in;
  answer["where"] = stand_in ? "stand-in on " + where_and_when() : where_and_when(device);
  write_file(out, answer.dump(1) + "\n");
}

ProbedModel::ProbedModel(const Probe& probe, const std::string& name)
    : graph(graph_of(probe, name)), source(file_of(probe, name), 1) {}

void set_precision(Precision precision, RankOptions& rank) {
  allow_tf32(precision == Precision::Tf32);
  rank.autocast.reset();
  if (precision == Precision::Bf16Amp) rank.autocast = at::kBFloat16;
  if (precision == Precision::Fp16Amp) rank.autocast = at::kHalf;
}

Precision precision_named(const std::string& name) {
  for (const Precision p :
       {Precision::Fp32, Precision::Tf32, Precision::Bf16Amp, Precision::Fp16Amp})
    if (to_string(p) == name) return p;
  throw ConfigError({"--precision"}, "'" + name + "' is none of fp32, tf32, bf16_amp, fp16_amp");
}

std::vector<std::string> precisions_of(const Probe& probe, std::vector<std::string> all) {
  return probe.precision.empty() ? all : std::vector{probe.precision};
}

Launches count_launches(const Probe& probe, const std::function<void()>& work) {
  namespace kineto = torch::profiler::impl;
  Launches counted;
  finish(probe.device);
  if (probe.stand_in) {
    testing::take_card_log();
    work();
    const testing::CardLog log = testing::take_card_log();
    return {log.kernels, log.copies, 0, log.finished.size() + log.reads, 0};
  }
  const kineto::ProfilerConfig config(kineto::ProfilerState::KINETO);
  const std::set<kineto::ActivityType> activities{kineto::ActivityType::CPU,
                                                  kineto::ActivityType::CUDA};
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  work();
  finish(probe.device);
  const auto result = torch::autograd::profiler::disableProfiler();
  for (const auto& event : result->events()) {
    const std::string name = event.name();
    if (event.deviceType() != at::kCUDA) {
      counted.waits += is(name, "Synchronize");
    } else if (is(name, "Memcpy")) {
      ++counted.copies;
    } else if (is(name, "Memset")) {
      ++counted.sets;
    } else {
      ++counted.kernels;
      counted.kernel_ms += static_cast<double>(event.durationNs()) * 1e-6;
    }
  }
  return counted;
}

nlohmann::json to_json(const Launches& launches) {
  return {{"kernels", launches.kernels},
          {"copies", launches.copies},
          {"sets", launches.sets},
          {"waits", launches.waits},
          {"kernel_ms", launches.kernel_ms}};
}

Nanoseconds time_of(at::Device device, const std::function<void()>& work) {
  constexpr Nanoseconds kFill = std::chrono::milliseconds(20);
  const auto run = [&](std::int64_t count) {
    finish(device);
    const Nanoseconds begin = now();
    for (std::int64_t i = 0; i < count; ++i) work();
    finish(device);
    return std::max((now() - begin) / count, Nanoseconds{1});
  };
  run(2);  // chooses kernels, fills caches
  const std::int64_t count = std::clamp<std::int64_t>(kFill / run(1), 1, 2000);
  std::vector<Nanoseconds> times;
  for (int i = 0; i < 5; ++i) times.push_back(run(count));
  return median(std::move(times));
}

}  // namespace pfeife::card
