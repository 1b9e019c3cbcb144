#include "experiments/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "experiments/machine/child.h"
#include "experiments/measure/measure.h"
#include "experiments/plans/case_memory.h"
#include "experiments/plans/evaluate.h"
#include "experiments/plans/faster_links.h"
#include "experiments/plans/plan_case.h"
#include "experiments/plans/simulated_choice.h"
#include "experiments/show/progress.h"
#include "experiments/show/report.h"
#include "experiments/show/search_times.h"
#include "experiments/show/table_files.h"
#include "experiments/show/texts.h"
#include "experiments/sweep/old_plans.h"
#include "experiments/sweep/record.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/part_locks.h"
#include "planner/ir/basics/parallel.h"
#include "planner/ir/result/case_files.h"

namespace pfeife {
namespace {

/// A case that is to be computed.
struct OpenCase {
  const CaseConfig* config = nullptr;
  CaseInputs inputs;
  std::string digest;
  const Cluster* published = nullptr;  ///< not calibrated
  Bytes memory{0};                     ///< of this machine, nearly
};

EvaluatedCase plan_and_estimate(const OpenCase& task, Inputs& inputs, std::size_t threads,
                                const std::function<void(double)>& progress,
                                const std::function<void(const SearchStepDone&)>& after_step) {
  EvaluatedCase evaluated = with_places(*task.config, [&] {
    return plan_case(task.inputs, inputs.layers_of(*task.config), task.config->plan.rule().compared,
                     threads, progress, after_step);
  });
  evaluated.digest = task.digest;
  evaluated.work = inputs.work(*task.config, *evaluated.settled);
  evaluated.published = task.published;
  return evaluated;
}

/// Looks at the traces of a run of the plan that has been: comparison.txt says what they say.
void observe(Evaluation& plan, const std::filesystem::path& folder) {
  const std::vector<std::filesystem::path>& traces = plan.inputs.config->measurement.traces;
  try {
    Comparison comparison = compare_with_traces(folder, traces, plan.simulated);
    write_file(folder / "comparison.txt", comparison_text(comparison));
    // Without optimizer steps they are of another step than the plan's.
    if (comparison.run.optimizer) plan.measurement = std::move(comparison.measurement);
  } catch (const ConfigError& error) {
    plan.measure_failure = error.what();
  }
}

/// Runs the case's plans if it asks for that: one at a time, and nothing beside them.
void measure(const CaseConfig& config, EvaluatedCase& evaluated, const std::filesystem::path& out,
             Inputs& inputs, const std::function<void(double)>& progress) {
  if (!config.measurement.traces.empty())
    for (Evaluation* plan : kept_plans(evaluated))
      if (plan->name == kPlanned) observe(*plan, out / config.name / plan->name);
  if (config.measure)
    measure_in_rounds(kept_plans(evaluated), out / config.name, config, inputs, progress);
}

/// The parts of the work on a case, and about which share of its time each takes.
enum : std::size_t { kPlanning, kSimulating, kMeasuring, kDrawing };
constexpr std::array kSteps{Step{"planning", 0, 0.85, "a smaller plan.iterations is faster"},
                            Step{"simulating", 0.85, 0.9}, Step{"measuring", 0.9, 0.95},
                            Step{"drawing", 0.95, 1}};

/// What a process that computes some cases tells the one that shows the progress.
class ProgressFromAfar {
 public:
  ProgressFromAfar(const Say& say, std::span<const OpenCase> tasks)
      : say_(say),
        cases_(tasks.size()),
        name_(tasks.front().config->name +
              (tasks.size() > 1 ? " and " + std::to_string(tasks.size() - 1) + " more" : "")) {}
  /// The step of that number in kSteps.
  void begin(std::size_t step) {
    percent_ = 0;
    say_({kBegin, step, cases_, name_});
  }
  void reached(double share) {
    const int percent = static_cast<int>(100 * share);
    if (percent > percent_.exchange(percent))
      say_({kReached, static_cast<std::uint64_t>(std::max(percent, 0))});
  }
  void note(const std::string& sentence) const { say_({.what = kNote, .text = sentence}); }
  static void show(const Said& message, Progress& progress) {
    if (message.what == kBegin)
      progress.begin(message.text, message.amount, kSteps.at(message.number));
    if (message.what == kReached) progress.reached(static_cast<double>(message.number) / 100);
    if (message.what == kNote) progress.note(message.text);
  }

