#include "experiments/measure/measure.h"

#include <algorithm>
#include <thread>

#include "experiments/machine/child.h"
#include "experiments/machine/machine.h"
#include "experiments/measure/measured_inputs.h"
#include "planner/cost/estimate/priced_plan.h"
#include "planner/io/files/atomic_file.h"

namespace pfeife {
namespace {

void check_devices(const CaseConfig& config) {
  const std::size_t processors = std::thread::hardware_concurrency();
  if (config.devices > processors)
    throw ConfigError(config.place("devices"),
                      "\"measure\" runs each of " + std::to_string(config.devices) +
                          " devices as a process on a processor of its own, and this machine has " +
                          std::to_string(processors) +
                          "; ask for fewer devices, or leave "
                          "\"measure\" out of the engines");
}

void check_kinds(const CaseConfig& config, const Cluster& cluster) {
  for (std::size_t d = 0; d < config.devices && d < cluster.devices(); ++d)
    if (const DeviceKind& kind = cluster.kind(DeviceId{d}); kind.type != DeviceType::Cpu)
      throw ConfigError(config.place("engines.measure"),
                        "\"measure\" runs on processors of this machine, but \"" +
                            file_name(config, "cluster", config.cluster) +
                            "\" has devices of kind " + kind.name +
                            "; write \"cluster: measure\", or a cluster of type cpu");
}

bool is_known(std::span<const Measurement> rounds, double goal) {
  std::vector<double> medians;
  for (const Measurement& round : rounds)
    medians.push_back(static_cast<double>(round.step().count()));
  const auto found = median_interval(std::move(medians));
  return found && found->half_width() < goal;
}

/// The rounds of one plan.
struct Rounds {
  Evaluation* plan = nullptr;
  std::filesystem::path folder;
  std::vector<Measurement> measured;
  double others = 0;

  bool failed() const { return !plan->measure_failure.empty(); }
  void run() {
    measure_plan(*plan, folder);
    if (failed()) return;
    measured.push_back(std::move(*plan->measurement));
    others += plan->others;
  }
  void join() const {
    plan->measurement.reset();
    if (failed()) return;
    plan->others = others / static_cast<double>(measured.size());
    plan->measurement = joined(measured);
    write_file(folder / "measurement.csv", measurement_text(*plan->measurement));
  }
};

/// The profile of a case anew, in shares, beside its plans.
class ProfileAnew {
 public:
  ProfileAnew(CaseConfig config, const std::filesystem::path& case_folder)
      : config_(std::move(config)) {
    *config_.model.profile = case_folder / "profile_anew.yaml";
    forget_shares(config_);
  }

  /// Measures as many steps as a plan has in a round: a repetition has six.
  void take_share() {
    profile_share(config_,
                  static_cast<int>(std::max<std::size_t>(2, config_.measurement.steps / 6)));
  }

  void estimate(Evaluation& plan, Inputs& inputs) {
    use_profiled_settings(config_);
    const CaseInputs case_inputs{&config_, &inputs.layers(config_), &inputs.cluster(config_)};
    plan.anew =
        step_time(estimated_plan(case_inputs, plan.origin, plan.name, plan.plan, true).estimated);
  }

 private:
  CaseConfig config_;
};

}  // namespace

void check_measurable(const Experiment& experiment, Inputs& inputs) {
  bool runs = false;
  for (const CaseConfig& config : experiment.cases) {
    runs = runs || config.measure || config.cluster_measured || config.profile_measured;
    if (!config.measure) continue;
    check_devices(config);
    if (!config.cluster_measured) check_kinds(config, inputs.as_calibrated(config));
  }
  if (runs) find_pfeife_run();
}

void measure_plan(Evaluation& plan, const std::filesystem::path& folder) {
  const std::filesystem::path result = folder / "measurement.csv";
  std::error_code ignored;
  std::filesystem::remove(result, ignored);
  try {
    const OtherPrograms others;
    run_child(find_pfeife_run(),
              {"train", (folder / "plan.yaml").string(), "--model",
               plan.inputs.config->model.file.string(), "--steps",
               std::to_string(plan.inputs.config->measurement.steps), "--out", result.string()},
              folder / "measurement.log");
    plan.others = others.processors();
    plan.measurement = read_measurement(result, executed_graph(plan.plan, plan.costs));
  } catch (const std::exception& error) {
    plan.measure_failure = error.what();
  }
}

void measure_in_rounds(std::span<Evaluation* const> plans, const std::filesystem::path& case_folder,
                       const CaseConfig& config, Inputs& inputs,
                       const std::function<void(double)>& progress) {
  if (plans.empty()) return;
  const MeasurementSettings& settings = config.measurement;
  std::optional<ProfileAnew> anew;
  if (settings.rounds > 1 && config.profile_measured)
    anew.emplace(with_request(config, *plans.front()->inputs.config), case_folder);
  std::vector<Rounds> all;
  for (Evaluation* plan : plans) all.push_back({plan, case_folder / plan->name, {}, 0});
  for (std::size_t round = 0; round < settings.rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (Rounds& next = all[(round + i) % all.size()]; !next.failed()) next.run();
    if (anew) anew->take_share();
    if (progress) progress(static_cast<double>(round + 1) / static_cast<double>(settings.rounds));
    if (std::ranges::all_of(all, [&](const Rounds& rounds) {
          return rounds.failed() || is_known(rounds.measured, settings.interval);
        }))
      break;
  }
  for (const Rounds& rounds : all) {
    rounds.join();
    if (anew && rounds.plan->measurement) anew->estimate(*rounds.plan, inputs);
  }
}

}  // namespace pfeife
