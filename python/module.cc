// pfeife._core: the library (experiments/pfeife.h) for pfeife/__init__.py, which is what users see.
// Text and plain values go in and come out; what they mean is said there.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pfeife/pfeife.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

namespace nb = nanobind;
using namespace nb::literals;

namespace pfeife {
namespace {

/// What messages would call the text of a config that is made of keywords; left out of them.
constexpr const char* kKeywords = "keywords";

/// The work, its mistakes without the place in a text that no user has seen.
template <class Work>
auto without_place(const Work& work) try {
  return work();
} catch (const ConfigError& error) {
  const SourceLocation& where = error.where();
  if (where.file != kKeywords) throw;
  throw ConfigError({}, std::string(error.what()).substr(to_string(where).size() + 2));
}

using Names = std::map<std::string, std::string>;

std::vector<AskedCase> asked_cases(const std::string& config, const Names& names) {
  return without_place(
      [&] { return cases_of(config, std::filesystem::current_path() / kKeywords, names); });
}
/// The case of that name; "" = there is but one.
AskedCase asked_case(const std::string& config, const std::string& name, const Names& names) {
  for (AskedCase& one : asked_cases(config, names))
    if (one.request.name == name) return std::move(one);
  return without_place(
      [&] { return request_of(config, std::filesystem::current_path() / kKeywords, names); });
}

/// Work of the library on a thread of its own, while the caller waits for signals and shows the
/// progress: so an interrupt ends the call at once, and the work soon after.
class Background {
 public:
  using Progress = std::optional<std::function<void(double)>>;

  static Planned run(const std::function<Planned(const RunOptions&)>& work, std::size_t threads,
                     const Progress& progress) {
    const auto job = std::make_shared<Background>();
    ++running();
    std::thread([job, work, threads] { job->work(work, threads); }).detach();
    double shown = -1;
    for (bool done = false; !done;) {
      done = job->wait();
      if (PyErr_CheckSignals() != 0) {
        job->stop_.request_stop();
        throw nb::python_error();
      }
      const double share = job->share_;
      if (progress && share > shown) {
        try {
          (*progress)(shown = share);
        } catch (...) {
          job->stop_.request_stop();
          throw;
        }
      }
    }
    if (job->failure_) std::rethrow_exception(job->failure_);
    return std::move(*job->planned_);
  }