 private:
  enum : std::uint64_t { kBegin, kReached, kNote };
  const Say& say_;
  std::size_t cases_;
  std::string name_;
  std::atomic<int> percent_{0};
};

/// Plans, simulates and writes some cases, all cores busy; case.json and its digest last.
void compute(std::span<const OpenCase> tasks, Inputs& inputs, const SweepOptions& options,
             const Say& say) {
  ProgressFromAfar progress(say, tasks);
  progress.begin(kPlanning);
  std::vector<EvaluatedCase> cases(tasks.size());
  std::mutex shares_mutex;
  std::vector<double> shares(tasks.size());  // [case] of its planning that is done
  const auto planned = [&](std::size_t i, double done) {
    const std::lock_guard lock(shares_mutex);
    shares[i] = std::max(shares[i], done);
    progress.reached(std::reduce(shares.begin(), shares.end()) / static_cast<double>(tasks.size()));
  };
  std::function<void(double)>
      share;  // of what follows; of several cases at a time it would say little
  if (tasks.size() == 1) share = [&](double done) { progress.reached(done); };
  const std::size_t threads_each = std::max<std::size_t>(1, options.jobs / tasks.size());
  std::vector<SearchTimes> times(options.search_times ? tasks.size() : 0);
  parallel_for(tasks.size(), options.jobs, [&](std::size_t i) {
    std::function<void(const SearchStepDone&)> after_step;
    if (!times.empty()) after_step = [&](const SearchStepDone& step) { times[i].add(step); };
    cases[i] = plan_and_estimate(
        tasks[i], inputs, threads_each, [&, i](double done) { planned(i, done); }, after_step);
    planned(i, 1);
  });
  for (std::size_t i = 0; i < times.size(); ++i)
    if (const std::string text = times[i].text(); !text.empty())
      progress.note(tasks[i].config->name + ": the search took " + text);
  progress.begin(kSimulating);
  try {
    simulate_cases(cases, options.jobs, share);
    simulate_faster_links(cases, options.jobs);
  } catch (const RuntimeFault& fault) {
    throw std::runtime_error(fault.what());  // of these cases alone, unlike a full disk
  }
  // What stands in the folders of these cases is replaced from here on.
  if (std::ranges::none_of(tasks, [](const OpenCase& task) { return task.config->measure; }))
    finish_this_piece();
  parallel_for(tasks.size(), options.jobs, [&](std::size_t i) {
    write_plans(options.out / tasks[i].config->name, cases[i], inputs.replaced(*tasks[i].config));
  });
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].config->measure) progress.begin(kMeasuring);
    measure(*tasks[i].config, cases[i], options.out, inputs, share);
  }
  progress.begin(kDrawing);
  parallel_for(tasks.size(), options.jobs, [&](std::size_t i) {
    const std::filesystem::path folder = options.out / tasks[i].config->name;
    write_drawings(folder, cases[i]);
    write_file(folder / case_file::kRecord, to_json(record_of(cases[i], *tasks[i].config)));
    std::vector<std::string> files;
    for (const Evaluation* plan : kept_plans(cases[i]))
      for (const char* name : plan_files()) files.push_back(plan->name + "/" + name);
    files.emplace_back("planned/certificate.txt");
    for (const std::string_view file : kCaseFiles)
      if (file != case_file::kCluster && file != case_file::kDigests) files.emplace_back(file);
    write_digests(folder, files);
  });
}

/// Computes some cases in a process of their own. If it dies each of them gets another one, so that
/// only those that make it die have failed. Returns what became of them, a sentence each.
std::vector<FailedCase> compute_apart(std::span<const OpenCase> tasks, Inputs& inputs,
                                      const SweepOptions& options, Progress& progress) {
  const std::string failure =
      run_apart([&](const Say& say) { compute(tasks, inputs, options, say); },
                [&](const Said& message) { ProgressFromAfar::show(message, progress); });
  std::vector<FailedCase> failed;
  if (!failure.empty() && children_have_to_end()) return failed;
  if (!failure.empty() && tasks.size() > 1) {
    for (std::size_t i = 0; i < tasks.size(); ++i)
      std::ranges::move(compute_apart(tasks.subspan(i, 1), inputs, options, progress),
                        std::back_inserter(failed));
    return failed;
  }
  if (!failure.empty()) failed.push_back({tasks.front().config->name, failure});
  for (const OpenCase& task : tasks) progress.done(task.config->name);
  return failed;
}

