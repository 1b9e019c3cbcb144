#include "experiments/plans/fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/plans/evaluate.h"
#include "experiments/plans/plan_case.h"
#include "experiments/plans/simulated_choice.h"
#include "planner/io/files/csv_table.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/request/calibrated.h"
#include "planner/ir/result/figures.h"

namespace pfeife {
namespace {

constexpr int kFitRounds = 12;
constexpr double kFactorStep = 0.01, kOverheadStep = 1e-4;  // s: for the derivatives

struct Point {
  double compute = 1, overhead = 0;  // s
};

/// The case with nothing calibrated.
CaseConfig published(const CaseConfig& config) {
  CaseConfig plain = config;
  plain.select_by = chosen_by(config);
  plain.calibration.clear();
  plain.plan_published = false;
  return plain;
}

/// A case with these figures for every kind of device.
struct CalibratedCase {
  CalibratedCase(const Request& plain, const Cluster& published, const Point& at) : request(plain) {
    request.calibration = {
        {.compute = at.compute, .stage_overhead = nanoseconds_from_seconds(at.overhead)}};
    const Cluster figures = calibrated(published, request);
    layers = read_model(request, figures).layers;
    cluster = as_measured(figures, request);
  }
  Request request;
  Layers layers;
  Cluster cluster;
};

/// The plans of the rows, made once.
class Plans {
 public:
  Plans(std::span<const CaseConfig> cases, std::span<const MeasuredRow> rows, Inputs& inputs,
        std::size_t threads)
      : rows_(rows), inputs_(inputs), threads_(threads) {
    for (const MeasuredRow& row : rows) {
      const auto config = std::ranges::find(cases, row.case_name, &CaseConfig::name);
      if (config == cases.end())
        throw ConfigError(row.where, "no case is called \"" + row.case_name +
                                         "\"; pfeife-exp CONFIG --list names them");
      if (!evaluated_.contains(row.case_name)) make(*config);
      find(row);
    }
  }

  /// [row] simulated, or estimated where the case does not simulate.
  std::vector<Nanoseconds> steps(const Point& at) {
    std::map<const Request*, CalibratedCase> cases;
    std::vector<Evaluation> plans;
    for (const MeasuredRow& row : rows_) {
      const Evaluation& evaluation = find(row);
      const CalibratedCase& as_fitted =
          cases
              .try_emplace(evaluation.inputs.config, *evaluation.inputs.config,
                           inputs_.as_published(*configs_.at(row.case_name)), at)
              .first->second;
      const CaseInputs of{&as_fitted.request, &as_fitted.layers, &as_fitted.cluster};
      plans.push_back(
          estimated_plan(of, evaluation.origin, evaluation.name, evaluation.plan, true));
    }
    std::vector<Evaluation*> all;
    for (Evaluation& plan : plans) all.push_back(&plan);
    simulate_plans(all, threads_);
    std::vector<Nanoseconds> times;
    for (std::size_t i = 0; i < plans.size(); ++i)
      times.push_back(rows_[i].without_optimizer ? step_without_optimizer(plans[i].predicted())
                                                 : step_time(plans[i].predicted()));
    return times;
  }

 private:
  void make(const CaseConfig& given) {
    const CaseConfig& plain =
        *configs_.emplace(given.name, std::make_unique<CaseConfig>(published(given))).first->second;
    const CaseInputs of{&plain, &inputs_.layers(plain), &inputs_.cluster(plain)};
    std::vector<EvaluatedCase> evaluated;
    with_places(plain, [&] {
      check_case(of);
      evaluated.push_back(
          plan_case(of, inputs_.layers_of(plain), plain.plan.rule().compared, threads_));
    });
    simulate_cases(evaluated, threads_);
    evaluated_.emplace(plain.name, std::move(evaluated.front()));
  }

  const Evaluation& find(const MeasuredRow& row) const {
    const EvaluatedCase& evaluated = evaluated_.at(row.case_name);
    std::string names = kPlanned;
    const Evaluation* found = row.plan == kPlanned ? &evaluated.planned[evaluated.chosen] : nullptr;
    for (const Evaluation& baseline : evaluated.baselines) {
      names += ", " + baseline.name;
      if (baseline.name == row.plan) found = &baseline;
    }
    if (found == nullptr)
      throw ConfigError(row.where, "the case has no plan \"" + row.plan + "\"; use " + names);
    if (!found->possible())
      throw ConfigError(row.where, "there is no such plan to fit: " + found->reason);
    return *found;
  }

