// The fields of results with their names in files, each list written once: results.json, the
// records of cases and results.csv all follow it. `visit(name, field)` is called for every field,
// in the order of the columns.
#pragma once

#include <concepts>
#include <type_traits>

#include "planner/io/results/results.h"

namespace pfeife {

template <class Object, class T>
concept Is = std::same_as<std::remove_const_t<Object>, T>;

/// The columns of results.csv; those of the case itself stand after `plan` (results_csv.cc).
template <Is<ResultRow> Row, class Visit>
void each_field(Row& row, const Visit& visit) {
  visit("case", row.case_name);
  visit("plan", row.plan);
  visit("family", row.family);
  visit("devices", row.devices);
  visit("microbatches", row.microbatches);
  visit("microbatch_size", row.microbatch_size);
  visit("stages_per_rank", row.stages_per_rank);
  visit("cuts", row.cuts);
  visit("knobs", row.knobs);
  visit("estimate_ms", row.estimate);
  visit("simulate_ms", row.simulate);
  visit("simulate_p95_ms", row.simulate_p95);
  visit("measure_ms", row.measure);
  visit("samples_per_s", row.samples_per_s);
  visit("bubble_fraction", row.bubble);
  visit("lower_bound_ms", row.lower_bound);
  visit("gap_fraction", row.gap);
  visit("simulate_gap_fraction", row.simulate_gap);
  visit("peak_memory_bytes", row.peak_memory);
  visit("reserved_memory_bytes", row.reserved);
  visit("memory_limit_bytes", row.memory_limit);
  visit("feasible", row.feasible);
  visit("search_s", row.search_s);
  visit("candidates", row.candidates);
  visit("estimate_p5_ms", row.estimate_p5);
  visit("estimate_median_ms", row.estimate_median);
  visit("estimate_p95_ms", row.estimate_p95);
  visit("bound_class", row.bound_class);
}

/// What fills a rank's memory.
template <Is<MemoryContents> Contents, class Visit>
void each_field(Contents& contents, const Visit& visit) {
  visit("parameters_bytes", contents.parameters);
  visit("gradients_bytes", contents.gradients);
  visit("optimizer_bytes", contents.optimizer);
  visit("saved_bytes", contents.saved);
  visit("autocast_copies_bytes", contents.autocast_copies);
  visit("held_for_weights_bytes", contents.held_for_weights);
  visit("buffers_bytes", contents.buffers);
  visit("temporary_bytes", contents.temporary);
  visit("free_in_segments_bytes", contents.segments);
  visit("context_bytes", contents.context);
  visit("communicators_bytes", contents.communicators);
}

/// In results.csv the terms of `memory_of_rank` are a column each.
template <Is<PlanFigures> Figures, class Visit>
void each_field(Figures& figures, const Visit& visit) {
  visit("span_ms", figures.span);
  visit("without_optimizer_ms", figures.without_optimizer);
  visit("latency_ms", figures.latency);
  visit("flops_per_s_of_device", figures.rate);
  visit("model_flops_utilization", figures.utilization);
  visit("reference_peak_bytes_of_rank", figures.reference_peak);
  visit("memory_of_rank", figures.memory);
}

/// The terms of an attribution.
template <Is<Attribution> A, class Visit>
void each_field(A& attribution, const Visit& visit) {
  visit("compute_ms", attribution.compute);
  visit("dependency_wait_ms", attribution.dependency_wait);
  visit("exposed_transfer_ms", attribution.exposed_transfer);
  visit("queue_wait_ms", attribution.queue_wait);
  visit("launch_ms", attribution.launch);
  visit("reduction_ms", attribution.reduction);
  visit("optimizer_ms", attribution.optimizer);
}

template <Is<ActionError> Error, class Visit>
void each_field(Error& error, const Visit& visit) {
  visit("rank", error.rank);
  visit("action", error.action);
  visit("predicted_ms", error.predicted);
  visit("measured_ms", error.measured);
}

template <Is<MeasuredRun> Run, class Visit>
void each_field(Run& run, const Visit& visit) {
  visit("failure", run.failure);
  visit("steps", run.steps);
  visit("other_programs_processors", run.others);
  visit("estimate_anew_ms", run.anew);
  visit("p5_ms", run.p5);
  visit("p95_ms", run.p95);
  visit("median_ms_of_round", run.rounds);
  visit("interval_goal_fraction", run.interval_goal);
  visit("peak_memory_bytes_of_rank", run.peak_memory);
  visit("furthest_actions", run.furthest);
}

template <Is<StageCompute> Stage, class Visit>
void each_field(Stage& stage, const Visit& visit) {
  visit("rank", stage.rank);
  visit("forward_ms", stage.forward);
  visit("backward_ms", stage.backward);
}

template <Is<PlanRecord> Plan, class Visit>
void each_field(Plan& plan, const Visit& visit) {
  each_field(plan.row, visit);
  each_field(plan.figures, visit);
  visit("reason", plan.reason);
  visit("peak_memory_bytes_of_rank", plan.need.allocated);
  visit("memory_limit_bytes_of_rank", plan.need.limit);
  visit("reserved_memory_bytes_of_rank", plan.need.reserved);
  visit("reserved_expandable_bytes_of_rank", plan.reserved_expandable);
  visit("host_memory_bytes_of_host", plan.need.host);
  visit("host_limit_bytes", plan.need.host_limit);
  visit("simulate_p5_ms", plan.simulate_p5);
  visit("simulate_median_ms", plan.simulate_median);
  visit("attribution_of_rank", plan.attribution);
  visit("critical_rank", plan.critical_rank);
  visit("cut_names", plan.cut_names);
  visit("stages", plan.stages);
  visit("recomputes", plan.recomputes);
  visit("measured", plan.measured);
}

/// The estimate, by which plans are compared unless it is said, is "".
template <Is<Reason> R, class Visit>
void visit_compared_by(R& reason, const Visit& visit) {
  std::string text = reason.by == SelectBy::Estimate ? "" : to_string(reason.by);
  visit("compared_by", text);
  if constexpr (!std::is_const_v<R>)
    for (const SelectBy by : {SelectBy::Estimate, SelectBy::Simulate, SelectBy::P95})
      if (text == to_string(by)) reason.by = by;
}

template <Is<Reason> R, class Visit>
void each_field(R& reason, const Visit& visit) {
  visit("kind", reason.why);
  visit("beside_least_estimate", reason.beside_least);
  visit("slower_ms", reason.slower);
  visit_compared_by(reason, visit);
  visit("rank", reason.rank);
  visit("lacking_bytes", reason.lacking);
  visit("may_yet_fit", reason.may_yet_fit);
  visit("words", reason.words);
}

template <Is<LostSchedule> Lost, class Visit>
void each_field(Lost& lost, const Visit& visit) {
  visit("schedule", lost.schedule);
  visit("family", lost.family);
  if constexpr (std::is_const_v<Lost>) visit("reason", to_string(lost.reason));  // for readers
  visit("why", lost.reason);
  visit("lower_bound_ms", lost.bound);
}

template <Is<Unfinished> One, class Visit>
void each_field(One& unfinished, const Visit& visit) {
  visit("kind", unfinished.what);
  visit("left", unfinished.left);
  if constexpr (std::is_const_v<One>) visit("words", to_string(unfinished));
}

template <Is<CutPlaces> Places, class Visit>
void each_field(Places& places, const Visit& visit) {
  visit("between_blocks", places.between_blocks);
  visit("blocks_ms", places.blocks);
  visit("anywhere_ms", places.anywhere);
  visit("simulated", places.simulated);
  if constexpr (std::is_const_v<Places>) visit("words", to_string(places));
}

template <Is<SearchStep> Step, class Visit>
void each_field(Step& step, const Visit& visit) {
  visit("candidates", step.candidates);
  visit("best_ms", step.best);
  visit("lower_bound_ms", step.bound);
}

template <Is<PlanChoice> Choice, class Visit>
void each_field(Choice& choice, const Visit& visit) {
  visit("by", choice.by);
  visit("number", choice.number);
  visit("schedule", choice.schedule);
  visit("estimate_ms", choice.estimate);
  visit("simulate_ms", choice.simulate);
  visit("p95_ms", choice.p95);
  visit("used", choice.used);
}

template <Is<FrontPoint> Point, class Visit>
void each_field(Point& point, const Visit& visit) {
  visit("schedule", point.schedule);
  visit("estimate_ms", point.estimate);
  visit("peak_memory_bytes", point.peak_memory);
}

template <Is<Alternative> One, class Visit>
void each_field(One& alternative, const Visit& visit) {
  visit("choice", alternative.choice);
  visit("schedule", alternative.schedule);
  visit("estimate_ms", alternative.estimate);
  visit("lower_bound_ms", alternative.bound);
  visit("peak_memory_bytes", alternative.peak_memory);
  if constexpr (std::is_const_v<One>)
    visit("reason", to_string(alternative.reason, alternative.bound));
  visit("why", alternative.reason);
}

template <Is<TriedChange> Tried, class Visit>
void each_field(Tried& tried, const Visit& visit) {
  visit("change", tried.change);
  visit("schedule", tried.schedule);
  visit("devices", tried.devices);
  visit("microbatches", tried.microbatches);
  visit("microbatch_size", tried.microbatch_size);
  visit("estimate_ms", tried.estimate);
  visit("peak_memory_bytes", tried.peak_memory);
  visit("reason", tried.reason);
}

template <Is<SweptKey> Swept, class Visit>
void each_field(Swept& swept, const Visit& visit) {
  visit("key", swept.key);
  visit("value", swept.value);
}

template <Is<LinkUse> Use, class Visit>
void each_field(Use& use, const Visit& visit) {
  visit("link", use.link);
  visit("bytes_per_s", use.capacity);
  visit("bytes", use.bytes);
  visit("mean_load_fraction", use.mean_load);
  visit("slowed_ms", use.slowed);
}

template <Is<SlowedMessages> Slowed, class Visit>
void each_field(Slowed& slowed, const Visit& visit) {
  visit("from_stage", slowed.from);
  visit("to_stage", slowed.to);
  visit("messages", slowed.count);
  visit("alone_ms", slowed.alone);
  visit("mean_ms", slowed.mean);
  visit("longest_ms", slowed.longest);
}

template <Is<FasterLinks> Faster, class Visit>
void each_field(Faster& faster, const Visit& visit) {
  visit("now_ms", faster.now);
  visit("unshared_ms", faster.unshared);
  visit("twice_ms", faster.twice);
  visit("instant_ms", faster.instant);
}

template <Is<LinksRecord> Links, class Visit>
void each_field(Links& links, const Visit& visit) {
  visit("loads", links.links);
  visit("slowed", links.slowed);
  visit("other_networks", links.faster);
}

template <Is<SlowRanks> Slow, class Visit>
void each_field(Slow& slow, const Visit& visit) {
  visit("factor", slow.factor);
  visit("rank", slow.rank);
  visit("now_ms", slow.now);
  visit("steps_ms", slow.steps);
  visit("slack_factor", slow.slack);
}

template <Is<CaseRecord> Record, class Visit>
void each_field(Record& record, const Visit& visit) {
  visit("case", record.name);
  visit("model", record.model);
  visit("cluster", record.cluster);
  visit("calibration", record.calibration);
  visit("named", record.named);
  visit("swept", record.swept);
  visit("digest", record.digest);
  visit("config", record.resolved);
  visit("notes", record.notes);
  visit("uncosted", record.uncosted);
  visit("bound_covers", record.bound_covers);
  visit("orders_left_out", record.orders_left_out);
  visit("unfinished", record.unfinished);
  visit("cut_places", record.cut_places);
  visit("handed_from", record.handed_from);
  visit("plans", record.plans);
  visit("lost", record.lost);
  visit("history", record.history);
  visit("choices", record.choices);
  visit("front", record.front);
  visit("alternatives", record.alternatives);
  visit("tried", record.tried);
  visit("links", record.links);
  visit("links_lower_bound_ms", record.links_bound);
  visit("slow_ranks", record.slow);
}

}  // namespace pfeife