  /// No thread outlives the interpreter: what it uses would be gone.
  static void wait_for_all() {
    nb::gil_scoped_release free;
    while (running() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

 private:
  static std::atomic<int>& running() {
    static std::atomic<int> count = 0;
    return count;
  }

  void work(const std::function<Planned(const RunOptions&)>& work, std::size_t threads) {
    try {
      RunOptions options{.threads = threads, .stop = stop_.get_token()};
      options.progress = [this](double share) { share_ = share; };
      Planned planned = without_place([&] { return work(options); });
      const std::lock_guard lock(mutex_);
      planned_ = std::move(planned);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    changed_.notify_all();
    --running();
  }

  /// Some hundredths of a second; true once the work is done.
  bool wait() {
    nb::gil_scoped_release free;
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(30),
                             [&] { return planned_.has_value() || failure_ != nullptr; });
  }

  std::stop_source stop_;
  std::atomic<double> share_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Planned> planned_;
  std::exception_ptr failure_;
};

double ms(Nanoseconds time) { return milliseconds(time); }

template <class Values>
std::vector<std::int64_t> bytes_of(const Values& values) {
  std::vector<std::int64_t> numbers;
  for (const Bytes value : values) numbers.push_back(value.value);
  return numbers;
}
template <class Values>
std::vector<std::size_t> indices(const Values& values) {
  std::vector<std::size_t> numbers;
  for (const auto value : values) numbers.push_back(value.index());
  return numbers;
}

/// An array for numpy.frombuffer.
nb::bytes array(const std::vector<std::int64_t>& numbers) {
  return nb::bytes(reinterpret_cast<const char*>(numbers.data()), 8 * numbers.size());
}
template <class Number>
nb::bytes column(const Trace& trace, const Number& number) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(trace.events.size());
  for (const Event& event : trace.events)
    numbers.push_back(static_cast<std::int64_t>(number(event)));
  return array(numbers);
}

const char* kind_name(const Event& event) {
  static constexpr const char* kNames[] = {"compute", "transfer", "reduction", "optimizer", "copy"};
  return kNames[static_cast<std::size_t>(event.kind)];
}

std::optional<Action> first_action(const Cell& cell) {
  std::optional<Action> first;
  for_each_action(cell, [&](const Action& action) {
    if (!first) first = action;
  });
  return first;
}
std::int64_t stage_of(const Event& event) {
  const auto action = first_action(event.cell);
  return action ? static_cast<std::int64_t>(action->stage.index()) : -1;
}
std::int64_t microbatch_of(const Event& event) {
  const auto action = first_action(event.cell);
  return action && action->microbatch ? static_cast<std::int64_t>(action->microbatch->microbatch())
                                      : -1;
}

nb::dict columns(const Trace& trace) {
  nb::dict columns;
  std::vector<std::string> kinds, actions;
  for (const Event& event : trace.events) {
    kinds.emplace_back(kind_name(event));
    actions.push_back(to_string(event.cell));
  }
  columns["kind"] = nb::cast(kinds);
  columns["action"] = nb::cast(actions);
  columns["rank"] = column(trace, [](const Event& e) { return e.rank.index(); });
  columns["peer"] = column(trace, [](const Event& e) { return e.peer.index(); });
  columns["stage"] = column(trace, stage_of);
  columns["microbatch"] = column(trace, microbatch_of);
  columns["posted"] = column(trace, [](const Event& e) { return e.posted.count(); });
  columns["start"] = column(trace, [](const Event& e) { return e.start.count(); });
  columns["end"] = column(trace, [](const Event& e) { return e.end.count(); });
  columns["launch"] = column(trace, [](const Event& e) { return e.launch.count(); });
  return columns;
}

std::vector<std::pair<nb::bytes, nb::bytes>> memory(const Trace& trace) {
  std::vector<std::pair<nb::bytes, nb::bytes>> ranks;
  for (const auto& samples : trace.memory) {
    std::vector<std::int64_t> times, bytes;
    for (const MemorySample& sample : samples) {
      times.push_back(sample.time.count());
      bytes.push_back(sample.bytes.value);
    }
    ranks.emplace_back(array(times), array(bytes));
  }
  return ranks;
}

std::vector<std::map<std::string, std::int64_t>> attributions(const Trace& trace) {
  std::vector<std::map<std::string, std::int64_t>> ranks;
  for (std::size_t r = 0; r < trace.ranks; ++r) {
    const Attribution a = attribution(trace, RankId{r});
    ranks.push_back({{"compute", a.compute.count()},
                     {"dependency_wait", a.dependency_wait.count()},
                     {"exposed_transfer", a.exposed_transfer.count()},
                     {"queue_wait", a.queue_wait.count()},
                     {"launch", a.launch.count()},
                     {"reduction", a.reduction.count()},
                     {"optimizer", a.optimizer.count()}});
  }
  return ranks;
}

std::vector<std::vector<std::string>> cells(const Schedule& schedule) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : schedule.rows) {
    rows.emplace_back();
    for (const Cell& cell : row) rows.back().push_back(to_string(cell));
  }
  return rows;
}

/// An action of a microbatch. `kind`: "F", "SEND_B", "OFFLOAD". `microbatch`: with slices, the
/// number among those of all microbatches. `peer`: of a transfer, else the stage itself. `text`: as
/// in a cell.
using ActionValue = std::tuple<std::string, std::int32_t, std::int32_t, std::int32_t, std::string>;

/// Slices of each microbatch, and the actions of microbatches: [rank][cell], several of a cell in
/// the order of execution.
std::pair<std::size_t, std::vector<std::vector<std::vector<ActionValue>>>> actions(
    const Schedule& schedule) {
  std::vector<std::vector<std::vector<ActionValue>>> rows;
  for (const auto& row : schedule.rows) {
    rows.emplace_back();
    for (const Cell& cell : row) {
      auto& values = rows.back().emplace_back();
      for_each_action(cell, [&](const Action& action) {
        if (!action.microbatch) return;
        std::string kind(operation(action.op).text);
        if (is_transfer(action.op)) kind += action.direction == Direction::Forward ? "_F" : "_B";
        values.emplace_back(kind, action.stage.value, action.microbatch->value,
                            action.peer.value_or(action.stage).value, to_string(action));
      });
    }
  }
  return {slice_count(schedule), rows};
}

Semantics semantics_of(const std::string& queues, bool blocking) {
  for (const Queues known : {Queues::None, Queues::Edge, Queues::Pair, Queues::Rank})
    if (to_string(known) == queues) return {.queues = known, .blocking = blocking};
  throw ConfigError({}, "queues: unknown word '" + queues + "'; use none, edge, pair or rank");
}

Schedule parse(const std::string& text) { return read_schedule(text, "schedule"); }

/// Rows of F alone are of a pass forward only.
Mode mode_of(const Schedule& schedule) {
  bool trains = false;
  for (const std::vector<Cell>& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        const bool carries_values =
            is_transfer(action.op) && action.direction == Direction::Forward;
        trains |= action.op != Op::Forward && !carries_values;
      });
  return trains ? Mode::Train : Mode::Forward;
}

