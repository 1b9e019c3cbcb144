// What tests run on ranks that are processes: those are copies of the program that starts them, so
// it is one of its own. It starts and ends ranks just as pfeife-run does.
//   rank_program grid DIR     a sample of the grid, each point compared with the unsplit model; the
//                             ranks of a point meet in DIR
//   rank_program FAULT DIR    training that saves into DIR at every step, until rank 1 meets the
//                             fault in a forward: throws, out_of_memory, stalls, exits, or is
//                             unreachable, which rank 2 notices before rank 1 is killed
#include <ATen/Parallel.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <thread>

#include "runtime/execute/check.h"
#include "runtime/launch/join.h"
#include "runtime/launch/start_ranks.h"
#include "runtime/train/training.h"
#include "runtime/transport/reason.h"
#include "tests/runtime/pipelines.h"
#include "tests/runtime/test_meetings.h"

namespace pfeife {
namespace {

using namespace testing;

/// Every third point of each family with several ranks; which, differs from model to model.
std::vector<ScheduleSpec> sample(std::size_t offset) {
  std::map<std::string, std::vector<ScheduleSpec>> of_family;
  for (const ScheduleSpec& spec : accepted_points({2, 3, 4}, {1, 2, 3, 8}, {1, 2, 3}))
    of_family[spec.family].push_back(spec);
  std::vector<ScheduleSpec> chosen;
  for (const auto& [family, specs] : of_family)
    for (std::size_t i = offset % std::min<std::size_t>(3, specs.size()); i < specs.size(); i += 3)
      chosen.push_back(specs[i]);
  return chosen;
}

/// The points of a model; each has a meeting of its own among its ranks. Every other uses TCP.
std::string check_points(const Model& model, const std::vector<ScheduleSpec>& specs,
                         const std::filesystem::path& folder, RankId rank) {
  const RankOptions options{.placing = {.double_precision = true}, .seed = 7};
  std::string wrong;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::filesystem::path place = folder / std::to_string(i);
    std::filesystem::create_directories(place);
    if (rank.index() >= specs[i].ranks) continue;
    MeetingInFolder meeting(place);
    const auto transport = join_by_sockets(meeting, rank, specs[i].ranks,
                                           {.tcp = i % 2 == 1, .secret = "of the test"});
    const CheckReport report =
        check_pipeline(model.pipeline(specs[i]), rank, model.source, options, 1e-12, *transport);
    if (!report.right()) wrong += name_of(specs[i]) + ": " + to_string(report);
  }
  return wrong;
}

int grid(const std::filesystem::path& folder, const LaunchOptions& launch) {
  return start_ranks(4, launch, [&](const RankSeat& seat) {
    RankAnswer answer;
    std::size_t points = 0;
    for (std::size_t m = 0; m < tiny_models().size(); ++m) {
      const std::vector<ScheduleSpec> specs = sample(m);
      std::set<std::string> seen;
      for (const ScheduleSpec& spec : specs) seen.insert(spec.family);
      if (seen.size() != families().size()) answer.wrong += "not every family; ";
      const std::string wrong =
          check_points(Model(tiny_models()[m]), specs, folder / tiny_models()[m], seat.rank);
      if (!wrong.empty()) answer.wrong += tiny_models()[m] + " " + wrong;
      points += specs.size();
    }
    answer.text = stream_all(points, " points\n");
    return answer;
  });
}

/// Takes what the system gives until nothing is left, and keeps it.
void take_all_memory() {
  static std::vector<at::Tensor> taken;
  rlimit limit{};
  std::ifstream("/proc/self/statm") >> limit.rlim_cur;  // pages
  limit.rlim_cur = limit.rlim_max =
      limit.rlim_cur * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{256} << 20);
  setrlimit(RLIMIT_AS, &limit);
  for (;;) taken.push_back(at::ones({16 << 20}, at::kByte));
}

const std::map<std::string, std::function<void()>>& faults() {
  static const std::map<std::string, std::function<void()>> kFaults{
      {"throws", [] { throw std::runtime_error("told to fail"); }},
      {"out_of_memory", take_all_memory},
      {"stalls", [] { raise(SIGSTOP); }},
      {"exits", [] { _exit(0); }},
      {"unreachable", [] {
         std::this_thread::sleep_for(std::chrono::milliseconds(1500));
         raise(SIGKILL);
       }}};
  return kFaults;
}

int train_until(const std::string& fault, const std::filesystem::path& save, LaunchOptions launch) {
  const Model model("tiny_gpt");
  const Pipeline pipeline = model.pipeline({"1f1b", 3, 4, 1, {}, {}});
  launch.clean_up = [&] { remove_partial_checkpoints(save); };
  return start_ranks(3, launch, [&](const RankSeat& seat) {
    int forwards = 0;
    RankSeat meeting_a_fault{
        seat.rank, seat.transport, seat.turns, [&](const Cell& cell) {
          if (seat.entering) seat.entering(cell);
          if (fault == "unreachable" && seat.rank == RankId{2} && to_string(cell) == "2F1" &&
              ++forwards == 20) {
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            throw RankFault(RankId{1}, "rank 2 cannot connect to rank 1", true);
          }
          if (seat.rank == RankId{1} && to_string(cell) == "1F2" && ++forwards == 20)
            faults().at(fault)();
        }};
    train(pipeline, model.source, {.seed = 7}, {.steps = 1000, .save = save, .save_every = 1},
          meeting_a_fault, {});
    return RankAnswer{};
  });
}

/// Ranks that do nothing, one of which is long in ending.
int end_slowly(const LaunchOptions& launch) {
  const int code = start_ranks(2, launch, [](const RankSeat&) { return RankAnswer{"done\n"}; });
  if (const char* rank = std::getenv("RANK"); rank != nullptr && *rank == '1')
    std::this_thread::sleep_for(kStall + std::chrono::seconds(2));
  return code;
}

int run(const std::vector<std::string>& arguments) {
  const LaunchOptions launch{.arguments = arguments};
  if (arguments.at(1) == "slow_end") return end_slowly(launch);
  if (arguments.at(1) == "grid") return grid(arguments.at(2), launch);
  return train_until(arguments.at(1), arguments.at(2), launch);
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  try {
    return pfeife::run({argv, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 4;
  }
}