/// How many of the first tasks, at most `most`, have room beside one another.
std::size_t as_many_as_fit(std::span<const OpenCase> tasks, std::size_t most) {
  const Bytes available = memory_available();
  Bytes needed = tasks.front().memory;
  std::size_t count = 1;
  while (count < std::min(most, tasks.size()) && needed + tasks[count].memory <= available)
    needed += tasks[count++].memory;
  return count;
}

/// How many of the first tasks take plans from none of the others: those that take plans of as many
/// cases do not take them of one another (handed_plans.h).
std::size_t independent(std::span<const OpenCase> tasks) {
  const auto handed = [](const OpenCase& task) { return task.config->handed.from.size(); };
  const auto next = std::ranges::find_if(
      tasks, [&](const OpenCase& task) { return handed(task) != handed(tasks.front()); });
  return static_cast<std::size_t>(next - tasks.begin());
}

/// Many cases at a time while they are fast, few when they are slow: a killed run loses about a
/// second of work.
std::vector<FailedCase> compute_all(const std::vector<OpenCase>& tasks, Inputs& inputs,
                                    const SweepOptions& options, Progress& progress) {
  std::vector<FailedCase> failed;
  const bool slow = std::ranges::any_of(tasks, [](const OpenCase& t) { return t.config->measure; });
  std::size_t batch = slow ? 1 : std::max<std::size_t>(1, options.jobs);
  for (std::size_t begin = 0; begin < tasks.size() && !children_have_to_end();) {
    const std::size_t count = independent(
        std::span(tasks).subspan(begin, as_many_as_fit(std::span(tasks).subspan(begin), batch)));
    const auto started = std::chrono::steady_clock::now();
    std::ranges::move(
        compute_apart(std::span(tasks).subspan(begin, count), inputs, options, progress),
        std::back_inserter(failed));
    if (!slow && std::chrono::steady_clock::now() - started < std::chrono::milliseconds(500))
      batch = std::min<std::size_t>(2 * batch, 256);
    begin += count;
  }
  return failed;
}

/// Cases of the shard that have no record yet. All inputs are read here, so that a mistake in one
/// shows before work begins.
std::vector<OpenCase> tasks_of(std::span<const CaseConfig* const> configs, Inputs& inputs,
                               const SweepOptions& options) {
  std::vector<OpenCase> tasks;
  for (const CaseConfig* config : configs) {
    std::string digest = inputs.digest(*config);
    const auto known = find_record(options.out / config->name, digest);
    if (!options.force && known && failures(*known).empty()) continue;
    tasks.push_back({.config = config, .digest = std::move(digest)});
  }
  for (OpenCase& task : tasks)
    with_places(*task.config, [&] {
      CaseConfig published = *task.config;
      published.calibration.clear();
      task.inputs = {task.config, &inputs.layers(*task.config), &inputs.cluster(*task.config)};
      task.published = &inputs.cluster(published);
      if (published.plan_published) {
        task.inputs.published_layers = &inputs.layers(published);
        task.inputs.published_cluster = task.published;
      }
      for (const std::string& other : task.config->handed.from)
        task.inputs.handed.emplace_back(other, options.out / other / kPlanned / "plan.yaml");
      check_case(task.inputs);
      task.memory = memory_needed(task.inputs, options.jobs);
      check_memory(*task.config, task.memory, memory_available());
    });
  std::ranges::stable_sort(tasks, {},
                           [](const OpenCase& task) { return task.config->handed.from.size(); });
  return tasks;
}

