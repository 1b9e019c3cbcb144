// pfeife-schedule: schedules as text. One verb a call; reads a file or standard input ("-"), writes
// standard output, so that verbs pipe: pfeife-schedule generate zbv --ranks 4 --microbatches 8 |
// pfeife-schedule lower - | ... This file reads the command line; what the verbs do is in
// planner/schedule_tool.
#include <boost/program_options.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <thread>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/command_line.h"
#include "planner/io/files/open_file.h"
#include "planner/io/files/pdf.h"
#include "planner/io/files/quantity.h"
#include "planner/io/files/terminal.h"
#include "planner/io/files/text_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/io/results/chrome_trace.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/basics/run_main.h"
#include "planner/schedule_tool/argument_text.h"
#include "planner/schedule_tool/certify.h"
#include "planner/schedule_tool/lifetimes.h"
#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/families.h"
#include "plots/figure/pgf.h"
#include "plots/screen/timeline_text.h"
#include "plots/timeline/timeline.h"

namespace po = boost::program_options;

namespace pfeife::tool {
namespace {

constexpr int kFine = 0, kWrongInput = 2, kFailed = 4;

using Arguments = std::vector<std::string>;

/// The options of one verb, read; prints help by itself.
class Options {
 public:
  Options(std::string usage, std::string about)
      : usage_(std::move(usage)), about_(std::move(about)), named_("Options") {
    named_.add_options()("help", "this text");
  }
  po::options_description_easy_init add() { return named_.add_options(); }