tool::UnitCosts costs_of(const Schedule& schedule, const std::string& text) {
  tool::UnitCosts costs = text.empty() ? tool::UnitCosts{} : tool::parse_costs(text);
  costs.mode = mode_of(schedule);
  return costs;
}

void bind_trace(nb::module_& m) {
  nb::class_<Trace>(m, "Trace")
      .def_prop_ro("source", [](const Trace& t) { return to_string(t.source); })
      .def_ro("ranks", &Trace::ranks)
      .def_prop_ro("step", [](const Trace& t) { return ms(step_time(t)); })
      .def_prop_ro("bubble", [](const Trace& t) { return bubble(t); })
      .def_prop_ro("critical_rank", [](const Trace& t) { return critical_rank(t).index(); })
      .def("columns", &columns)
      .def("memory", &memory)
      .def("attribution", &attributions)
      .def(
          "svg",
          [](const Trace& trace, const std::string& title,
             const std::vector<std::int64_t>& memory_limits, int width, bool counts) {
            TimelineOptions options{.title = title, .width = width, .counts = counts};
            for (const std::int64_t limit : memory_limits)
              options.memory_limits.push_back(Bytes{limit});
            return timeline_svg(trace, options);
          },
          "title"_a, "memory_limits"_a, "width"_a, "counts"_a);
}

