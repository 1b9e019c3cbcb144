#include "planner/io/results.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace pfeife {
namespace {

using Json = nlohmann::ordered_json;

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

/// Divided rather than multiplied, so that the nearest double, and with it the shortest text, comes
/// out.
double exact_ms(Nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

// JSON, one pair of functions a type.

Json ms_or_null(const std::optional<Nanoseconds>& time) {
  return time ? Json(exact_ms(*time)) : Json(nullptr);
}
std::optional<Nanoseconds> time_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional(nanoseconds_from_ms(value.get<double>()));
}
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
std::optional<double> number_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

Json to_json_values(const std::vector<Bytes>& values) {
  Json json = Json::array();
  for (const Bytes value : values) json.push_back(value.value);
  return json;
}
std::vector<Bytes> bytes_at(const Json& json, const char* key) {
  std::vector<Bytes> values;
  for (const Json& value : json.at(key)) values.push_back({value.get<std::int64_t>()});
  return values;
}

/// The terms of an attribution with their names in files.
constexpr std::pair<const char*, Nanoseconds Attribution::*> kTerms[] = {
    {"compute_ms", &Attribution::compute},
    {"dependency_wait_ms", &Attribution::dependency_wait},
    {"exposed_transfer_ms", &Attribution::exposed_transfer},
    {"queue_wait_ms", &Attribution::queue_wait},
    {"launch_ms", &Attribution::launch},
    {"reduction_ms", &Attribution::reduction},
    {"optimizer_ms", &Attribution::optimizer},
};

Json to_json_value(const Attribution& attribution) {
  Json json;
  for (const auto& [name, term] : kTerms) json[name] = exact_ms(attribution.*term);
  return json;
}
Attribution attribution_from(const Json& json) {
  Attribution attribution;
  for (const auto& [name, term] : kTerms)
    attribution.*term = nanoseconds_from_ms(json.at(name).get<double>());
  return attribution;
}

Json to_json_value(const ResultRow& row) {
  Json json;
  json["case"] = row.case_name;
  json["plan"] = row.plan;
  json["family"] = row.family;
  json["devices"] = row.devices;
  json["microbatches"] = row.microbatches;
  json["microbatch_size"] = row.microbatch_size;
  json["stages_per_device"] = row.stages_per_device;
  json["cuts"] = row.cuts;
  json["knobs"] = row.knobs;
  json["estimate_ms"] = ms_or_null(row.estimate);
  json["simulate_ms"] = ms_or_null(row.simulate);
  json["simulate_p95_ms"] = ms_or_null(row.simulate_p95);
  json["measure_ms"] = ms_or_null(row.measure);
  json["samples_per_s"] = or_null(row.samples_per_s);
  json["bubble"] = or_null(row.bubble);
  json["lower_bound_ms"] = ms_or_null(row.lower_bound);
  json["gap"] = or_null(row.gap);
  json["simulate_gap"] = or_null(row.simulate_gap);
  json["peak_memory_bytes"] = row.peak_memory ? Json(row.peak_memory->value) : Json(nullptr);
  json["memory_limit_bytes"] = row.memory_limit.value;
  json["feasible"] = row.feasible ? 1 : 0;
  json["search_s"] = row.search_s;
  json["candidates"] = row.candidates;
  return json;
}

ResultRow row_from(const Json& json) {
  ResultRow row;
  json.at("case").get_to(row.case_name);
  json.at("plan").get_to(row.plan);
  json.at("family").get_to(row.family);
  json.at("devices").get_to(row.devices);
  json.at("microbatches").get_to(row.microbatches);
  json.at("microbatch_size").get_to(row.microbatch_size);
  json.at("stages_per_device").get_to(row.stages_per_device);
  json.at("cuts").get_to(row.cuts);
  json.at("knobs").get_to(row.knobs);
  row.estimate = time_at(json, "estimate_ms");
  row.simulate = time_at(json, "simulate_ms");
  row.simulate_p95 = time_at(json, "simulate_p95_ms");
  row.measure = time_at(json, "measure_ms");
  row.samples_per_s = number_at(json, "samples_per_s");
  row.bubble = number_at(json, "bubble");
  row.lower_bound = time_at(json, "lower_bound_ms");
  row.gap = number_at(json, "gap");
  row.simulate_gap = number_at(json, "simulate_gap");
  if (const Json& peak = json.at("peak_memory_bytes"); !peak.is_null())
    row.peak_memory = Bytes{peak.get<std::int64_t>()};
  row.memory_limit = {json.at("memory_limit_bytes").get<std::int64_t>()};
  row.feasible = json.at("feasible").get<int>() == 1;
  json.at("search_s").get_to(row.search_s);
  json.at("candidates").get_to(row.candidates);
  return row;
}

Json to_json_value(const MeasuredRun& run) {
  Json json;
  json["failure"] = run.failure;
  json["steps"] = run.steps;
  json["p5_ms"] = exact_ms(run.p5);
  json["p95_ms"] = exact_ms(run.p95);
  json["peak_memory_bytes_of_rank"] = to_json_values(run.peak_memory);
  json["furthest_actions"] = Json::array();
  for (const ActionError& error : run.furthest)
    json["furthest_actions"].push_back({{"rank", error.rank.value},
                                        {"action", error.action},
                                        {"predicted_ms", exact_ms(error.predicted)},
                                        {"measured_ms", exact_ms(error.measured)}});
  return json;
}

MeasuredRun run_from(const Json& json) {
  MeasuredRun run;
  json.at("failure").get_to(run.failure);
  json.at("steps").get_to(run.steps);
  run.p5 = nanoseconds_from_ms(json.at("p5_ms").get<double>());
  run.p95 = nanoseconds_from_ms(json.at("p95_ms").get<double>());
  run.peak_memory = bytes_at(json, "peak_memory_bytes_of_rank");
  for (const Json& error : json.at("furthest_actions"))
    run.furthest.push_back({RankId{error.at("rank").get<std::int64_t>()},
                            error.at("action").get<std::string>(),
                            nanoseconds_from_ms(error.at("predicted_ms").get<double>()),
                            nanoseconds_from_ms(error.at("measured_ms").get<double>())});
  return run;
}

Json to_json_value(const PlanRecord& plan) {
  Json json = to_json_value(plan.row);
  json["reason"] = plan.reason;
  json["peak_memory_bytes_of_rank"] = to_json_values(plan.peak_memory);
  json["memory_limit_bytes_of_rank"] = to_json_values(plan.memory_limit);
  json["simulate_p5_ms"] = ms_or_null(plan.simulate_p5);
  json["simulate_median_ms"] = ms_or_null(plan.simulate_median);
  json["attribution_of_rank"] = Json::array();
  for (const Attribution& rank : plan.attribution)
    json["attribution_of_rank"].push_back(to_json_value(rank));
  json["critical_rank"] = plan.critical_rank.value;
  json["cut_names"] = plan.cut_names;
  if (plan.measured) json["measured"] = to_json_value(*plan.measured);
  return json;
}

PlanRecord plan_from(const Json& json) {
  PlanRecord plan;
  plan.row = row_from(json);
  json.at("reason").get_to(plan.reason);
  plan.peak_memory = bytes_at(json, "peak_memory_bytes_of_rank");
  plan.memory_limit = bytes_at(json, "memory_limit_bytes_of_rank");
  plan.simulate_p5 = time_at(json, "simulate_p5_ms");
  plan.simulate_median = time_at(json, "simulate_median_ms");
  for (const Json& rank : json.at("attribution_of_rank"))
    plan.attribution.push_back(attribution_from(rank));
  plan.critical_rank = RankId{json.at("critical_rank").get<std::int64_t>()};
  json.at("cut_names").get_to(plan.cut_names);
  if (json.contains("measured")) plan.measured = run_from(json.at("measured"));
  return plan;
}

Json to_json_value(const TriedChange& tried) {
  Json json;
  json["change"] = tried.change;
  json["schedule"] = tried.schedule;
  json["devices"] = tried.devices;
  json["microbatches"] = tried.microbatches;
  json["microbatch_size"] = tried.microbatch_size;
  json["estimate_ms"] = ms_or_null(tried.estimate);
  json["peak_memory_bytes"] = tried.peak_memory ? Json(tried.peak_memory->value) : Json(nullptr);
  json["reason"] = tried.reason;
  return json;
}

TriedChange tried_from(const Json& json) {
  TriedChange tried;
  json.at("change").get_to(tried.change);
  json.at("schedule").get_to(tried.schedule);
  json.at("devices").get_to(tried.devices);
  json.at("microbatches").get_to(tried.microbatches);
  json.at("microbatch_size").get_to(tried.microbatch_size);
  tried.estimate = time_at(json, "estimate_ms");
  if (const Json& peak = json.at("peak_memory_bytes"); !peak.is_null())
    tried.peak_memory = Bytes{peak.get<std::int64_t>()};
  json.at("reason").get_to(tried.reason);
  return tried;
}

Json to_json_value(const Alternative& alternative) {
  Json json;
  json["choice"] = alternative.choice;
  json["schedule"] = alternative.schedule;
  json["estimate_ms"] = ms_or_null(alternative.estimate);
  json["lower_bound_ms"] = ms_or_null(alternative.bound);
  json["peak_memory_bytes"] =
      alternative.peak_memory ? Json(alternative.peak_memory->value) : Json(nullptr);
  json["reason"] = alternative.reason;
  return json;
}

Alternative alternative_from(const Json& json) {
  Alternative alternative;
  json.at("choice").get_to(alternative.choice);
  json.at("schedule").get_to(alternative.schedule);
  alternative.estimate = time_at(json, "estimate_ms");
  alternative.bound = time_at(json, "lower_bound_ms");
  if (const Json& peak = json.at("peak_memory_bytes"); !peak.is_null())
    alternative.peak_memory = Bytes{peak.get<std::int64_t>()};
  json.at("reason").get_to(alternative.reason);
  return alternative;
}

Json to_json_value(const CaseRecord& record) {
  Json json;
  json["case"] = record.name;
  json["digest"] = record.digest;
  json["config"] = record.resolved;
  json["notes"] = record.notes;
  json["bound_covers"] = record.bound_covers;
  json["plans"] = Json::array();
  for (const PlanRecord& plan : record.plans) json["plans"].push_back(to_json_value(plan));
  json["lost"] = Json::array();
  for (const LostSchedule& lost : record.lost)
    json["lost"].push_back({{"schedule", lost.schedule}, {"reason", lost.reason}});
  json["front"] = Json::array();
  for (const FrontPoint& point : record.front)
    json["front"].push_back({{"schedule", point.schedule},
                             {"estimate_ms", exact_ms(point.estimate)},
                             {"peak_memory_bytes", point.peak_memory.value}});
  json["alternatives"] = Json::array();
  for (const Alternative& one : record.alternatives)
    json["alternatives"].push_back(to_json_value(one));
  json["tried"] = Json::array();
  for (const TriedChange& tried : record.tried) json["tried"].push_back(to_json_value(tried));
  return json;
}

CaseRecord case_from(const Json& json) {
  CaseRecord record;
  json.at("case").get_to(record.name);
  json.at("digest").get_to(record.digest);
  json.at("config").get_to(record.resolved);
  json.at("notes").get_to(record.notes);
  json.at("bound_covers").get_to(record.bound_covers);
  for (const Json& plan : json.at("plans")) record.plans.push_back(plan_from(plan));
  for (const Json& lost : json.at("lost"))
    record.lost.push_back(
        {lost.at("schedule").get<std::string>(), lost.at("reason").get<std::string>()});
  for (const Json& point : json.at("front"))
    record.front.push_back({point.at("schedule").get<std::string>(),
                            nanoseconds_from_ms(point.at("estimate_ms").get<double>()),
                            Bytes{point.at("peak_memory_bytes").get<std::int64_t>()}});
  for (const Json& one : json.at("alternatives"))
    record.alternatives.push_back(alternative_from(one));
  for (const Json& tried : json.at("tried")) record.tried.push_back(tried_from(tried));
  return record;
}

std::string dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// CSV.

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string{c};
  return out + '"';
}
std::string field(const std::optional<Nanoseconds>& time) {
  return time ? fixed(exact_ms(*time), 6) : "";
}
std::string field(const std::optional<double>& value) { return value ? fixed(*value, 6) : ""; }