std::vector<CaseRecord> gather(std::span<const CaseConfig* const> configs,
                               std::span<const FailedCase> failed, Inputs& inputs,
                               const SweepOptions& options) {
  std::vector<CaseRecord> records;
  for (const CaseConfig* config : configs) {
    if (std::ranges::find(failed, config->name, &FailedCase::name) != failed.end()) continue;
    const std::filesystem::path folder = options.out / config->name;
    const std::optional<CaseRecord> record = find_record(folder, inputs.digest(*config));
    if (!record)
      throw RuntimeFault(folder.string() + " was changed by another process meanwhile; run again");
    records.push_back(*record);
  }
  return records;
}

/// Writes what all cases are gathered in, unless it is there already.
void write_gathered(const Experiment& experiment, const std::vector<CaseRecord>& cases,
                    Inputs& inputs, const std::filesystem::path& out,
                    const std::vector<std::string>& columns) {
  const std::string json = results_json(experiment.name, cases);
  const std::string tex = latex_table(cases, columns);
  if (is_undamaged(out, "results.json") && read_file(out / "results.json") == json &&
      read_file(out / "results.tex") == tex)
    return;
  write_file(out / "results.csv", results_csv(cases));
  write_file(out / "results.md", markdown_table(cases, columns));
  write_file(out / "results.tex", tex);
  write_file(out / "report.html", experiment_report(experiment, cases, inputs, out));
  write_file(out / "results.json", json);
  write_digests(out, {"report.html", "results.csv", "results.md", "results.tex", "results.json"});
}

}  // namespace

std::optional<CaseRecord> find_record(const std::filesystem::path& folder,
                                      const std::string& digest) {
  std::error_code error;
  const std::filesystem::path file = folder / case_file::kRecord;
  if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
  auto record = case_from_json(read_file(file));
  // What somebody has tidied up, edited or damaged is made again.
  if (!record || record->digest != digest || !is_undamaged(folder, std::string(case_file::kRecord)))
    return std::nullopt;
  return record;
}

std::vector<std::string> failures(const CaseRecord& record) {
  std::vector<std::string> sentences;
  for (const PlanRecord& plan : record.plans)
    if (plan.measured && !plan.measured->failure.empty())
      sentences.push_back("case " + record.name + ", plan " + plan.row.plan +
                          " was not measured: " + plan.measured->failure);
  return sentences;
}

SweepResult sweep(const Experiment& experiment, Inputs& inputs, const SweepOptions& options) {
  std::vector<const CaseConfig*> configs;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < experiment.cases.size(); ++i) {
    // Cases that hand plans to one another belong to one shard.
    if (experiment.cases[i].handed.group % options.shards != options.shard) continue;
    configs.push_back(&experiment.cases[i]);
    numbers.push_back(static_cast<std::int64_t>(i));
  }
  std::vector<OpenCase> tasks = tasks_of(configs, inputs, options);
  const bool whole = options.shards == 1;
  make_folder(options.out);
  const FolderLock lock(options.out, whole,
                        "another pfeife-exp is writing to this folder; wait for it, or choose "
                        "another one with --out");
  // Only the process that has it computes a case: of shards that overlap, one waits.
  const PartLocks of_cases(options.out, whole ? std::vector<std::int64_t>{} : numbers, [&] {
    if (!options.quiet)
      fmt::print(
          stderr,
          "pfeife-exp: another pfeife-exp is computing cases of shard {}/{}; waiting for it\n",
          options.shard, options.shards);
  });
  if (of_cases.waited()) tasks = tasks_of(configs, inputs, options);
  if (whole) remove_leftovers(options.out);
  for (const OpenCase& task : tasks) {
    const std::filesystem::path folder = options.out / task.config->name;
    remove_leftovers(folder);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      if (entry.is_directory()) remove_leftovers(entry.path());
  }
  std::vector<FailedCase> failed;
  {
    Progress progress(tasks.size(), options.quiet);
    for (const OpenCase& task : tasks)
      progress.note(memory_note(*task.config, task.memory, memory_available()));
    failed = compute_all(tasks, inputs, options, progress);
  }
  if (children_have_to_end() && !tasks.empty()) return {.stopped = true};
  SweepResult result{gather(configs, failed, inputs, options), tasks.size() - failed.size(),
                     failed};
  if (whole) write_gathered(experiment, result.cases, inputs, options.out, options.columns);
  return result;
}

}  // namespace pfeife