/// [stage] What each executes and holds, by the model's own names.
std::vector<nb::dict> stages(const Planned& planned, std::size_t contestant) {
  const PlannedStages cut = stages_of(planned, contestant);
  const Graph& graph = cut.graph;
  const auto names = [&](const std::vector<ValueId>& values) {
    std::vector<std::string> found;
    for (const ValueId value : values) {
      const Value& named = graph.value(value);
      found.push_back(named.source_name.empty() ? named.name : named.source_name);
    }
    return nb::cast(found);
  };
  std::vector<std::size_t> executed(graph.nodes.size());  // by how many stages
  for (const StageSlice& slice : cut.split.stages)
    for (const NodeId node : slice.nodes) ++executed[node.index()];
  const Plan& plan = planned.contestants.at(contestant).plan;
  std::vector<nb::dict> stages;
  for (std::size_t s = 0; s < cut.split.stages.size(); ++s) {
    const StageSlice& slice = cut.split.stages[s];
    std::vector<std::string> nodes, copied, parameters;
    for (const NodeId node : slice.nodes) {
      nodes.push_back(graph.node(node).name);
      if (executed[node.index()] > 1) copied.push_back(graph.node(node).name);
    }
    for (const ParameterId parameter : slice.parameters)
      parameters.push_back(graph.parameters[parameter.index()].names.front());
    using Messages = std::vector<std::pair<std::string, std::size_t>>;
    Messages receives, sends;
    std::set<std::size_t> gradients;
    for (const Crossing& crossing : cut.split.crossings) {
      const std::string& value = graph.value(crossing.value).name;
      if (crossing.to.index() == s) receives.emplace_back(value, crossing.from.index());
      if (crossing.from.index() == s) {
        sends.emplace_back(value, crossing.to.index());
        if (crossing.gradient) gradients.insert(crossing.to.index());
      }
    }
    nb::dict& stage = stages.emplace_back();
    stage["rank"] = plan.placement.rank(StageId{s}).index();
    stage["nodes"] = nb::cast(nodes);
    stage["copied"] = nb::cast(copied);
    stage["inputs"] = names(slice.inputs);
    stage["parameters"] = nb::cast(parameters);
    stage["buffers"] = names(slice.buffers);
    stage["written"] = names(slice.written_buffers);
    stage["outputs"] = names(slice.outputs);
    stage["receives"] = nb::cast(receives);
    stage["sends"] = nb::cast(sends);
    stage["gradients_from"] = nb::cast(std::vector(gradients.begin(), gradients.end()));
    const bool recomputed = s < plan.activations.stages.size() && plan.activations.stages[s];
    stage["recomputed"] = recomputed;
    stage["offload"] = s < plan.activations.offload.size() ? plan.activations.offload[s] : 0.0;
  }
  return stages;
}
/// What is wrong with rows for the plan's stages, where transfers hold their rank; "" if nothing
/// is.
std::string violations(const Planned& planned, std::size_t contestant, const std::string& rows) {
  const PlannedStages cut = stages_of(planned, contestant);
  const Plan& plan = planned.contestants.at(contestant).plan;
  const StageGraph graph = stage_graph(cut.graph, cut.split, plan.placement);
  const Schedule schedule = parse(rows);
  return tool::violations_text(schedule, requirements_of(schedule, graph, plan.training.mode),
                               semantics_of("none", /*blocking=*/true));
}
/// Why a program or an option does not execute the plan (planner/ir/result/not_executed.h).
std::string not_executed_because(const Planned& planned, std::size_t contestant,
                                 const std::string& where) {
  return why_not_executed(where, {planned.contestants.at(contestant).plan});
}
std::vector<double> slice_ends(const Planned& planned, std::size_t contestant) {
  return stages_of(planned, contestant).slice_ends;
}
/// [block] The nodes of each block that is computed again.
std::vector<std::vector<std::string>> blocks(const Planned& planned, std::size_t contestant) {
  const Plan& plan = planned.contestants.at(contestant).plan;
  std::vector<std::vector<std::string>> named;
  if (plan.block_nodes.empty()) return named;
  const Graph graph = stages_of(planned, contestant).graph;
  for (const NodeRange& block : plan.block_nodes) {
    named.emplace_back();
    for (std::int32_t node = block.before + 1; node <= block.last; ++node)
      named.back().push_back(graph.node(NodeId{node}).name);
  }
  return named;
}

