#include "plots/report/report.h"

#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/report/parts.h"

namespace pfeife {
namespace {

using namespace plots;

/// Which figures occur: only those are explained.
struct Present {
  bool simulated = false, jitter = false, measured = false, bound = false, latency = false;
};

Present present_in(const ReportInput& input) {
  Present present;
  for (const CaseRecord& report_case : input.cases)
    for (const PlanRecord& plan : report_case.plans) {
      present.simulated |= plan.row.simulate.has_value();
      present.jitter |= plan.row.simulate_p95 || plan.row.estimate_p95;
      present.measured |= plan.row.measure.has_value();
      present.bound |= plan.row.lower_bound.has_value();
      present.latency |= plan.figures.latency.has_value();
    }
  return present;
}

std::string term(const char* name, const char* text) {
  return element("dt", escape(name)) + element("dd", escape(text));
}

/// How each figure was obtained.
std::string definitions(const Present& present) {
  std::string out = term("Step time",
                         "From the start of the first action to the end of the last: all "
                         "microbatches forward and backward, gradient "
                         "reductions and the optimizer step.") +
                    term("Estimated",
                         "Calculated, not run: the longest path through everything that waits for "
                         "something else. A transfer takes latency "
                         "plus bytes over bandwidth however many there are at once, and starts as "
                         "soon as its value is there; "
                         "starting an action costs nothing.");
  if (present.simulated)
    out += term("Simulated",
                "Calculated by discrete events on a model of the cluster: transfers wait their "
                "turn and share the links "
                "they cross, and starting an action costs time, as the configuration below says.");
  if (present.jitter)
    out +=
        term("p5, median, p95",
             "Percentiles of the step over repetitions in which the durations vary by chance; the "
             "same variation for estimate and simulation.");
  if (present.measured)
    out +=
        term("Measured",
             "Run on devices and timed there, the median of the steps that count; with the peaks "
             "of memory beside it the only figure here that is an observation. Of several rounds, "
             "the median of theirs, and the half width of the interval that has it with 95 %.") +
        term("Error", "Predicted over measured, less one.");
  out += term("Samples/s",
              "Microbatches times microbatch size over the step time, measured if there is one, "
              "else simulated, else estimated.") +
         term("Bubble",
              "The share of all ranks' step in which they run neither forward nor backward.") +
         term("Peak memory",
              "Calculated from the order of actions alone: parameters, gradients and optimizer "
              "state throughout, what is saved for "
              "the backward pass as long as it is needed, buffers of transfers, temporaries. A "
              "plan fits if no rank "
              "exceeds its device's memory less the reserve.");
  if (present.latency)
    out +=
        term("Latency",
             "Forward only: the longest that a microbatch takes from the start of its first F to "
             "the end of its last. Nothing is saved for a backward pass, and a step is the "
             "forward of all microbatches.");
  if (present.bound)
    out += term(
        "Lower bound, gap",
        "No plan of the class that is named with the bound, and that fits, has a smaller estimated "
        "step; of plans of other classes it says nothing, and no line goes through them. The gap "
        "is the plan's step over the bound on its own class, "
        "less one. It says how good the search was, not how good the model of the hardware is. "
        "Where shared links bind, the gap of the simulated step is over a bound that knows of "
        "them.");
  out += term("Where time goes",
              "The critical rank is the one that ends last. Each nanosecond of its step has one "
              "cause, so the parts add up to the step: "
              "computing; waiting for another rank's computation; for a transfer under way; for a "
              "transfer that waits its turn "
              "in a queue; launching; reductions; the optimizer.") +
         term("Best",
              "The fastest plan that fits, by measured time if all plans that fit have one, else "
              "by simulated, else by estimated time.");
  return element("dl", out, " class=\"terms\"");
}

std::string fact_list(const ReportInput& input) {
  std::string facts;
  for (const auto& [name, value] : input.facts)
    facts += element("dt", escape(name)) + element("dd", escape(value));
  return facts.empty() ? "" : element("dl", facts);
}

std::string section(const char* id, const char* title, const std::string& content) {
  return element("section",
                 element("h2", escape(title), " id=\"" + std::string(id) + "\"") + content);
}

/// One table a cluster; nothing for single devices.
std::string links_tables(const ReportInput& input) {
  std::string tables;
  for (const auto& [name, cluster] : input.clusters) {
    const std::string links = links_table(cluster);
    if (!links.empty()) tables += element("h3", escape(name)) + links;
  }
  if (tables.empty()) return "";
  return element(
             "p",
             "Bandwidth of large messages and latency of one transfer alone on its path, as the "
             "estimate takes them. Rank r runs on device r unless plan.devices says otherwise.",
             " class=\"muted\"") +
         tables;
}

/// What was measured: step times, and the actions that were furthest off.
std::string accuracy_part(const std::vector<CaseRecord>& cases) {
  const std::string chart = accuracy_scatter(cases);
  if (chart.empty()) return "";
  const std::string furthest = furthest_table(cases);
  return element("figure", element("div", chart, " class=\"wide\"")) +
         (furthest.empty() ? ""
                           : element("h3",
                                     "The five actions furthest from their prediction, in "
                                     "time; median of the measured steps") +
                                 furthest);
}

struct Section {
  const char* id;
  const char* title;
  std::string content;  ///< "" = there is no such section
};

std::string body(const ReportInput& input) {
  std::string cases;
  for (std::size_t i = 0; i < input.cases.size(); ++i)
    cases += case_section(input.cases[i], i, input.beside_files);
  const Section sections[] = {
      {"accuracy", "Predicted against measured", accuracy_part(input.cases)},
      {"cases", "How sure, and what was tried", std::move(cases)},
      {"links", "Links between devices", links_tables(input)},
      {"how", "How the figures were obtained", definitions(present_in(input))},
      {"config", "Configuration, resolved", element("pre", escape(input.config))}};
  std::string links, text;
  for (const auto& [id, title, content] : sections) {
    if (content.empty()) continue;
    links += element("a", title, stream_all(" href=\"#", id, "\""));
    text += section(id, title, content);
  }
  return element("header", element("h1", escape(input.title)) + fact_list(input)) +
         note_list(input.notes) +
         element("main",
                 element("noscript",
                         "Scripts show plans and timelines here; results.csv, "
                         "results.md and the drawings of each case, beside "
                         "this page, have the same figures."),
                 " id=\"instrument\"") +
         element("nav", links) + text;
}

}  // namespace

std::string report_html(const ReportInput& input) {
  std::string head =
      "<meta charset=\"utf-8\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n";
  head += element("title", escape(input.title));
  head += element("style", report_style());
  return "<!doctype html>\n<html lang=\"en\">\n" + element("head", head) +
         element("body",
                 body(input) +
                     element("script", page_data(input), " type=\"application/json\" id=\"data\"") +
                     element("script", kReportScript)) +
         "</html>\n";
}

}  // namespace pfeife