  /// False if help was asked for, and printed.
  bool read(const Arguments& arguments, const char* positional) {
    const std::string verb = usage_.substr(0, usage_.find(' '));
    values_ = read_arguments(arguments, named_, positional, "pfeife-schedule " + verb);
    if (values_.count("help") == 0) return true;
    std::cout << "usage: pfeife-schedule " << usage_ << "\n\n" << about_ << "\n\n" << named_;
    return false;
  }
  bool has(const char* name) const { return values_.count(name) > 0; }
  std::string text(const char* name, const std::string& otherwise = "") const {
    return has(name) ? values_[name].as<std::string>() : otherwise;
  }
  std::vector<std::string> texts(const char* name) const {
    return has(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>{};
  }

 private:
  std::string usage_, about_;
  po::options_description named_;
  po::variables_map values_;
};

void add_file_options(Options& options) {
  options.add()("old-dialect",
                "read B as backward-input and BW as full backward (before December 2024)")(
      "forward", "the model runs forward only (training.mode: forward): rows have F alone");
}
void add_cost_options(Options& options) {
  options.add()(
      "costs", po::value<std::string>()->value_name("K=V,..."),
      "times in ms: f, i, w, b (= i + w), optimizer, transfer; offload (one way, of stages "
      "that take what they save to the host); overlap (a factor); "
      "linear (a share: what of f and b is not attention, of schedules with slices); "
      "f=15:10 for single stages "
      "(default f=1,i=1,w=1)");
}
void add_semantics_options(Options& options) {
  options.add()("queues", po::value<std::string>()->value_name("none|edge|pair|rank"),
                "which transfers wait for each other");
  options.add()("blocking", "SEND and RECV hold their rank until the transfer is done");
}

Mode read_mode(const Options& options) {
  return options.has("forward") ? Mode::Forward : Mode::Train;
}

Schedule read_input(const Options& options) {
  const Dialect dialect = options.has("old-dialect") ? Dialect::Old : Dialect::Current;
  const std::string file = options.text("file", "-");
  if (file != "-") return read_schedule_file(file, dialect);
  const TextFile input = read_text_stream(std::cin, "standard input");
  return read_schedule(input.text, input.name, dialect);
}

Semantics read_semantics(const Options& options, const char* default_queues) {
  return {read_queues(options.text("queues", default_queues)), Links::Delay,
          options.has("blocking")};
}
UnitCosts read_costs(const Options& options) {
  UnitCosts costs = options.has("costs") ? parse_costs(options.text("costs")) : UnitCosts{};
  costs.mode = read_mode(options);
  return costs;
}

/// "zb_greedy or ...": the families whose order is built for costs.
std::string built_families() {
  std::string names;
  for (const Family& known : families())
    if (known.built_for_costs) names += (names.empty() ? "" : " or ") + known.name;
  return names;
}

int run_generate(const Arguments& arguments) {
  Options options("generate FAMILY --ranks D --microbatches N [options]",
                  "Writes the compute-only schedule of a family.");
  options.add()("ranks", po::value<std::string>(), "number of ranks D");
  options.add()("microbatches", po::value<std::string>(), "number of microbatches N");
  options.add()("stages-per-rank", po::value<std::string>(),
                "stages a rank V (default: the fewest the family takes)");
  options.add()("loop-batch", po::value<std::string>(), "microbatches a group (looped, forward)");
  options.add()("prefetch", po::value<std::string>()->value_name("P|p0,p1,..."),
                "early forwards (1f1b, looped)");
  options.add()("slices", po::value<std::string>(),
                "pieces of each microbatch's sequence S (seq1f1b, terapipe, slimpipe, zb_greedy)");
  add_cost_options(options);
  options.add()(
      "memory", po::value<std::string>()->value_name("K|k0,k1,..."),
      "stages in flight of a rank at most, each from its F to the end of its W (zb_greedy)");
  for (const std::string& argument : arguments)
    if (argument == "--loops" || argument.starts_with("--loops="))
      throw ConfigError({}, "--loops is called --stages-per-rank now");
  if (!options.read(arguments, "family")) {
    std::cout << "\nFamilies:\n";
    std::vector<std::vector<std::string>> rows;
    for (const auto table : {families(), shared_head_families(), families(Mode::Forward)})
      for (const Family& known : table) rows.push_back({"  " + known.name, known.rule});
    std::cout << plain_grid(rows, false);
    return kFine;
  }
  for (const char* needed : {"family", "ranks", "microbatches"})
    if (!options.has(needed))
      throw ConfigError(
          {}, std::string("generate needs ") + (needed[0] == 'f' ? "the name of a family" : "--") +
                  (needed[0] == 'f' ? "" : needed) + " (see pfeife-schedule generate --help)");
  ScheduleSpec spec{.family = options.text("family"),
                    .ranks = whole_number(options.text("ranks"), "--ranks"),
                    .microbatches = whole_number(options.text("microbatches"), "--microbatches")};
  if (options.has("stages-per-rank"))
    spec.stages_per_rank = whole_number(options.text("stages-per-rank"), "--stages-per-rank");
  if (options.has("slices")) spec.slices = whole_number(options.text("slices"), "--slices");
  if (options.has("loop-batch"))
    spec.loop_batch = whole_number(options.text("loop-batch"), "--loop-batch");
  if (options.has("prefetch"))
    spec.prefetch = whole_numbers(options.text("prefetch"), "--prefetch");
  const bool fitted = options.has("costs") || options.has("memory");
  if (fitted && !family(spec.family).built_for_costs)
    throw ConfigError({}, "--costs and --memory have a meaning with " + built_families() +
                              " only: the order of " + spec.family + " does not depend on them");
  if (!fitted) {
    std::cout << write_schedule(generate_schedule(spec, options.has("stages-per-rank")));
    return kFine;
  }
  std::vector<std::size_t> memory;
  if (options.has("memory")) memory = whole_numbers(options.text("memory"), "--memory");
  std::cout << write_schedule(
      build_schedule(completed(spec, options.has("stages-per-rank")), read_costs(options), memory));
  return kFine;
}

LowerRequest read_lower_request(const Options& options) {
  LowerRequest request;
  const std::string transfers = options.text("transfers", "ready");
  if (transfers != "ready" && transfers != "torch")
    throw ConfigError({}, "--transfers: unknown value '" + transfers + "'; use ready or torch");
  request.options.transfers = transfers == "torch" ? TransferOrder::Torch : TransferOrder::Ready;
  request.options.keep_idle = options.has("keep-idle");
  if (request.options.keep_idle && transfers != "torch")
    throw ConfigError({}, "--keep-idle has a meaning with --transfers torch only");
  request.options.unshard = options.has("full");
  if (options.has("full")) request.options.reduce_grad = ReduceGrad::EveryStage;
  request.options.optimizer_step = !options.has("no-optimizer");
  request.merge_backward = options.has("merge-backward");
  request.split_backward = options.has("split-backward");
  request.costs = read_costs(options);
  for (const std::string& skip : options.texts("skip")) request.skips.push_back(read_skip(skip));
  for (const std::string& tied : options.texts("tied")) request.tied.push_back(read_tied(tied));
  return request;
}

int run_lower(const Arguments& arguments) {
  Options options("lower [FILE|-] [options]",
                  "Adds transfers, reductions and optimizer steps to a compute-only schedule.");
  add_file_options(options);
  add_cost_options(options);
  options.add()(
      "transfers", po::value<std::string>()->value_name("ready|torch"),
      "transfers in the order in which their values are ready (default), or where torch puts them");
  options.add()("full", "add UNSHARD, RESHARD and every stage's REDUCE_GRAD");
  options.add()("keep-idle", "an idle cell costs its rank a visit (torch placement)");
  options.add()("no-optimizer", "add no OPTIMIZER_STEP");
  options.add()("merge-backward", "first join I and W that follow each other to B");
  options.add()("split-backward", "first split B into I and W");
  options.add()("skip", po::value<std::vector<std::string>>()->value_name("FROM>TO"),
                "stage TO reads from stage FROM, too (repeatable)");
  options.add()("tied", po::value<std::vector<std::string>>()->value_name("S,T,..."),
                "these stages share a parameter (repeatable)");
  options.add()("torch", "write only what torch 2.11 reads");
  if (!options.read(arguments, "file")) return kFine;
  const Schedule lowered = lower_schedule(read_input(options), read_lower_request(options));
  std::cout << write_schedule(lowered, options.has("torch") ? Reader::Torch : Reader::Pfeife);
  return kFine;
}

int run_validate(const Arguments& arguments) {
  Options options("validate [FILE|-] [options]",
                  "Says what is wrong with a schedule, where and why; exit code 2 if anything "
                  "is.\nJudged with blocking "
                  "SEND and RECV, unless --queues is given without --blocking.");
  add_file_options(options);
  add_semantics_options(options);
  if (!options.read(arguments, "file")) return kFine;
  const Schedule schedule = read_input(options);
  Semantics semantics = read_semantics(options, "pair");
  if (!options.has("queues")) semantics.blocking = true;
  const std::string wrong = violations_text(schedule, semantics, read_mode(options));
  if (!wrong.empty()) {
    std::cerr << wrong;
    return kWrongInput;
  }
  std::cout << "right: " << schedule.ranks() << " ranks, " << stage_count(schedule) << " stages, "
            << microbatches_text(schedule)
            << (has_transfers(schedule) ? semantics.blocking
                                              ? ", no deadlock with blocking SEND and RECV\n"
                                              : ", no deadlock with these queues\n"
                                        : ", compute-only\n");
  return kFine;
}

int run_info(const Arguments& arguments) {
  Options options("info [FILE|-] [options]",
                  "Counts: actions, bubble, microbatches in flight, what I leaves for W.");
  add_file_options(options);
  if (!options.read(arguments, "file")) return kFine;
  std::cout << info_text(read_input(options), read_mode(options));
  return kFine;
}

int run_time(const Arguments& arguments) {
  Options options("time [FILE|-] [options]",
                  "Step time, bubble, microbatches in flight and attribution under given costs.\nA "
                  "compute-only schedule "
                  "is lowered first, transfers in ready order.");
  add_file_options(options);
  add_cost_options(options);
  add_semantics_options(options);
  options.add()("launch", po::value<std::string>()->value_name("MS"),
                "overhead of every action in ms");
  if (!options.read(arguments, "file")) return kFine;
  EstimateOptions estimate;
  if (options.has("launch"))
    estimate.launch_overhead = nanoseconds_from_ms(parse_ms("--launch", options.text("launch")));
  std::cout << timing_text(time_schedule(read_input(options), read_costs(options),
                                         read_semantics(options, "none"), estimate));
  return kFine;
}

void add_drawing_options(Options& options) {
  options.add()("title", po::value<std::string>(),
                "above the picture (show: else the file's name)")(
      "width", po::value<std::string>()->value_name("3.3in"),
      "width in in, cm, mm, pt or px (default: 1200px)")(
      "height", po::value<std::string>()->value_name("1in"),
      "of the whole; rows get what is left (default: as the ranks need)")(
      "column",
      "for a column of a paper: 3.3in wide, 0.22in a rank, letters of 7 pt, no title, transfers or "
      "critical path")("no-title", "no title, nor the line of figures above the rows")(
      "no-legend", "no legend")("no-critical-path", "no line along what the step waited for")(
      "pdf", po::value<std::string>()->value_name("FILE"),
      "a PDF besides, by rsvg-convert, inkscape, cairosvg or chromium")(
      "pgf", po::value<std::string>()->value_name("FILE"), "a PGF picture besides, for LaTeX");
}

/// "3.3in" to pixels of 1/96 inch.
int read_length(const std::string& option, const std::string& text, int least) {
  const ParsedQuantity<double> length = parse_length(text);
  if (!length.value) throw ConfigError({}, "--" + option + ": " + length.error);
  if (*length.value < least || *length.value > 19'200)
    throw ConfigError({}, "--" + option + " " + text + ": expected " + std::to_string(least) +
                              "px to 200in, for example 3.3in, 84mm or 1200px");
  return static_cast<int>(*length.value + 0.5);
}

TimelineOptions read_drawing(const Options& options, const std::string& title) {
  TimelineOptions drawing = options.has("column") ? column_options() : TimelineOptions{};
  if (options.has("column") && options.has("memory"))
    throw ConfigError({}, "--column and --memory: a column has no room for memory; leave one out");
  if (options.has("no-title") && options.has("title"))
    throw ConfigError({}, "--title and --no-title: leave one out");
  if (!options.has("column") && !options.has("no-title")) drawing.title = title;
  if (options.has("title")) drawing.title = options.text("title");
  if (options.has("width")) drawing.width = read_length("width", options.text("width"), 240);
  if (options.has("height")) drawing.height = read_length("height", options.text("height"), 40);
  drawing.legend = !options.has("no-legend");
  drawing.head = !options.has("no-title");
  drawing.critical_path = drawing.critical_path && !options.has("no-critical-path");
  return drawing;
}

void write_drawing(const Options& options, const Trace& trace, const TimelineOptions& drawing) {
  const std::string svg = timeline_svg(trace, drawing);
  write_file(options.text("svg"), svg);
  if (options.has("pgf")) write_file(options.text("pgf"), plots::pgf_of(svg));
  if (options.has("pdf"))
    std::cerr << options.text("pdf") << " made by "
              << write_pdf(options.text("svg"), options.text("pdf")) << "\n";
}

TraceSource read_engine(const std::string& name) {
  for (const TraceSource source :
       {TraceSource::Estimated, TraceSource::Simulated, TraceSource::Measured})
    if (name == to_string(source)) return source;
  throw ConfigError({}, "--engine " + name + ": use estimated, simulated or measured");
}

int run_draw(const Arguments& arguments) {
  Options options("draw FOLDER|TRACE.json --svg FILE [options]",
                  "Draws a plan that pfeife-exp has written, from the trace.json of its folder.");
  options.add()("svg", po::value<std::string>()->value_name("FILE"), "the picture")(
      "engine", po::value<std::string>()->value_name("ENGINE"),
      "estimated, simulated or measured (default: simulated)")("memory",
                                                               "the memory of each rank below");
  add_drawing_options(options);
  if (!options.read(arguments, "file")) return kFine;
  if (!options.has("file") || !options.has("svg"))
    throw ConfigError({}, "draw needs a plan's folder and --svg FILE");
  std::filesystem::path file = options.text("file");
  if (is_folder(file)) file /= "trace.json";
  TimelineOptions drawing = read_drawing(options, "");
  drawing.memory = options.has("memory");
  write_drawing(options, read_trace(file, read_engine(options.text("engine", "simulated"))),
                drawing);
  return kFine;
}

/// A grid of unit times where its lines have room, or standard output is no terminal; else, and
/// under given costs, to scale.
std::string shown_in_terminal(const Schedule& schedule, const Options& options) {
  const bool held = options.has("memory"), colour = output_has_colours();
  if (!options.has("costs") && !options.has("queues") && !options.has("blocking") && !colour) {
    std::string grid = grid_text(schedule, held, read_mode(options));
    if (!output_is_terminal() || grid.find('\n') <= output_width()) return grid;
  }
  TimelineTextOptions drawing{.width = output_width(), .colour = colour};
  if (!options.has("costs")) drawing.unit = " ";
  if (held) drawing.behind = held_texts(schedule);
  const Timing timing =
      time_schedule(schedule, read_costs(options), read_semantics(options, "none"), {});
  return timeline_text(timing.trace, drawing);
}

int run_show(const Arguments& arguments) {
  Options options("show [FILE|-] [options]",
                  "Draws the schedule in the terminal, in unit times or under the given costs, or "
                  "as an SVG.");
  add_file_options(options);
  add_cost_options(options);
  add_semantics_options(options);
  options.add()("svg", po::value<std::string>()->value_name("FILE"),
                "write a timeline under the given costs")(
      "memory", "how many microbatches each rank has in flight");
  add_drawing_options(options);
  if (!options.read(arguments, "file")) return kFine;
  const Schedule schedule = read_input(options);
  if (!options.has("svg")) {
    for (const char* needless : {"title", "width", "height", "column", "no-title", "no-legend",
                                 "no-critical-path", "pdf", "pgf"})
      if (options.has(needless))
        throw ConfigError({}, std::string("--") + needless + " has a meaning with --svg only");
    std::cout << shown_in_terminal(schedule, options);
    return kFine;
  }
  Timing timing = time_schedule(schedule, read_costs(options), read_semantics(options, "none"), {});
  const std::string file = options.text("file", "-");
  TimelineOptions drawing = read_drawing(options, file == "-" ? "" : file);
  if ((drawing.counts = options.has("memory"))) timing.trace.memory = in_flight(timing.trace);
  write_drawing(options, timing.trace, drawing);
  return kFine;
}

int run_certify(const Arguments& arguments) {
  Options options(
      "certify [PLAN.yaml|FOLDER|CERTIFICATE.txt]",
      "Checks a proof anew, sharing no code with the search. Of a plan (or its folder): the "
      "certificate beside it, that it\nspeaks of this plan, and that the costs are those of the "
      "files that the plan names. Exit code 2 if it is refused,\n4 if it proves less than the plan "
      "says or the costs cannot be computed from the files.");
  if (!options.read(arguments, "file")) return kFine;
  if (!options.has("file"))
    throw ConfigError({}, "certify needs a file: plan.yaml or certificate.txt");
  const Judged judged = certify_files(options.text("file"), std::thread::hardware_concurrency(),
                                      [](const std::string& said) { std::cerr << said << "\n"; });
  std::cout << judged.text << "\n";
  return judged.proven ? kFine : kFailed;
}

struct Verb {
  const char* name;
  const char* about;
  int (*run)(const Arguments&);
};
constexpr Verb kVerbs[] = {
    {"generate", "the compute-only schedule of a family", run_generate},
    {"lower", "add transfers, reductions, optimizer steps", run_lower},
    {"validate", "what is wrong, where, and why", run_validate},
    {"show", "a grid in the terminal, or SVG", run_show},
    {"draw", "a timeline of a plan that pfeife-exp has written", run_draw},
    {"info", "actions, bubble, microbatches in flight", run_info},
    {"time", "step time and its causes under given costs", run_time},
    {"certify", "check the proof that came with a plan", run_certify},
};

std::string usage() {
  std::vector<std::vector<std::string>> rows;
  for (const Verb& verb : kVerbs) rows.push_back({std::string("  ") + verb.name, verb.about});
  return "usage: pfeife-schedule VERB [FILE|-] [options]\n\n" + plain_grid(rows, false) +
         "\npfeife-schedule VERB --help tells the options of a verb.\n";
}

int run(const Arguments& arguments) {
  const std::string name = arguments.empty() ? "--help" : arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    (arguments.empty() ? std::cerr : std::cout) << usage();
    return arguments.empty() ? kWrongInput : kFine;
  }
  if (name == "--version") {
    std::cout << "pfeife-schedule " << PFEIFE_VERSION << "\n";
    return kFine;
  }
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return verb.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(verb.name);
  }
  const std::string nearest = nearest_spelling(name, names);
  throw ConfigError({}, "unknown verb '" + name + "'" +
                            (nearest.empty() ? "" : ", did you mean " + nearest + "?") + "\n" +
                            usage());
}

}  // namespace
}  // namespace pfeife::tool

int main(int argc, char** argv) {
  return pfeife::run_main("pfeife-schedule", [&] {
    return pfeife::tool::run({argv + 1, argv + argc});
  });
}
