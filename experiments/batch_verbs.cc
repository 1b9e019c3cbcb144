#include "experiments/batch_verbs.h"

#include <boost/program_options.hpp>
#include <filesystem>
#include <iostream>
#include <thread>

#include "experiments/sweep/batches.h"
#include "experiments/sweep/failures.h"
#include "experiments/sweep/packing.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/command_line.h"
#include "planner/io/files/quantity.h"
#include "planner/io/files/terminal.h"

namespace pfeife {
namespace {

namespace po = boost::program_options;

/// Options that all verbs of this file take.
void add_common(po::options_description& options) {
  options.add_options()("set", po::value<std::vector<std::string>>()->value_name("KEY.PATH=VALUE"),
                        "replace a value of the config; may be repeated")(
      "jobs", po::value<int>()->value_name("N"), "threads (default: the number of cores)")(
      "help", "print this, then stop");
}

std::vector<std::string> settings_of(const po::variables_map& found) {
  return found.contains("set") ? found["set"].as<std::vector<std::string>>()
                               : std::vector<std::string>{};
}

std::size_t threads_of(const po::variables_map& found) {
  return found.contains("jobs") ? read_jobs(found["jobs"].as<int>())
                                : std::max(1U, std::thread::hardware_concurrency());
}

/// An option's whole number of at least 1.
std::optional<std::int64_t> count_of(const po::variables_map& found, const std::string& option) {
  if (!found.contains(option)) return std::nullopt;
  const auto count = found[option].as<std::int64_t>();
  if (count < 1 || count > 1'000'000'000)
    throw ConfigError({"--" + option + " " + std::to_string(count), 0, 0},
                      "expected a whole number from 1 to 1000000000");
  return count;
}

/// Seconds of an option's time.
double duration(const po::variables_map& found, const std::string& option) {
  const std::string text = found[option].as<std::string>();
  const auto time = parse_duration(text);
  if (!time.value) throw ConfigError({"--" + option + " " + text, 0, 0}, time.error);
  return seconds(*time.value);
}

double positive(const po::variables_map& found, const std::string& option) {
  const auto number = found[option].as<double>();
  if (!(number > 0) || !(number <= 1e12))
    throw ConfigError({"--" + option, 0, 0}, "expected a number above 0");
  return number;
}

}  // namespace

int pack_batch(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  options.add_options()("limit", po::value<std::int64_t>()->value_name("TOKENS"),
                        "that a microbatch takes at most")(
      "microbatches", po::value<std::int64_t>()->value_name("N"),
      "of a step (default: as many as first-fit makes)")(
      "out,o", po::value<std::string>()->value_name("FILE.csv"),
      "write the planned grouping there; training.lengths takes the file");
  add_common(options);
  const auto found = read_arguments(arguments, options, "config", "pfeife-exp pack");
  const std::string usage = "Usage: pfeife-exp pack CONFIG.yaml --limit TOKENS [OPTION...]";
  if (found.contains("help")) {
    std::cout << usage
              << "\n\nPlans which documents of a step share a microbatch. training.lengths of the "
                 "config has the documents, in any\ngrouping. Says what a step takes for the "
                 "planned grouping and for first-fit, as estimated.\n\n"
              << options;
    return 0;
  }
  if (!found.contains("config") || !found.contains("limit"))
    throw ConfigError({}, "which config, and how many tokens a microbatch? " + usage);
  PackingQuestion question{.config = found["config"].as<std::string>(),
                           .settings = settings_of(found),
                           .limit = *count_of(found, "limit")};
  if (const auto count = count_of(found, "microbatches"))
    question.microbatches = static_cast<std::size_t>(*count);
  const Packing packing = pack_documents(question, threads_of(found));
  std::cout << packing_text(packing);
  if (found.contains("out")) {
    const std::filesystem::path out = found["out"].as<std::string>();
    write_file(out, lengths_csv(packing.steps.back().grouping));
    std::cout << out.string() << "\n";
  }
  return 0;
}

int plan_for_batches(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  options.add_options()("lengths", po::value<std::string>()->value_name("FILE.csv"),
                        "the batches: batch, microbatch, length, a row a document")(
      "by", po::value<std::string>()->value_name("mean|p95")->default_value("mean"),
      "which plan is best")("order", "search the order of microbatches of each batch, too")(
      "out,o", po::value<std::string>()->value_name("FOLDER"), "write the best plan there");
  add_common(options);
  const auto found = read_arguments(arguments, options, "config", "pfeife-exp batches");
  const std::string usage = "Usage: pfeife-exp batches CONFIG.yaml --lengths FILE.csv [OPTION...]";
  if (found.contains("help")) {
    std::cout << usage
              << "\n\nFinds the plan that is best over many batches of documents, and says what "
                 "planning each batch anew would be\nworth. Every batch is planned once.\n\n"
              << options;
    return 0;
  }
  if (!found.contains("config") || !found.contains("lengths"))
    throw ConfigError({}, "which config, and which batches? " + usage);
  const std::string by = found["by"].as<std::string>();
  if (by != "mean" && by != "p95") throw ConfigError({"--by " + by, 0, 0}, "expected mean or p95");
  BatchesQuestion question{.config = found["config"].as<std::string>(),
                           .settings = settings_of(found),
                           .lengths = found["lengths"].as<std::string>(),
                           .order = found.contains("order"),
                           .by_p95 = by == "p95"};
  if (found.contains("out")) question.out = found["out"].as<std::string>();
  std::cout << batches_text(plan_batches(question, threads_of(found), [](std::size_t batch) {
    if (output_is_terminal()) std::cerr << "batch " << batch << " planned\n";
  }));
  return 0;
}

int plan_failures(const std::vector<std::string>& arguments) {
  po::options_description options("Options");
  options.add_options()("save", po::value<std::string>()->value_name("TIME"),
                        "to write a checkpoint, \"30 s\"; nothing is computed meanwhile")(
      "restart", po::value<std::string>()->value_name("TIME"),
      "from a failure until steps go on from the last checkpoint, \"600 s\"")(
      "repair", po::value<std::string>()->value_name("TIME"),
      "until a lost device, or another in its place, is there, \"14400 s\"")(
      "stops", po::value<double>()->value_name("N")->default_value(419),
      "unplanned stops of a known run (default: of Llama 3)")(
      "days", po::value<double>()->value_name("N")->default_value(54), "which it took")(
      "on", po::value<double>()->value_name("N")->default_value(16'384), "devices that it ran on")(
      "fleet", po::value<std::int64_t>()->value_name("N"),
      "devices of the whole run, in copies of what the config plans for (default: the config's)")(
      "out,o", po::value<std::string>()->value_name("FOLDER"),
      "write both plans there, devices=D and devices=D-1");
  add_common(options);
  const auto found = read_arguments(arguments, options, "config", "pfeife-exp failures");
  const std::string usage =
      "Usage: pfeife-exp failures CONFIG.yaml --save TIME --restart TIME --repair TIME [OPTION...]";
  if (found.contains("help")) {
    std::cout << usage
              << "\n\nPlans for all devices and for one less, and says what failures leave of the "
                 "speed with and without that plan.\n\n"
              << options;
    return 0;
  }
  if (!found.contains("config") || !found.contains("save") || !found.contains("restart") ||
      !found.contains("repair"))
    throw ConfigError({}, "which config, and how long do save, restart and repair take? " + usage);
  FailuresQuestion question{
      .config = found["config"].as<std::string>(),
      .settings = settings_of(found),
      .rate = {positive(found, "stops"), positive(found, "days"), positive(found, "on")},
      .recovery = {duration(found, "save"), duration(found, "restart"), duration(found, "repair")}};
  if (const auto count = count_of(found, "fleet"))
    question.fleet = static_cast<std::size_t>(*count);
  if (found.contains("out")) question.out = found["out"].as<std::string>();
  std::cout << failures_text(plan_for_failures(question, threads_of(found)));
  return 0;
}

}  // namespace pfeife
