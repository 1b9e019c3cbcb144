// pfeife-run: executes plans. Verbs: check, train. See README.md.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "planner/io/atomic_file.h"
#include "planner/io/plan_file.h"
#include "planner/io/pt2_reader.h"
#include "planner/io/schedule_csv.h"
#include "planner/ir/error.h"
#include "runtime/check.h"
#include "runtime/in_process_transport.h"
#include "runtime/launch.h"
#include "runtime/measure.h"
#include "runtime/pipeline.h"
#include "runtime/socket_transport.h"

namespace pfeife {
namespace {

namespace options = boost::program_options;

constexpr const char* kUsage =
    "usage: pfeife-run check|train PLAN.yaml [options]\n"
    "       pfeife-run check|train --model M.pt2 --schedule S.csv --cuts \"NODE NODE ...\" "
    "[options]\n"
    "check: one step; losses and every gradient against the unsplit model\n"
    "train: steps on synthetic data; time, losses and the measured trace\n";

struct Setting {
  std::string verb;
  Pipeline pipeline;
  WeightSource source;
  RankOptions rank;
  double tolerance = 1e-12;
  int steps = 10;
  std::string out;
  bool threads = false;
  int kernel_threads = 1;
};

std::filesystem::path model_of(const Plan& plan, const std::filesystem::path& file) {
  for (const auto& base :
       {file.parent_path(), std::filesystem::path("."), std::filesystem::path("configs")})
    if (std::filesystem::exists(base / plan.model)) return base / plan.model;
  throw ConfigError({file.string()}, "the model '" + plan.model +
                                         "' is not where the plan is, nor here, nor in configs; "
                                         "name it with --model");
}

Graph graph_with_digest(const std::filesystem::path& path, const Plan& plan,
                        const std::filesystem::path& file) {
  Graph graph = read_pt2(path, plan.training.microbatch_size);
  if (graph.digest != plan.model_digest)
    throw ConfigError({file.string()}, "was made for another " + path.string() + " (digest " +
                                           plan.model_digest.substr(0, 12) + ", the file has " +
                                           graph.digest.substr(0, 12) + "); plan again");
  return graph;
}

std::vector<NodeId> node_list(const std::string& text) {
  std::vector<NodeId> nodes;
  std::istringstream words(text);
  for (std::int64_t n = 0; words >> n;) nodes.emplace_back(n);
  if (!words.eof()) throw ConfigError({"--cuts"}, "'" + text + "' is no list of node numbers");
  return nodes;
}

Pipeline pipeline_of_plan(const options::variables_map& given, std::filesystem::path& model,
                          RankOptions& rank) {
  const std::filesystem::path file = given["plan"].as<std::string>();
  const Plan plan = read_plan(file);
  if (plan.cut_nodes.size() != plan.partition.cuts.size())
    throw ConfigError(
        {file.string()},
        "does not name the graph nodes of its cuts: it was made from a table of layers, "
        "which cannot be executed");
  model = given.count("model") ? std::filesystem::path(given["model"].as<std::string>())
                               : model_of(plan, file);
  rank.recompute = plan.recompute;
  rank.autocast_bf16 = plan.training.precision == Precision::Bf16Amp;
  if (plan.training.precision == Precision::Fp16Amp)
    throw ConfigError({file.string()},
                      "fp16_amp needs a loss scale, which is not there; use bf16_amp");
  rank.optimizer.kind = plan.training.optimizer;
  std::vector<NodeId> cuts;
  for (const std::int32_t n : plan.cut_nodes) cuts.emplace_back(n);
  return make_pipeline(graph_with_digest(model, plan, file), cuts, plan.schedule, plan.placement);
}

Pipeline pipeline_of_parts(const options::variables_map& given, std::filesystem::path& model) {
  if (!given.count("model") || !given.count("schedule"))
    throw ConfigError({"pfeife-run"},
                      std::string("needs a plan, or --model and --schedule\n") + kUsage);
  model = given["model"].as<std::string>();
  const std::string csv = given["schedule"].as<std::string>();
  const Schedule schedule = read_schedule(read_file(csv), csv);
  const auto placement = placement_of(schedule);
  if (!placement) throw ConfigError({csv}, "a stage is missing, or on two ranks");
  std::optional<std::int64_t> size;
  if (given.count("microbatch-size")) size = given["microbatch-size"].as<std::int64_t>();
  return make_pipeline(read_pt2(model, size), node_list(given["cuts"].as<std::string>()), schedule,
                       *placement);
}

Setting read_setting(int argc, char** argv) {
  options::options_description known;
  known.add_options()("verb", options::value<std::string>())("plan", options::value<std::string>())(
      "model", options::value<std::string>())("schedule", options::value<std::string>())(
      "cuts", options::value<std::string>()->default_value(""))("microbatch-size",
                                                                options::value<std::int64_t>())(
      "threads", "ranks as threads of this process instead of processes")(
      "kernel-threads", options::value<int>()->default_value(1))("fp64", "float32 becomes float64")(
      "tolerance", options::value<double>())("steps", options::value<int>()->default_value(10))(
      "seed", options::value<std::uint64_t>()->default_value(0))(
      "out", options::value<std::string>()->default_value(""))("help", "");
  options::positional_options_description places;
  places.add("verb", 1).add("plan", 1);
  options::variables_map given;
  try {
    options::store(options::command_line_parser(argc, argv).options(known).positional(places).run(),
                   given);
  } catch (const options::error& error) {
    throw ConfigError({"pfeife-run"}, std::string(error.what()) + "\n" + kUsage);
  }
  const std::string verb = given.count("verb") ? given["verb"].as<std::string>() : "";
  if (given.count("help") || (verb != "check" && verb != "train"))
    throw ConfigError({"pfeife-run"}, "unknown verb '" + verb + "'\n" + kUsage);
  if (given["steps"].as<int>() < 1 || given["kernel-threads"].as<int>() < 1)
    throw ConfigError({"pfeife-run"}, "--steps and --kernel-threads must be at least 1");
  RankOptions rank;
  rank.placing.double_precision = given.count("fp64") > 0;
  rank.seed = given["seed"].as<std::uint64_t>();
  std::filesystem::path model;
  Pipeline pipeline =
      given.count("plan") ? pipeline_of_plan(given, model, rank) : pipeline_of_parts(given, model);
  // float32: a gradient adds about sqrt(10^4) roundings of 6e-8 in another order.
  double tolerance = rank.placing.double_precision ? 1e-12 : 1e-4;
  if (rank.autocast_bf16) tolerance = 5e-2;
  if (given.count("tolerance")) tolerance = given["tolerance"].as<double>();
  return {verb,
          std::move(pipeline),
          WeightSource(model, rank.seed),
          rank,
          tolerance,
          given["steps"].as<int>(),
          given["out"].as<std::string>(),
          given.count("threads") > 0,
          given["kernel-threads"].as<int>()};
}

/// What one rank does; the text is rank 0's answer. Throws on failure.
std::string run_rank(const Setting& setting, RankId rank, Transport& transport, RandomTurns& turns,
                     const std::function<void(const Cell&)>& entering, bool& right) {
  if (setting.verb == "check") {
    const CheckReport report = check_pipeline(setting.pipeline, rank, setting.source, setting.rank,
                                              setting.tolerance, transport);
    right = report.right();
    return rank == RankId{0} ? to_string(report, setting.tolerance) : "";
  }
  const Measurement measured = measure_steps(setting.pipeline, rank, setting.source, setting.rank,
                                             setting.steps, turns, entering, transport);
  if (rank != RankId{0}) return "";
  if (!setting.out.empty()) write_file(setting.out, measurement_text(measured));
  return to_string(measured);
}

int run_as_rank(const Setting& setting, const RankEnvironment& environment) {
  Status status(environment);
  try {
    if (environment.ranks != setting.pipeline.ranks())
      throw ConfigError({"environment"},
                        stream_all("WORLD_SIZE=", environment.ranks, ", the plan has ",
                                   setting.pipeline.ranks(), " ranks"));
    const auto transport = join_by_sockets(environment.folder, environment.rank, environment.ranks);
    RandomTurns turns;
    bool right = true;
    try {
      std::cout << run_rank(
                       setting, environment.rank, *transport, turns,
                       [&](const Cell& cell) { status.entering(to_string(cell)); }, right)
                << std::flush;
    } catch (const std::exception& error) {
      const std::string text = error.what();
      const std::string reason = text.starts_with("rank ")
                                     ? text
                                     : "rank " + to_string(environment.rank) + " failed: " + text;
      transport->stop(reason);
      throw RuntimeFault(reason);
    }
    if (!right) status.failed("the pipeline differs from the unsplit model");
    return right ? 0 : 4;
  } catch (const std::exception& error) {
    status.failed(error.what());
    return 4;
  }
}

int run_as_threads(const Setting& setting) {
  RandomTurns turns;
  bool right = true;
  std::string answer;
  run_ranks(setting.pipeline.ranks(), [&](RankId rank, Transport& transport) {
    bool own_right = true;
    const std::string text = run_rank(setting, rank, transport, turns, {}, own_right);
    if (rank == RankId{0}) answer = text, right = own_right;
  });
  std::cout << answer;
  return right ? 0 : 4;
}

int run(int argc, char** argv) {
  const Setting setting = read_setting(argc, argv);
  at::set_num_threads(setting.kernel_threads);
  if (const auto environment = rank_environment()) return run_as_rank(setting, *environment);
  if (setting.threads || setting.pipeline.ranks() == 1) return run_as_threads(setting);
  const std::string failure =
      run_local_ranks(setting.pipeline.ranks(), std::vector<std::string>(argv, argv + argc));
  if (failure.empty()) return 0;
  throw RuntimeFault(failure);
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  try {
    return pfeife::run(argc, argv);
  } catch (const pfeife::ConfigError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "pfeife-run: " << error.what() << "\n";
    return 4;
  }
}