void bind_planned(nb::module_& m) {
  nb::class_<Contestant>(m, "Contestant")
      .def_ro("name", &Contestant::name)
      .def_ro("reason", &Contestant::reason)
      .def_prop_ro("possible", &Contestant::possible)
      .def_prop_ro("fits", &Contestant::fits)
      .def_prop_ro("title", [](const Contestant& c) { return name_of(c.plan); })
      // Traces may be large: they stay where they are.
      .def_prop_ro("predicted", &Contestant::predicted, nb::rv_policy::reference_internal)
      .def_prop_ro(
          "estimated", [](const Contestant& c) { return &c.estimated; },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "simulated", [](const Contestant& c) { return c.simulated ? &*c.simulated : nullptr; },
          nb::rv_policy::reference_internal, nb::sig("def simulated(self) -> Trace | None"))
      .def_prop_ro("cuts", [](const Contestant& c) { return c.plan.partition.cuts; })
      .def_prop_ro("cut_modules", [](const Contestant& c) { return c.plan.cut_modules; })
      .def_prop_ro("cut_nodes", [](const Contestant& c) { return c.plan.cut_nodes; })
      .def_prop_ro("precision",
                   [](const Contestant& c) { return to_string(c.plan.training.precision); })
      .def_prop_ro("recompute_except_last",
                   [](const Contestant& c) { return c.plan.activations.except_last; })
      .def_prop_ro("rank_of_stage",
                   [](const Contestant& c) { return indices(c.plan.placement.rank_of_stage); })
      .def_prop_ro("device_of_rank",
                   [](const Contestant& c) { return indices(c.plan.placement.device_of_rank); })
      .def_prop_ro("peaks", [](const Contestant& c) { return bytes_of(c.plan.peak_memory); })
      .def_prop_ro("limits", [](const Contestant& c) { return bytes_of(c.need.limit); })
      .def_prop_ro("schedule", [](const Contestant& c) { return write_schedule(c.plan.schedule); });
  nb::class_<Planned>(m, "Planned")
      .def_prop_ro("found", &Planned::found)
      .def_prop_ro("count", [](const Planned& p) { return p.contestants.size(); })
      .def(
          "contestant", [](const Planned& p, std::size_t i) { return &p.contestants.at(i); },
          "number"_a, nb::rv_policy::reference_internal)
      .def_ro("candidates", &Planned::candidates)
      .def(
          "bound",
          [](const Planned& p, std::size_t contestant) {
            const auto found = bound_of(p, contestant);
            return found ? std::optional(std::pair(ms(found->time), found->of)) : std::nullopt;
          },
          "contestant"_a)
      .def_prop_ro("helps",
                   [](const Planned& p) {
                     std::vector<std::string> outcomes;  // [tried] "" = even so nothing fits
                     for (const TriedChange& tried : p.tried)
                       outcomes.push_back(tried.estimate ? outcome_text(tried) : "");
                     return outcomes;
                   })
      .def(
          "bound_covers",
          [](const Planned& p, std::size_t contestant) { return covered_text(p, contestant); },
          "contestant"_a)
      .def_prop_ro("record", [](const Planned& p) { return to_json(record_of(p)); })
      .def(
          "table",
          [](const Planned& p, std::size_t width, bool colour, bool verbose) {
            return table(p, {.width = width, .colour = colour, .verbose = verbose});
          },
          "width"_a, "colour"_a, "verbose"_a)
      .def("report", &report)
      .def("stages", &stages, "contestant"_a)
      .def("blocks", &blocks, "contestant"_a)
      .def("slice_ends", &slice_ends, "contestant"_a)
      .def("violations", &violations, "contestant"_a, "rows"_a)
      .def("not_executed", &not_executed_because, "contestant"_a, "where"_a)
      .def(
          "simulate",
          [](const Planned& p, std::size_t contestant) { return simulate(p, contestant); },
          "contestant"_a, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "export",
          [](const Planned& p, const std::string& framework, std::size_t contestant) {
            Exported exported;
            {
              nb::gil_scoped_release free;
              exported = export_for(framework, p, contestant);
            }
            std::vector<std::pair<std::string, nb::bytes>> files;
            for (const ExportedFile& file : exported.files)
              files.emplace_back(file.name, nb::bytes(file.text.data(), file.text.size()));
            return std::pair(std::move(files), std::move(exported.lost));
          },
          "framework"_a, "contestant"_a)
      .def("save", &save, "folder"_a, "contestant"_a, nb::call_guard<nb::gil_scoped_release>());
}