  std::span<const MeasuredRow> rows_;
  Inputs& inputs_;
  std::size_t threads_;
  std::map<std::string, std::unique_ptr<CaseConfig>> configs_;  // by case
  std::map<std::string, EvaluatedCase> evaluated_;              // by case
};

/// What may change: the factor, the overhead.
struct Open {
  bool compute = true, overhead = true;
};

/// What one row leaves open: the factor, or the overhead if the config gives the factor.
Open open_of(const CaseConfig& config, std::size_t rows, Point& start) {
  Open open;
  for (const Calibration& given : config.calibration) {
    if (given.compute) open.compute = false, start.compute = *given.compute;
    if (given.stage_overhead)
      open.overhead = false, start.overhead = seconds(*given.stage_overhead);
  }
  if (!open.compute && !open.overhead)
    throw ConfigError(config.place("calibration"),
                      "calibration gives compute and stage_overhead, so nothing is left to fit; "
                      "leave one of them out");
  if (rows == 1 && open.compute) open.overhead = false;
  return open;
}

/// [row] how much too long the plans are, as a fraction of what was measured.
std::vector<double> errors(Plans& plans, std::span<const MeasuredRow> rows, const Point& at) {
  std::vector<double> found;
  const std::vector<Nanoseconds> steps = plans.steps(at);
  for (std::size_t i = 0; i < rows.size(); ++i)
    found.push_back(seconds(steps[i]) / seconds(rows[i].step) - 1);
  return found;
}

/// The change of each open figure that Gauss and Newton's method asks for.
Point change(const std::vector<double>& now, const std::vector<double>& by_factor,
             const std::vector<double>& by_overhead, Open open, const SourceLocation& where) {
  double ff = 0, fo = 0, oo = 0, f = 0, o = 0;  // normal equations, in steps of the derivatives
  for (std::size_t i = 0; i < now.size(); ++i) {
    const double df = open.compute ? by_factor[i] - now[i] : 0;
    const double dn = open.overhead ? by_overhead[i] - now[i] : 0;
    ff += df * df, fo += df * dn, oo += dn * dn, f -= df * now[i], o -= dn * now[i];
  }
  if (!open.overhead) return {f / ff, 0};
  if (!open.compute) return {0, o / oo};
  const double det = ff * oo - fo * fo;
  if (det <= 1e-9 * ff * oo)
    throw ConfigError(where,
                      "these rows tell compute and stage_overhead not apart; add a row with other "
                      "microbatches a second, or give one of the two in calibration");
  return {(f * oo - o * fo) / det, (o * ff - f * fo) / det};
}

}  // namespace

std::vector<MeasuredRow> read_measured_rows(const std::filesystem::path& file) {
  const CsvTable table = CsvTable::parse(read_text_file(file));
  const bool whole = table.has("step_ms");
  const std::string column = whole ? "step_ms" : "without_optimizer_ms";
  table.check_columns({"case", "plan", column});
  std::vector<MeasuredRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const CsvCell& step = table.at(i, column);
    const Nanoseconds time = nanoseconds_from_ms(number_of(step, column));
    if (time.count() == 0) throw ConfigError(step.where, column + ": a step takes longer than 0");
    rows.push_back({table.at(i, "case").text, table.at(i, "plan").text, time, !whole,
                    table.at(i, "case").where});
  }
  if (rows.empty()) throw ConfigError(table.where(), "there is no row to fit to");
  return rows;
}

Fitted fit_calibration(std::span<const CaseConfig> cases, std::span<const MeasuredRow> rows,
                       Inputs& inputs, std::size_t threads) {
  Plans plans(cases, rows, inputs, threads);
  Point at;
  const Open open = open_of(cases.front(), rows.size(), at);
  for (int round = 0; round < kFitRounds; ++round) {
    const std::vector<double> now = errors(plans, rows, at);
    const Point by = change(now, errors(plans, rows, {at.compute + kFactorStep, at.overhead}),
                            errors(plans, rows, {at.compute, at.overhead + kOverheadStep}), open,
                            rows.front().where);
    at.compute = std::clamp(at.compute + by.compute * kFactorStep, 0.05, 20.0);
    at.overhead = std::max(0.0, at.overhead + by.overhead * kOverheadStep);
    if (std::abs(by.compute * kFactorStep) < 1e-6 && std::abs(by.overhead * kOverheadStep) < 1e-8)
      break;
  }
  return {at.compute, nanoseconds_from_seconds(at.overhead), plans.steps(at)};
}

std::string to_text(std::span<const MeasuredRow> rows, const Fitted& fitted) {
  std::string origin, comments;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string plan = rows[i].plan + " of " + rows[i].case_name;
    origin += (i > 0 ? "; " : "") + plan;
    comments += "# " + plan + ": measured " + fixed(milliseconds(rows[i].step), 3) +
                " ms, with this " + fixed(milliseconds(fitted.steps[i]), 3) + " ms\n";
  }
  return "calibration: {compute: " + fixed(fitted.compute, 5) +
         ", stage_overhead: " + fixed(milliseconds(fitted.stage_overhead), 4) + " ms, origin: \"" +
         origin + "\"}\n" + comments;
}

}  // namespace pfeife
