#include "experiments/batch_verbs.h"

#include <boost/program_options.hpp>
#include <filesystem>
#include <iostream>
#include <thread>

#include "experiments/sweep/packing.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/command_line.h"

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

}  // namespace pfeife
