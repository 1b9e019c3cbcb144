#include "planner/ir/basics/round_down.h"
#include "planner/ir/result/result_engine.h"
#include "plots/figure/svg.h"
#include "plots/figure/theme.h"
#include "plots/report/packed.h"
#include "plots/report/parts.h"
#include "plots/screen/columns.h"
#include "plots/timeline/pictures.h"

namespace pfeife::plots {
namespace {

/// A JSON object or array that grows.
class Json {
 public:
  explicit Json(char open) : text_(1, open), close_(open == '{' ? '}' : ']') {}

  Json& add(const std::string& value) {
    if (text_.size() > 1) text_ += ',';
    text_ += value;
    return *this;
  }
  Json& set(const char* key, const std::string& value) {
    return add("\"" + std::string(key) + "\":" + value);
  }
  Json& say(const char* key, const std::string& text) {
    return text.empty() ? *this : set(key, json_text(text));
  }
  Json& set(const char* key, const std::optional<Nanoseconds>& time) {
    return time ? set(key, std::to_string(time->count())) : *this;
  }
  Json& set(const char* key, const std::optional<double>& value) {
    return value ? set(key, shortest(*value)) : *this;
  }
  std::string text() const { return text_ + close_; }

 private:
  std::string text_;
  char close_;
};

template <class Values, class Number>
std::string array(const Values& values, const Number& number) {
  Json json('[');
  for (const auto& value : values) json.add(number(value));
  return json.text();
}

std::string bytes_array(const std::vector<Bytes>& values) {
  return array(values, [](Bytes bytes) { return std::to_string(bytes.value); });
}

std::string contents_array(const MemoryContents& contents) {
  return array(memory_parts(), [&](const MemoryPart& part) {
    return std::to_string((contents.*part.bytes).value);
  });
}

std::string times_array(const Attribution& attribution) {
  return array(causes(attribution),
               [](const Cause& cause) { return std::to_string(cause.time.count()); });
}

std::string cuts_text(const PlanRecord& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.row.cuts.size(); ++i) {
    text += (i == 0 ? "after " : ", ") + std::to_string(plan.row.cuts[i]);
    if (i < plan.cut_names.size()) text += " (" + plan.cut_names[i] + ")";
  }
  return text;
}

/// "host 0: 65.2 GiB, host 2: 12 GiB; limit 64.3 GiB": what is offloaded.
std::string hosts_text(const PlanRecord& plan) {
  std::string text;
  for (std::size_t host = 0; host < plan.need.host.size(); ++host)
    if (plan.need.host[host] > Bytes{0})
      text += (text.empty() ? "host " : ", host ") + std::to_string(host) + ": " +
              to_string(plan.need.host[host]);
  if (!text.empty() && plan.need.host_limit) text += "; limit " + to_string(*plan.need.host_limit);
  return text;
}

std::string plan_json(const CaseRecord& record, const PlanRecord& plan) {
  const ResultRow& row = plan.row;
  Json json('{');
  json.say("name", row.plan).say("family", row.family).say("reason", plan.reason);
  if (has_time(row)) json.say("schedule", schedule_name(row));
  json.set("devices", std::to_string(row.devices))
      .set("microbatches", std::to_string(row.microbatches))
      .set("size", std::to_string(row.microbatch_size))
      .set("V", std::to_string(row.stages_per_rank));
  json.set("estimated", row.estimate)
      .set("simulated", row.simulate)
      .set("measured", row.measure)
      .set("estimated_p95", row.estimate_p95)
      .set("simulated_p95", row.simulate_p95);
  json.set("rate", row.samples_per_s).set("bubble", row.bubble);
  json.set("latency", plan.figures.latency);
  if (const auto gap = gap_of(record, plan)) json.set("gap", gap).say("gap_text", gap_text(*gap));
  json.set("bound", row.lower_bound).say("bound_class", row.bound_class);
  json.set("utilization", plan.figures.utilization);
  json.set("error", error_of(row, compared_engine(record)));
  const std::optional<Bytes> memory = row.reserved ? row.reserved : row.peak_memory;
  if (memory) json.set("memory", std::to_string(memory->value));
  if (row.memory_limit.value > 0) json.set("limit", std::to_string(row.memory_limit.value));
  json.set("fits", row.feasible ? "true" : "false");
  json.say("cuts", cuts_text(plan)).say("knobs", row.knobs);
  if (row.candidates > 0) json.set("candidates", std::to_string(row.candidates));
  json.set("peaks", bytes_array(plan.need.held())).set("limits", bytes_array(plan.need.limit));
  json.set("contents", array(plan.figures.memory, contents_array));
  json.set("times", array(plan.attribution, times_array));
  json.set("critical", to_string(plan.critical_rank));
  json.set("stages", array(plan.stages, [](const StageCompute& stage) {
             return "[" + to_string(stage.rank) + "," + std::to_string(stage.forward.count()) +
                    "," + std::to_string(stage.backward.count()) + "]";
           }));
  json.say("hosts", hosts_text(plan));
  if (plan.measured) json.say("failure", plan.measured->failure);
  return json.text();
}

std::string case_json(const CaseRecord& record, const std::string& traces,
                      const std::string& beside) {
  Json json('{');
  json.set("name", json_text(record.name));
  json.set("keys", array(record.named, [](const SweptKey& key) {
             return "[" + json_text(key.key) + "," + json_text(key.value) + "]";
           }));
  json.say("engine", to_string(compared_engine(record))).say("beside", beside);
  if (const auto best = best_plan(record)) json.set("best", std::to_string(*best));
  json.set("links_bound", record.links_bound);
  json.set("plans",
           array(record.plans, [&](const PlanRecord& plan) { return plan_json(record, plan); }));
  json.set("front", array(record.front, [](const FrontPoint& point) {
             return "[" + json_text(point.schedule) + "," + std::to_string(point.estimate.count()) +
                    "," + std::to_string(point.peak_memory.value) + "]";
           }));
  if (!traces.empty()) json.set("traces", traces);
  return json.text();
}

}  // namespace

std::string page_data(const ReportInput& input) {
  Json paints('['), all_causes('['), contents('['), cases('[');
  for (std::size_t i = 0; i < kPaints; ++i) {
    const auto kind = static_cast<Paint>(i);
    paints.add("[\"" + hex(fill(kind)) + "\",\"" + hex(fill(kind, 1, 2)) + "\"," +
               json_text(letter(kind)) + "," + json_text(name(kind)) + "]");
  }
  for (const Cause& cause : causes(Attribution{}))
    all_causes.add("[" + json_text(cause.name) + ",\"" + hex(cause.fill) + "\"]");
  for (const MemoryPart& part : memory_parts())
    contents.add("[" + json_text(part.name) + ",\"" + hex(part.fill) + "\"]");
  const std::string series = array(kSeries, [](Color color) { return json_text(hex(color)); });
  const std::string beside = table_facts(input.cases).beside;
  bool reserved = false;
  for (const CaseRecord& record : input.cases)
    for (const PlanRecord& plan : record.plans) reserved |= plan.row.reserved.has_value();
  for (std::size_t c = 0; c < input.cases.size(); ++c)
    cases.add(case_json(input.cases[c], c < input.traces.size() ? input.traces[c] : "", beside));
  return Json('{')
      .set("title", json_text(input.title))
      .set("paints", paints.text())
      .set("causes", all_causes.text())
      .set("contents", contents.text())
      .set("memory", json_text(reserved ? "reserved" : "peak"))
      .set("files", input.beside_files ? "true" : "false")
      .set("series", series)
      .set("cases", cases.text())
      .text();
}

}  // namespace pfeife::plots
