#include "experiments/sweep/failures.h"

#include "experiments/sweep/single_case.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/grid.h"

namespace pfeife {
namespace {

/// Plans the request; the plan goes into a folder of its own in `out`.
PlanOfDevices plan_of(const SingleCase& single, const Request& request,
                      const std::filesystem::path& out, std::size_t threads) {
  const Planned planned = single.planned(request, threads);
  const Plan& plan = planned.best().plan;
  if (!out.empty()) save(planned, out / ("devices=" + std::to_string(plan.spec.ranks)));
  const auto samples = static_cast<double>(plan.spec.microbatches) *
                       static_cast<double>(planned.layers->microbatch_size) *
                       static_cast<double>(request.replicas.count);
  return {plan.spec.ranks, name_of(plan), plan.estimate, samples / seconds(plan.estimate)};
}

/// "3.1 h", "14 min", "30 s".
std::string time_text(double seconds) {
  if (seconds >= 3600) return fixed(seconds / 3600, 1) + " h";
  return seconds >= 60 ? fixed(seconds / 60, 1) + " min" : fixed(seconds, 1) + " s";
}

}  // namespace

FailuresAnswer plan_for_failures(const FailuresQuestion& question, std::size_t threads) {
  const SingleCase single = read_single_case(question.config, question.settings, "failures");
  const Request full = single.request();
  if (!full.plan.searched())
    throw ConfigError(single.config.place(given_key(full.plan)),
                      "a given plan has its number of devices; leave it out, so that one device "
                      "less can be planned");
  FailuresAnswer answer{.full = plan_of(single, full, question.out, threads)};
  if (answer.full.devices < 2)
    throw ConfigError(single.config.place("cases"),
                      "without its only device nothing is left to plan; give cases.devices at "
                      "least 2");
  Request less = full;
  less.devices = answer.full.devices - 1;
  if (!less.plan.devices.empty()) less.plan.devices.pop_back();
  answer.less = plan_of(single, less, question.out, threads);
  answer.replicas = static_cast<std::size_t>(full.replicas.count);
  const std::size_t planned = answer.full.devices * answer.replicas;
  const std::size_t devices = question.fleet.value_or(planned);
  if (devices % planned != 0)
    throw ConfigError({"--fleet " + std::to_string(devices), 0, 0},
                      "expected a multiple of the " + std::to_string(planned) +
                          " devices that the config plans for");
  const auto copies = static_cast<double>(devices / planned);
  answer.full.rate *= copies, answer.less.rate *= copies;
  answer.replicas *= devices / planned;
  answer.between = question.rate.seconds_between(devices);
  if (question.recovery.save * 2 >= answer.between)
    throw ConfigError({"--save " + time_text(question.recovery.save), 0, 0},
                      "failures come every " + time_text(answer.between) +
                          ", before a checkpoint is of use; save faster, or take fewer devices");
  answer.several_lost = question.recovery.repair > answer.between;
  answer.shares = time_shares(answer.between, question.recovery);
  const auto goodput_of = [&](double rate) {
    return goodput(answer.full.rate, rate, answer.between, question.recovery);
  };
  answer.waits = goodput_of(0);
  answer.goes_on = goodput_of(answer.less.rate);
  if (const auto replicas = static_cast<double>(answer.replicas); replicas > 1)
    answer.without_replica = goodput_of(answer.full.rate * (replicas - 1) / replicas);
  return answer;
}

std::string failures_text(const FailuresAnswer& answer) {
  const std::string less = std::to_string(answer.less.devices),
                    each = answer.replicas > 1 ? " in each replica" : "";
  std::vector<GridRow> rows;
  const auto add = [&](const std::string& name, double rate, const std::string& plan) {
    rows.push_back(
        {{{name}, {fixed(rate, 3)}, {fixed(100 * rate / answer.full.rate, 2) + " %"}, {plan}}});
  };
  add("no failures", answer.full.rate, answer.full.plan);
  add("waits for the device", answer.waits, "");
  add("goes on with " + less + " devices" + each, answer.goes_on, answer.less.plan);
  if (answer.replicas > 1) add("goes on without the replica", answer.without_replica, "");
  const TimeShares& shares = answer.shares;
  const auto percent = [](double share) { return fixed(100 * share, 2) + " %"; };
  return grid_text({{"", false}, {"samples/s"}, {"of none"}, {"plan", false}}, rows, false) +
         "\nestimated; steps of " + fixed(milliseconds(answer.full.step), 3) + " ms with " +
         std::to_string(answer.full.devices) + " devices, " +
         fixed(milliseconds(answer.less.step), 3) + " ms with " + less + "\na failure every " +
         time_text(answer.between) + ", a save every " + time_text(shares.interval) + ": " +
         percent(shares.saving) + " of the time saving, " + percent(shares.redone) +
         " doing work again, " + percent(shares.restarting) + " restarting\n" +
         (answer.several_lost
              ? "repairs take longer than failures take to come: several devices are lost at once, "
                "which is not modelled, so less is left\n"
              : "");
}

}  // namespace pfeife
