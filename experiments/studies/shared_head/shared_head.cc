// The study of pipelines whose ranks share the output layer: prints the tables of its README.
//   study_shared_head SOURCE_FOLDER
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <tuple>

#include "experiments/studies/shared_head/automatic.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/io/files/csv_table.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/run_main.h"
#include "planner/ir/result/head_place.h"

namespace pfeife::shared_head {
namespace {

constexpr std::array<const char*, 5> kMethods{"baseline", "redistributed", "vocab_1", "vocab_2",
                                              "interlaced"};

/// The runs of each sequence and vocabulary.
using Groups = std::map<std::pair<std::size_t, std::size_t>, std::vector<const PublishedStages*>>;
Groups groups_of(const std::vector<PublishedStages>& runs) {
  Groups groups;
  for (const PublishedStages& run : runs) groups[{run.sequence, run.vocabulary}].push_back(&run);
  return groups;
}

/// A line for each sequence and vocabulary, a cell for each method: measured step, and the error of
/// the predicted one.
void print_errors(const Groups& groups,
                  const std::map<const PublishedStages*, double>& predicted_ms) {
  std::map<std::string, std::pair<double, double>> errors;  // [method] sum, largest
  std::printf("| sequence | words |");
  for (const char* method : kMethods) std::printf(" %s |", method);
  std::printf("\n|---|---|---|---|---|---|---|\n");
  for (const auto& [key, group] : groups) {
    std::printf("| %zu | %zu |", key.first, key.second);
    for (const char* method : kMethods)
      for (const PublishedStages* run : group) {
        if (run->method != method) continue;
        const double error = 100 * (predicted_ms.at(run) / run->step_ms - 1);
        std::printf(" %.0f, %+.2f %% |", run->step_ms, error);
        auto& [sum, largest] = errors[run->method];
        sum += std::abs(error), largest = std::max(largest, std::abs(error));
      }
    std::printf("\n");
  }
  std::printf("| mean, largest error | |");
  for (const char* method : kMethods)
    std::printf(" %.2f, %.2f %% |", errors[method].first / static_cast<double>(groups.size()),
                errors[method].second);
  std::printf("\n\n");
}

/// The methods from the fastest on, by number as kMethods has them, of steps `ms`.
std::string order(const std::vector<const PublishedStages*>& group,
                  const std::function<double(const PublishedStages*)>& ms) {
  std::vector<const PublishedStages*> sorted = group;
  std::ranges::stable_sort(sorted, {}, ms);
  std::string text;
  for (const PublishedStages* run : sorted) text += (text.empty() ? "" : ", ") + run->method;
  return text;
}

void print_orders(const Groups& groups,
                  const std::map<const PublishedStages*, double>& predicted_ms) {
  std::printf("| sequence | words | measured, fastest first | from shapes |\n|---|---|---|---|\n");
  for (const auto& [key, group] : groups)
    std::printf(
        "| %zu | %zu | %s | %s |\n", key.first, key.second,
        order(group, [](const PublishedStages* run) { return run->step_ms; }).c_str(),
        order(group, [&](const PublishedStages* run) { return predicted_ms.at(run); }).c_str());
}

/// The fullest rank in GiB: measured (reserved, of another run of the same settings), and
/// estimated.
void print_memory(const Groups& groups, const CsvTable& measured,
                  const std::map<const PublishedStages*, Bytes>& peaks) {
  std::map<std::tuple<std::size_t, std::size_t, std::string>, double> reserved;
  for (std::size_t r = 0; r < measured.rows(); ++r) {
    const auto number = [&](const std::string& column) {
      return number_of(measured.at(r, column), column);
    };
    reserved[{static_cast<std::size_t>(number("sequence")),
              static_cast<std::size_t>(number("vocabulary")), measured.at(r, "method").text}] =
        number("peak_reserved_gib");
  }
  std::printf("\n| sequence | words |");
  for (const char* method : kMethods) std::printf(" %s |", method);
  std::printf("\n|---|---|---|---|---|---|---|\n");
  for (const auto& [key, group] : groups) {
    std::printf("| %zu | %zu |", key.first, key.second);
    for (const char* method : kMethods)
      for (const PublishedStages* run : group)
        if (run->method == method)
          std::printf(" %.1f, %.1f |", reserved.at({key.first, key.second, method}),
                      static_cast<double>(peaks.at(run).value) / static_cast<double>(kGiB.value));
    std::printf("\n");
  }
}

/// The fastest measured run that shares the output layer and the fastest that does not, in ms,
/// beside the best plans of either kind.
void print_automatic(const Groups& groups, const Network& network) {
  std::printf(
      "\n| sequence | words | all ranks, measured | last rank, measured | all ranks, estimated | "
      "last rank, estimated | `auto` |\n|---|---|---|---|---|---|---|\n");
  for (const auto& [key, group] : groups) {
    double shared = 0, last = 0;
    for (const PublishedStages* run : group) {
      double& least = run->family() == "1f1b" ? last : shared;
      if (least == 0 || run->step_ms < least) least = run->step_ms;
    }
    const Planned planned = planned_automatically(*group.front(), network);
    std::map<std::string, double> estimates;
    for (const Alternative& alternative : planned.alternatives)
      estimates[alternative.choice] = milliseconds(alternative.estimate.value());
    std::printf("| %zu | %zu | %.0f | %.0f | %.0f | %.0f | %s |\n", key.first, key.second, shared,
                last, estimates.at(kHeadOnAllRanks), estimates.at(kHeadOnLastRank),
                planned.best().plan.spec.family.c_str());
  }
}

}  // namespace
}  // namespace pfeife::shared_head

int main(int count, char** arguments) {
  using namespace pfeife;
  using namespace pfeife::shared_head;
  return run_main("study_shared_head", [&] {
    if (count != 2) throw ConfigError({}, "the folder of the sources is expected");
    const std::filesystem::path source = arguments[1];
    const std::vector<PublishedStages> runs =
        read_runs(source / "experiments/studies/shared_head/data/vocabulary_parallelism.csv");
    const Network network = read_network(source / "configs/clusters/a100_sxm4_80gb_hosts.yaml");
    std::map<const PublishedStages*, double> replayed, shaped;
    std::map<const PublishedStages*, Bytes> peaks;
    for (const PublishedStages& run : runs) {
      replayed[&run] = milliseconds(replay(run).step);
      const MeshPrice price = from_shapes(run, network);
      shaped[&run] = milliseconds(price.plan.estimate);
      peaks[&run] = *std::ranges::max_element(price.plan.peak_memory);
    }
    const Groups groups = groups_of(runs);
    print_errors(groups, replayed);
    print_errors(groups, shaped);
    print_orders(groups, shaped);
    print_automatic(groups, network);
    print_memory(groups,
                 CsvTable::parse(read_text_file(
                     source / "experiments/studies/shared_head/data/peak_memory.csv")),
                 peaks);
    return 0;
  });
}
