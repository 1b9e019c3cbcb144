#include "tests/plots/example_report.h"

#include "plots/report/packed.h"
#include "tests/plots/example_traces.h"

namespace pfeife {
namespace {

PlanRecord plan(const std::string& name, const std::string& family, Example example, Bytes limit,
                std::string& packed) {
  Example slower = example;
  slower.transfer *= 3;
  slower.source = TraceSource::Simulated;
  const std::vector<Trace> traces{example_trace(example), example_trace(slower)};
  const Trace& best = traces.back();
  PlanRecord plan;
  plan.row.plan = name;
  plan.row.family = family;
  plan.row.stages_per_rank = example.stages_per_rank;
  plan.row.estimate = step_time(traces[0]);
  plan.row.simulate = step_time(best);
  plan.row.samples_per_s = 24e9 * static_cast<double>(example.microbatches) /
                           static_cast<double>(step_time(best).count());
  plan.row.bubble = bubble(best);
  plan.row.memory_limit = limit;
  plan.critical_rank = critical_rank(best);
  Bytes peak;
  for (std::size_t r = 0; r < best.ranks; ++r) {
    const RankId rank{r};
    plan.attribution.push_back(attribution(best, rank));
    plan.need.allocated.push_back(peak_memory(best, rank));
    plan.need.limit.push_back(limit);
    peak = std::max(peak, plan.need.allocated.back());
  }
  plan.row.peak_memory = peak;
  plan.row.feasible = peak <= limit;
  packed += (packed.empty() ? "{" : ",") + plots::json_text(name) + ":[" +
            plots::packed_trace(best, {}) + "]";
  return plan;
}

}  // namespace

ReportInput example_report() {
  ReportInput input;
  input.title = "vit_g14";
  input.facts = {{"Model", "models/vit_g14.pt2"},
                 {"Cluster", "clusters/a100_sxm4_40gb_x8.yaml, first 2 and 4 devices"},
                 {"Training", "tf32, adam, microbatches of 24 samples"}};
  input.notes = {"The profile is calculated from published peaks of the device, not measured."};
  input.config =
      "version: 1\nmodel: models/vit_g14.pt2\ncases: {devices: [2, 4], microbatches: [8]}\n";
  for (const std::size_t devices : {std::size_t{2}, std::size_t{4}}) {
    CaseRecord report_case;
    std::string& traces = input.traces.emplace_back();
    report_case.name = "devices=" + std::to_string(devices) + ",microbatches=8";
    const Bytes limit{(devices == 2 ? 38 : 9) * kGiB.value};
    Example example{.ranks = devices, .microbatches = 8, .forward = Nanoseconds{41'234'567}};
    example.backward = Nanoseconds{81'987'654};
    example.transfer = Nanoseconds{912'345};
    example.optimizer = Nanoseconds{12'300'000};
    Example looped = example;
    looped.stages_per_rank = 2;
    looped.forward /= 2;
    looped.backward /= 2;
    Example slow = example;
    slow.forward += Nanoseconds{3'000'000};
    report_case.plans = {plan("planned", "looped", example, limit, traces),
                         plan("1f1b", "1f1b", slow, limit, traces),
                         plan("interleaved_1f1b", "interleaved_1f1b", looped, limit, traces)};
    traces += "}";
    PlanRecord& planned = report_case.plans[0];
    planned.row.knobs = "loop_batch=8, prefetch=1";
    planned.row.cuts = {101, 203};
    planned.cut_names = {"blocks.9", "blocks.19"};
    planned.row.lower_bound = *planned.row.estimate * 97 / 100;
    planned.row.bound_class = "looped";
    planned.row.gap = 0.031;
    planned.row.simulate_p95 = *planned.row.simulate + Nanoseconds{9'000'000};
    planned.row.candidates = 12345;
    report_case.bound_covers = "cuts of the captured order, 14 schedules, round-robin placement";
    for (std::size_t r = 0; r < devices; ++r)
      planned.stages.push_back(
          {RankId{r}, example.forward, example.backward + Nanoseconds{900'000 * r}});
    report_case.history = {{12, *planned.row.estimate * 5 / 4, std::nullopt},
                           {340, *planned.row.estimate * 21 / 20, *planned.row.estimate * 9 / 10},
                           {12345, planned.row.estimate, planned.row.lower_bound}};
    report_case.choices = {{.by = SelectBy::Estimate,
                            .number = 0,
                            .schedule = "looped",
                            .estimate = planned.row.estimate,
                            .simulate = planned.row.simulate,
                            .used = true},
                           {.by = SelectBy::Simulate,
                            .number = 1,
                            .schedule = "1f1b",
                            .estimate = *planned.row.estimate * 51 / 50,
                            .simulate = *planned.row.simulate * 99 / 100}};
    report_case.lost = {{"gpipe",
                         "gpipe",
                         {.why = Why::LacksMemory, .rank = RankId{0}, .lacking = 3 * kGiB},
                         *planned.row.estimate * 11 / 10},
                        {"looped_bfs, V = 2",
                         "looped_bfs",
                         {.why = Why::Slower, .slower = Nanoseconds{41'200'000}},
                         std::nullopt}};
    input.cases.push_back(report_case);
  }
  PlanRecord none;
  none.row.plan = "gpipe";
  none.reason = "no cuts fit: rank 0 lacks 3.2 GiB";
  input.cases[1].plans.push_back(none);
  input.cases[1].notes = {
      "2 operators have no rule and are charged by their bytes: aten::foo, aten::bar."};
  return input;
}

}  // namespace pfeife