void bind_schedules(nb::module_& m) {
  using Costs = std::string;  // as pfeife-schedule takes them: "f=1,i=1,w=0.8"
  m.def("families", [] {
    std::vector<std::pair<std::string, std::string>> named;
    for (const Family& family : families()) named.emplace_back(family.name, family.rule);
    return named;
  });
  m.def(
      "generate",
      [](const std::string& name, std::size_t ranks, std::size_t microbatches,
         std::optional<std::size_t> stages_per_rank, std::optional<std::size_t> loop_batch,
         const std::vector<std::size_t>& prefetch, const Costs& costs,
         const std::vector<std::size_t>& most_in_flight) {
        const ScheduleSpec spec{.family = name,
                                .ranks = ranks,
                                .microbatches = microbatches,
                                .stages_per_rank = stages_per_rank.value_or(1),
                                .loop_batch = loop_batch,
                                .prefetch = prefetch};
        const bool given = stages_per_rank.has_value();
        if (costs.empty() && most_in_flight.empty())
          return cells(tool::generate_schedule(spec, given));
        if (!family(name).built_for_costs)
          throw ConfigError({},
                            "costs and most_in_flight have a meaning with families that are "
                            "built for costs only: the order of " +
                                name + " does not depend on them");
        return cells(tool::build_schedule(
            tool::completed(spec, given),
            costs.empty() ? tool::UnitCosts{} : tool::parse_costs(costs), most_in_flight));
      },
      "family"_a, "ranks"_a, "microbatches"_a, "stages_per_rank"_a, "loop_batch"_a, "prefetch"_a,
      "costs"_a, "most_in_flight"_a);
  m.def(
      "parse", [](const std::string& text) { return cells(parse(text)); }, "text"_a);
  m.def(
      "actions", [](const std::string& text) { return actions(parse(text)); }, "text"_a);
  m.def(
      "lower",
      [](const std::string& text, const Costs& costs, bool for_torch) {
        const Schedule schedule = parse(text);
        tool::LowerRequest request;
        request.costs = costs_of(schedule, costs);
        if (for_torch) request.options.transfers = TransferOrder::Torch;
        const Schedule lowered = tool::lower_schedule(schedule, request);
        return cells(for_torch ? parse(write_schedule(lowered, Reader::Torch)) : lowered);
      },
      "text"_a, "costs"_a, "for_torch"_a);
  m.def(
      "violations",
      [](const std::string& text, const std::string& queues, bool blocking) {
        const Schedule schedule = parse(text);
        return tool::violations_text(schedule, semantics_of(queues, blocking), mode_of(schedule));
      },
      "text"_a, "queues"_a, "blocking"_a);
  m.def(
      "grid",
      [](const std::string& text) {
        const Schedule schedule = parse(text);
        return tool::grid_text(schedule, false, mode_of(schedule));
      },
      "text"_a);
  m.def(
      "time",
      [](const std::string& text, const Costs& costs, const std::string& queues, double launch) {
        const Schedule schedule = parse(text);
        tool::Timing timing =
            tool::time_schedule(schedule, costs_of(schedule, costs), semantics_of(queues, false),
                                {.launch_overhead = nanoseconds_from_ms(launch)});
        timing.trace.memory = tool::in_flight(timing.trace);
        return timing.trace;
      },
      "text"_a, "costs"_a, "queues"_a, "launch"_a);
}

/// A choice as a program names it.
Choice choice_of(const std::map<std::string, nb::object>& named) {
  Choice choice;
  for (const auto& [key, value] : named) {
    if (key == "family") {
      choice.spec.family = nb::cast<std::string>(value);
    } else if (key == "cuts") {
      choice.partition.cuts = nb::cast<std::vector<std::int32_t>>(value);
    } else if (key == "stages_per_rank") {
      choice.spec.stages_per_rank = nb::cast<std::size_t>(value);
    } else if (key == "loop_batch") {
      choice.spec.loop_batch = nb::cast<std::size_t>(value);
    } else if (key == "prefetch") {
      choice.spec.prefetch = nb::cast<std::vector<std::size_t>>(value);
    } else if (key == "recompute") {
      choice.activations.stages = nb::cast<std::vector<bool>>(value);
    } else {
      throw ConfigError({}, "a choice has no key '" + key +
                                "'; use family, cuts, stages_per_rank, loop_batch, prefetch, "
                                "recompute (a list of one truth a stage)");
    }
  }
  return choice;
}

struct PricerOfCase {
  PricerOfCase(const AskedCase& asked)
      : pricer(load_model(asked.request.model), asked.cluster, asked.request) {}
  Pricer pricer;
};