std::string cut_field(const std::vector<std::int32_t>& cuts) {
  std::string out;
  for (const std::int32_t cut : cuts) out += (out.empty() ? "" : " ") + std::to_string(cut);
  return out;
}

std::string csv_line(const ResultRow& row) {
  const std::string fields[] = {field(row.case_name),
                                field(row.plan),
                                field(row.family),
                                std::to_string(row.devices),
                                std::to_string(row.microbatches),
                                std::to_string(row.microbatch_size),
                                std::to_string(row.stages_per_device),
                                cut_field(row.cuts),
                                field(row.knobs),
                                field(row.estimate),
                                field(row.simulate),
                                field(row.simulate_p95),
                                field(row.measure),
                                field(row.samples_per_s),
                                field(row.bubble),
                                field(row.lower_bound),
                                field(row.gap),
                                field(row.simulate_gap),
                                row.peak_memory ? std::to_string(row.peak_memory->value) : "",
                                std::to_string(row.memory_limit.value),
                                row.feasible ? "1" : "0",
                                fixed(row.search_s, 3),
                                std::to_string(row.candidates)};
  std::string line;
  for (const std::string& text : fields) line += (&text == fields ? "" : ",") + text;
  return line + "\n";
}

}  // namespace

std::string to_json(const CaseRecord& record) { return dump(to_json_value(record)); }

std::optional<CaseRecord> case_from_json(const std::string& text) {
  try {
    return case_from(Json::parse(text));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string results_csv(const std::vector<CaseRecord>& cases) {
  std::string text =
      "case,plan,family,devices,microbatches,microbatch_size,stages_per_device,cuts,knobs,estimate_"
      "ms,simulate_ms,"
      "simulate_p95_ms,measure_ms,samples_per_s,bubble,lower_bound_ms,gap,simulate_gap,peak_memory_"
      "bytes,"
      "memory_limit_bytes,feasible,search_s,candidates\n";
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) text += csv_line(plan.row);
  return text;
}

std::string results_json(const std::string& experiment, const std::vector<CaseRecord>& cases) {
  Json json;
  json["version"] = 1;
  json["experiment"] = experiment;
  json["cases"] = Json::array();
  for (const CaseRecord& record : cases) json["cases"].push_back(to_json_value(record));
  return dump(json);
}

}  // namespace pfeife
