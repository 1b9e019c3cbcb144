// pfeife-exp: everything an experiment's config asks for, from one command. See README.md in this
// folder.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>

#include "experiments/inputs/inputs.h"
#include "experiments/machine/child.h"
#include "experiments/measure/measure.h"
#include "experiments/measure/measured_inputs.h"
#include "experiments/pfeife.h"
#include "experiments/plans/fit.h"
#include "experiments/show/figure.h"
#include "experiments/show/fits_table.h"
#include "experiments/show/known_errors.h"
#include "experiments/show/mesh_table.h"
#include "experiments/show/report.h"
#include "experiments/show/texts.h"
#include "experiments/sweep/chosen_mesh.h"
#include "experiments/sweep/first_answer.h"
#include "experiments/sweep/fits.h"
#include "experiments/sweep/handed_plans.h"
#include "experiments/sweep/sweep.h"
#include "experiments/verbs.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/command_line.h"
#include "planner/io/files/open_file.h"
#include "planner/io/files/quantity.h"
#include "planner/io/files/terminal.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/basics/printable.h"
#include "planner/ir/basics/run_main.h"
#include "planner/ir/result/result_engine.h"
#include "plots/screen/columns.h"
#include "plots/screen/table.h"

namespace pfeife {
namespace {

namespace po = boost::program_options;

struct CommandLine {
  std::string config;
  std::vector<std::string> settings;
  SweepOptions sweep;
  bool list = false, verbose = false, watch = false, asks_if_it_measures = false;
  std::string layers;                     // "table", "csv"; "" = are not asked for
  std::string fit;                        // a file of measured steps; "" = nothing is to be fitted
  std::vector<std::string> still_moving;  // cases whose plan may still be replaced
};

po::options_description described_options() {
  po::options_description options("Options");
  options.add_options()("set", po::value<std::vector<std::string>>()->value_name("KEY.PATH=VALUE"),
                        "replace a value of the config; may be repeated")(
      "out", po::value<std::string>()->value_name("DIR"),
      "folder for the results (default: results/NAME)")(
      "jobs", po::value<int>()->value_name("N"),
      "processes at once (default: the number of cores)")(
      "shard", po::value<std::string>()->value_name("I/N"),
      "compute only the I-th of N parts of the cases; a later call without it gathers them")(
      "list", "list the cases and whether they are computed already, then stop")(
      "layers", po::value<std::string>()->implicit_value("table")->value_name("table|csv"),
      "list the layers of the first case's model, between which cuts lie, then stop")(
      "fit", po::value<std::string>()->value_name("ROWS.csv"),
      "find the calibration with which the plans in ROWS.csv (case, plan, step_ms or "
      "without_optimizer_ms) take as long as "
      "was measured, print it, then stop")("force", "compute cases again that are there already")(
      "columns", po::value<std::string>()->value_name("A,B,..."),
      ("columns of the table and of results.tex, of: " + listed(column_names())).c_str())(
      "verbose",
      "below the table why each plan is the plan, what its bound covers, less memory, each device; "
      "and, while cases are computed, where the time of their searches went")(
      "watch",
      "show a table after a third of the time, then go on to better plans (usual on a terminal, up "
      "to 12 "
      "cases)")("quiet", "no progress on standard error")(
      "version", "print the version, then stop")("help", "print this, then stop");
  return options;
}

void print_help(const po::options_description& options) {
  std::cout
      << "Usage: pfeife-exp CONFIG.yaml [OPTION...]\n"
         "       pfeife-exp fits MODEL CLUSTER... [--devices 8,16,64] [--price 2.5]\n"
         "       pfeife-exp init MODEL CLUSTER\n"
         "       pfeife-exp check CONFIG.yaml\n"
         "       pfeife-exp schema config|cluster|architecture\n"
         "       pfeife-exp completion bash|zsh\n"
         "       pfeife-exp pack CONFIG.yaml --limit TOKENS\n"
         "       pfeife-exp batches CONFIG.yaml --lengths FILE.csv\n"
         "       pfeife-exp failures CONFIG.yaml --save TIME --restart TIME --repair TIME\n"
         "       pfeife-exp products CONFIG.yaml\n"
         "       pfeife-exp figure RESULTS --x microbatches --y samples_per_s [--facet devices]\n"
         "       pfeife-exp export PLAN --for FRAMEWORK [--out FOLDER]\n"
         "       pfeife-exp view PLAN [TRACES...]\n"
         "       pfeife-exp compare PLAN TRACES...\n"
         "       pfeife-exp calibrate PLAN TRACES... --out FOLDER\n\n"
         "Plans, estimates, simulates and measures the pipelines that CONFIG.yaml asks for, "
         "prints a table, and writes\n"
         "results/NAME/{results.csv, results.json, report.html} and a folder for each case.\n"
         "fits: does it fit, on how many of which, how fast, at what price (fits --help).\n"
         "init: a commented config to begin with. check: what is wrong with one, without "
         "planning.\n"
         "schema, completion: for editors and shells.\n"
         "pack: which documents of a step share a microbatch (pack --help).\n"
         "batches: one plan for many batches of documents (batches --help).\n"
         "failures: the plan for one device less, and what failures cost (failures --help).\n"
         "products: the matrix products to measure for a cluster file (products --help).\n"
         "figure: a figure of a paper from results.csv (figure --help).\n"
         "export: a plan as a launch.sh of a framework that trains it.\n"
         "view: one plan on the report's page, with traces of a run beside the prediction.\n"
         "compare: a plan beside torch.profiler's traces of a run of it, and why it was slower.\n"
         "Every key of a config is described in configs/REFERENCE.md.\n\n"
      << options << "\nExit codes: 0 fine, 2 wrong input, 3 no case has a plan, 4 a run failed.\n";
}

/// "2/8" to part 1 (from 0) of 8.
void read_shard(const std::string& text, SweepOptions& sweep) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto part = parse_integer(text.substr(0, slash));
  const auto parts = parse_integer(slash == text.size() ? "" : text.substr(slash + 1));
  if (!part || !parts || *part < 1 || *part > *parts || *parts > 1'000'000)
    throw ConfigError({"--shard " + text, 0, 0}, "expected I/N with 1 <= I <= N, for example 2/8");
  sweep.shard = static_cast<std::size_t>(*part) - 1;
  sweep.shards = static_cast<std::size_t>(*parts);
}

std::vector<std::string> read_columns(const std::string& text) {
  const std::vector<std::string> known = column_names();
  std::vector<std::string> columns;
  for (std::size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    columns.push_back(text.substr(begin, end - begin));
    if (std::ranges::find(known, columns.back()) == known.end())
      throw ConfigError({"--columns " + text, 0, 0},
                        "unknown column '" + columns.back() + "'; use " + listed(known));
  }
  return columns;
}

std::string read_layers(const std::string& form) {
  if (form != "table" && form != "csv")
    throw ConfigError({"--layers=" + form, 0, 0}, "expected table or csv");
  return form;
}

/// Nothing if the program is to stop at once (--help, --version).
std::optional<CommandLine> read_command_line(int argc, char** argv) {
  const po::options_description shown = described_options();
  po::options_description all = shown;
  all.add_options()("measures", "for ./pfeife-exp");
  const auto found = read_arguments({argv + 1, argv + argc}, all, "config", "pfeife-exp");
  if (found.contains("help")) return print_help(shown), std::nullopt;
  if (found.contains("version")) return std::cout << "pfeife " PFEIFE_VERSION "\n", std::nullopt;
  if (!found.contains("config"))
    throw ConfigError({}, "which config? Usage: pfeife-exp CONFIG.yaml [OPTION...]");
  CommandLine line;
  line.config = found["config"].as<std::string>();
  if (found.contains("set")) line.settings = found["set"].as<std::vector<std::string>>();
  if (found.contains("out")) line.sweep.out = found["out"].as<std::string>();
  line.sweep.jobs = std::max(1U, std::thread::hardware_concurrency());
  if (found.contains("jobs")) line.sweep.jobs = read_jobs(found["jobs"].as<int>());
  if (found.contains("shard")) read_shard(found["shard"].as<std::string>(), line.sweep);
  line.list = found.contains("list");
  if (found.contains("layers")) line.layers = read_layers(found["layers"].as<std::string>());
  line.verbose = line.sweep.search_times = found.contains("verbose");
  if (found.contains("columns"))
    line.sweep.columns = read_columns(found["columns"].as<std::string>());
  if (found.contains("fit")) line.fit = found["fit"].as<std::string>();
  line.asks_if_it_measures = found.contains("measures");
  line.sweep.force = found.contains("force");
  line.sweep.quiet = found.contains("quiet");
  line.watch = found.contains("watch");
  return line;
}

void list_cases(const Experiment& experiment, Inputs& inputs, const SweepOptions& options) {
  for (const CaseConfig& config : experiment.cases) {
    const auto missing = [](const std::filesystem::path& file) { return !is_there(file); };
    const auto& profile = config.model.profile;
    const bool open = missing(config.cluster) || (profile && missing(*profile));
    const auto known =
        open ? std::nullopt : find_record(options.out / config.name, inputs.digest(config));
    const bool there = known && failures(*known).empty();
    std::cout << (there ? "done      " : "to do     ") << config.name << "\n";
  }
}

/// Stops the ranks that run, and says that nothing is lost. Files appear whole, so there is nothing
/// to tidy up.
extern "C" void on_interrupt(int signal) {
  stop_child();
  constexpr std::string_view message =
      "\npfeife-exp: interrupted; finished cases are kept, the same command goes on with the "
      "rest\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message.data(), message.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

bool measures(const CaseConfig& config) {
  return config.measure || config.cluster_measured || config.profile_measured;
}

int exit_code(const SweepResult& result) {
  if (!result.failed.empty()) return 4;
  for (const CaseRecord& record : result.cases)
    if (!failures(record).empty()) return 4;
  for (const CaseRecord& record : result.cases)
    if (!record.plans.empty() && record.plans.front().row.feasible) return 0;
  return result.cases.empty() ? 0 : 3;
}

/// Why nothing fits, and what would help: of the first case, which says enough.
std::string reasons(const SweepResult& result) {
  const CaseRecord& record = result.cases.front();
  const PlanRecord& plan = record.plans.front();
  std::string text =
      "  " + record.name + ": " +
      (plan.row.estimate ? "the plan does not fit: " + shortage_text(plan.need) : plan.reason) +
      "\n";
  for (const TriedChange& tried : record.tried)
    if (tried.estimate) text += "  would help: " + tried.change + ": " + outcome_text(tried) + "\n";
  return text;
}

/// The table and what belongs to it, on standard output.
void print_results(const Experiment& experiment, const SweepResult& result, Inputs& inputs,
                   const CommandLine& line) {
  const std::size_t width = output_width();
  const ShownCases shown =
      line.verbose ? ShownCases{result.cases, ""} : cases_to_show(result.cases);
  const CaseConfig& first = experiment.cases.front();
  const std::string error = error_of(first, inputs.cluster(first));
  const bool measured = std::ranges::any_of(result.cases, [](const CaseRecord& record) {
    return std::ranges::any_of(record.plans,
                               [](const PlanRecord& plan) { return plan.row.measure.has_value(); });
  });
  // No more digits are true, but plans beside one another are compared by one model.
  const bool cut = !error.empty() && !measured && !line.verbose;
  const ScreenOptions options{.width = width,
                              .colour = output_has_colours(),
                              .verbose = line.verbose,
                              .chosen_only = !shown.summary.empty(),
                              .still_moving = line.still_moving,
                              .digits = cut ? 3 : 4,
                              .columns = line.sweep.columns,
                              .report = (line.sweep.out / "report.html").string()};
  std::cout << wrapped(experiment.name + ": " + experiment_summary(experiment, result.cases), width,
                       "", "  ")
            << screen_table(shown.cases, options);
  if (!shown.summary.empty())
    std::cout << wrapped(
        shown.summary + "; all are in " + (line.sweep.out / "results.csv").string(), width);
  const std::filesystem::path comparison =
      line.sweep.out / first.name / "planned" / "comparison.txt";
  if (!first.measurement.traces.empty() && is_there(comparison))
    std::cout << "\n" << read_file(comparison);
  else if (const std::string accuracy = accuracy_table(shown.cases, width, line.verbose);
           !accuracy.empty())
    std::cout << "\n" << accuracy;
  if (!error.empty())
    std::cout << wrapped("how sure: " + error + (cut ? "; more digits: results.csv" : ""), width,
                         "", "    ");
  if (experiment.step_below)
    std::cout << "\n" << fewest_devices(result.cases, *experiment.step_below, width);
}

/// On a terminal; with --watch any number.
constexpr std::size_t kWatchedCases = 12;

/// The signal that ended the search for better plans; 0 = none.
volatile std::sig_atomic_t search_ended_by = 0;

/// While better plans are searched Ctrl-C ends the search, and what is there is gathered; the next
/// one ends the program.
extern "C" void end_search(int signal) {
  search_ended_by = signal;
  end_children();
  std::signal(signal, SIG_DFL);
}

/// A table for whoever watches, whose files stand until better plans replace them; then all of the
/// effort.
SweepResult sweep_watched(Experiment& experiment, Inputs& inputs, CommandLine& line) {
  const auto started = std::chrono::steady_clock::now();
  std::optional<Experiment> brief;
  if (line.sweep.shards == 1 && std::ranges::none_of(experiment.cases, measures) &&
      (line.watch || (output_is_terminal() && !line.sweep.quiet)))
    brief = first_answer(experiment, inputs, line.sweep,
                         line.watch ? experiment.cases.size() : kWatchedCases);
  if (!brief) return sweep(experiment, inputs, line.sweep);
  if (!line.sweep.quiet)
    fmt::print(stderr,
               "pfeife-exp: plans {} cases: a first table after a third of the effort, then better "
               "plans\n",
               std::ranges::count(brief->cases, kFirstEffort,
                                  [](const CaseConfig& config) { return config.plan.iterations; }));
  const SweepResult first = sweep(*brief, inputs, line.sweep);
  line.still_moving = still_moving(first, *brief, experiment);
  print_results(*brief, first, inputs, line);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::cout << fmt::format(
                   "\nso far, after {:.0f} s and with little effort (plan.iterations: {}); better "
                   "plans are searched, Ctrl-C keeps what is there\n\n",
                   seconds, kFirstEffort)
            << std::flush;
  std::signal(SIGINT, end_search);
  std::signal(SIGTERM, end_search);
  SweepResult result = sweep(experiment, inputs, line.sweep);
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  if (result.stopped) {
    Experiment best = best_so_far(experiment, *brief, inputs, line.sweep);
    line.sweep.force = false;
    result = sweep(best, inputs, line.sweep);
    line.still_moving = still_moving(result, best, experiment);
    experiment = std::move(best);
  } else {
    line.still_moving.clear();
  }
  if (!line.sweep.quiet) std::cerr << gained(first, result, seconds) << "\n";
  return result;
}

/// Chooses a mesh and prints why: the experiment of its pipeline; nothing if none fits.
std::optional<Experiment> plan_mesh(const ParallelConfig& config, CommandLine& line,
                                    Inputs& inputs) {
  if (line.sweep.out.empty()) line.sweep.out = std::filesystem::path("results") / config.name;
  const MeshAnswer answer = choose_mesh(config, line.sweep.jobs, line.sweep.quiet);
  std::cout << mesh_table(config.asked.mesh->question, answer, config.asked.mesh->network,
                          {.width = output_width(), .colour = output_has_colours()});
  const auto pipeline = write_mesh(config, answer, line.sweep.out);
  if (!pipeline) {
    std::cout.flush();
    std::cerr << "pfeife-exp: no mesh fits into the devices' memory; ask for more devices, a "
                 "smaller microbatch, or leave more open (recompute, zero, tp, pp: search)\n";
    return std::nullopt;
  }
  std::cout << "\n"
            << wrapped("one pipeline of it, planned and simulated (" + pipeline->string() + ")",
                       output_width());
  return mesh_experiment(config, answer.priced.front().run, line.sweep.out, inputs);
}

/// A config that lists numbers of devices: a row for each, with its files in "devices=N".
int compare_devices(const std::vector<std::int64_t>& counts, CommandLine& line,
                    const ExperimentRules& rules) {
  std::vector<FitRow> rows;
  MeshQuestion question;
  for (const std::int64_t count : counts) {
    std::vector<std::string> settings = line.settings;
    settings.push_back("parallel.devices=" + std::to_string(count));
    const auto config = read_parallel(line.config, settings, rules);
    if (line.sweep.out.empty()) line.sweep.out = std::filesystem::path("results") / config->name;
    const MeshSettings& mesh = *config->asked.mesh;
    question = mesh.question;
    const MeshAnswer answer = choose_mesh(*config, line.sweep.jobs, line.sweep.quiet);
    rows.push_back(
        fit_of_answer(config->asked.cluster.stem().string(), mesh.question, answer, mesh.network));
    write_mesh(*config, answer, line.sweep.out / ("devices=" + std::to_string(count)));
  }
  std::cout << fits_table(rows, "tokens", output_width()) << mesh_limits(question, output_width())
            << "\n"
            << wrapped("estimated; each mesh and the config of its pipeline are in " +
                           (line.sweep.out / "devices=...").string(),
                       output_width());
  const bool any = std::ranges::any_of(rows, [](const FitRow& row) { return row.lack.empty(); });
  return any ? 0 : 3;
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (const auto code = run_verb(arguments)) return *code;
  const auto started = std::chrono::steady_clock::now();
  std::optional<CommandLine> line = read_command_line(argc, argv);
  if (!line) return 0;
  Inputs inputs;
  std::optional<Experiment> pipeline;
  if (const auto counts = listed_devices(line->config, line->settings); !counts.empty())
    return line->asks_if_it_measures ? 1 : compare_devices(counts, *line, rules_of(inputs));
  if (const auto parallel = read_parallel(line->config, line->settings, rules_of(inputs))) {
    if (line->asks_if_it_measures) return 1;
    pipeline = plan_mesh(*parallel, *line, inputs);
    if (!pipeline) return 3;
  }
  Experiment experiment = pipeline
                              ? *std::move(pipeline)
                              : read_experiment(line->config, line->settings, rules_of(inputs));
  if (line->asks_if_it_measures) return std::ranges::any_of(experiment.cases, measures) ? 0 : 1;
  if (line->sweep.out.empty()) line->sweep.out = std::filesystem::path("results") / experiment.name;
  place_measured_inputs(experiment, line->sweep.out);
  if (line->list) {
    use_profiled_settings(experiment);
    hand_plans(experiment, inputs);
    list_cases(experiment, inputs, line->sweep);
    return 0;
  }
  if (!line->layers.empty()) {
    const CaseConfig& config = experiment.cases.front();
    const Layers& layers =
        with_places(config, [&]() -> const Layers& { return inputs.layers(config); });
    const Cluster& cluster = inputs.cluster(config);
    std::cout << (line->layers == "csv" ? layers_csv(layers, cluster)
                                        : layer_table(layers, cluster));
    return 0;
  }
  if (!line->fit.empty()) {
    const std::vector<MeasuredRow> rows = read_measured_rows(line->fit);
    std::cout << to_text(rows, fit_calibration(experiment.cases, rows, inputs, line->sweep.jobs));
    return 0;
  }
  check_measurable(experiment, inputs);
  check_figures(experiment);
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  make_measured_inputs(experiment, inputs, line->sweep.force, line->sweep.quiet);
  use_profiled_settings(experiment);
  hand_plans(experiment, inputs);
  const SweepResult result = sweep_watched(experiment, inputs, *line);
  if (!result.stopped) print_results(experiment, result, inputs, *line);
  if (!result.stopped && line->sweep.shards == 1)
    std::cout << write_figures(experiment, line->sweep.out);
  std::cout.flush();  // a log may take both: what follows does not break into the table
  for (const CaseRecord& record : result.cases)
    for (const std::string& failure : failures(record))
      std::cerr << "pfeife-exp: " << printable_line(failure) << "\n";
  for (const FailedCase& failed : result.failed)
    std::cerr << "pfeife-exp: case " << failed.name << " failed: " << printable(failed.reason)
              << "\n";
  if (search_ended_by != 0) {
    if (!line->sweep.quiet)
      fmt::print(
          stderr,
          "\npfeife-exp: interrupted; {} of {} plans may become faster, the same command goes "
          "on with them; all files are in {}\n",
          line->still_moving.size(), result.cases.size(), line->sweep.out.string());
    std::raise(search_ended_by);
  }
  if (!line->sweep.quiet)
    fmt::print(stderr, "\n{} of {} cases computed in {:.2f} s; all files are in {}\n",
               result.computed, result.cases.size() + result.failed.size(),
               std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(),
               line->sweep.out.string());
  const int code = exit_code(result);
  if (code == 3)
    fmt::print(stderr, "pfeife-exp: no case has a plan\n{}", printable(reasons(result)));
  return code;
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  return pfeife::run_main("pfeife-exp", [&] { return pfeife::run(argc, argv); });
}