void bind_pricer(nb::module_& m) {
  using Choices = std::vector<std::map<std::string, nb::object>>;
  nb::class_<PricerOfCase>(m, "Pricer")
      .def(
          "__init__",
          [](PricerOfCase* self, const std::string& config, const Names& names) {
            new (self) PricerOfCase(asked_case(config, "", names));
          },
          "config"_a, "names"_a)
      .def_prop_ro("layers",
                   [](const PricerOfCase& p) {
                     std::vector<std::pair<std::string, bool>> layers;
                     for (const Layer& layer : p.pricer.layers().layers)
                       layers.emplace_back(layer.name, layer.no_cut_after.empty());
                     return layers;
                   })
      .def_prop_ro("limits",
                   [](const PricerOfCase& p) { return bytes_of(p.pricer.memory_limit()); })
      .def_prop_ro("schedules",
                   [](const PricerOfCase& p) {
                     std::vector<nb::dict> schedules;
                     for (const ScheduleSpec& spec : p.pricer.schedules()) {
                       nb::dict& named = schedules.emplace_back();
                       named["family"] = spec.family;
                       named["stages_per_rank"] = spec.stages_per_rank;
                       if (spec.loop_batch) named["loop_batch"] = *spec.loop_batch;
                       if (!spec.prefetch.empty()) named["prefetch"] = nb::cast(spec.prefetch);
                     }
                     return schedules;
                   })
      .def(
          "price",
          [](const PricerOfCase& p, const Choices& named, std::size_t threads) {
            std::vector<Choice> choices;
            for (const auto& one : named) {
              choices.push_back(choice_of(one));
              choices.back().spec.ranks = p.pricer.device_of_rank().size();
              choices.back().spec.microbatches = p.pricer.schedules().front().microbatches;
            }
            std::vector<Priced> priced;
            {
              nb::gil_scoped_release free;
              priced = p.pricer.price(std::move(choices), threads);
            }
            std::vector<std::pair<double, std::vector<std::int64_t>>> told;
            for (const Priced& one : priced)
              told.emplace_back(ms(one.estimate), bytes_of(one.peak_memory));
            return told;
          },
          "choices"_a, "threads"_a);
}

}  // namespace
}  // namespace pfeife

NB_MODULE(_core, m) {
  using namespace pfeife;
  nb::exception<ConfigError>(m, "ConfigError", PyExc_ValueError);
  nb::exception<RuntimeFault>(m, "RuntimeFault", PyExc_RuntimeError);
  nb::class_<MemoryFile>(m, "MemoryFile")
      .def(
          "__init__",
          [](MemoryFile* self, const nb::bytes& bytes) {
            new (self) MemoryFile(std::string_view(bytes.c_str(), bytes.size()));
          },
          "content"_a)
      .def_prop_ro("path", [](const MemoryFile& file) { return file.path().string(); });
  bind_trace(m);
  bind_planned(m);
  bind_schedules(m);
  bind_pricer(m);
  m.def("keys", &request_keys);
  m.def("changed_cluster", &changed_cluster, "file"_a, "values"_a);
  // Names of the device kinds that say no stage_overhead.
  m.def(
      "kinds_without_overhead",
      [](const std::filesystem::path& file) {
        std::vector<std::string> names;
        for (const DeviceKind& kind : load_cluster(file).kinds)
          if (kind.stage_overhead.count() == 0) names.push_back(kind.name);
        return names;
      },
      "file"_a);
  m.def(
      "results_csv",
      [](const std::vector<std::string>& records) {
        std::vector<CaseRecord> cases;
        for (const std::string& json : records)
          if (auto record = case_from_json(json)) cases.push_back(*std::move(record));
        return results_csv(cases);
      },
      "records"_a);
  m.def(
      "cases",
      [](const std::string& config, const Names& names) {
        std::vector<std::pair<std::string, std::string>> cases;
        for (const AskedCase& one : asked_cases(config, names))
          cases.emplace_back(one.request.name, one.digest);
        return cases;
      },
      "config"_a, "names"_a);
  m.def(
      "plan",
      [](const std::string& config, const std::string& name, const Names& names,
         std::size_t threads, const Background::Progress& progress) {
        const AskedCase asked = asked_case(config, name, names);
        return Background::run(
            [asked](const RunOptions& options) {
              return plan(load_model(asked.request.model), asked.cluster, asked.request, options);
            },
            threads, progress);
      },
      "config"_a, "name"_a, "names"_a, "threads"_a, "progress"_a);
  m.def(
      "load_plan",
      [](const std::filesystem::path& folder, std::size_t threads) {
        return Background::run(
            [folder](const RunOptions& options) { return load_plan(folder, options); }, threads,
            std::nullopt);
      },
      "folder"_a, "threads"_a);
  m.def(
      "certify",
      [](const std::filesystem::path& folder, std::size_t threads) {
        Judgement judgement = certify(folder, threads);
        return std::pair(judgement.proven, std::move(judgement.text));
      },
      "folder"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>());
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Background::wait_for_all));
}
