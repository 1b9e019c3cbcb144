#include <iostream>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/model/profile_file.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/printable.h"
#include "runtime/device/device.h"
#include "runtime/device/machine.h"
#include "runtime/launch/rank_environment.h"
#include "runtime/profile/cluster_text.h"
#include "runtime/profile/profiler.h"
#include "runtime/verbs.h"

namespace pfeife {
namespace {

template <class T>
T one_of(const char* option, const std::string& word, const std::vector<T>& allowed) {
  std::string list;
  for (const T& choice : allowed) {
    if (to_string(choice) == word) return choice;
    const bool last = &choice == &allowed.back();
    list += (list.empty() ? "" : last ? " or " : ", ") + to_string(choice);
  }
  throw ConfigError({option}, "unknown value '" + word + "'; use " + list);
}

/// The name that cluster files have for the device.
std::string device_kind_of(const ProfileRequest& request, at::Device device) {
  if (!request.device_kind.empty()) return request.device_kind;
  if (device.is_cpu()) return "x86_core";
  throw ConfigError({"--device-kind"}, "is missing: what cluster files call " + card_name(device) +
                                           ", such as h200_sxm");
}

/// This process was started to be a rank.
bool is_rank() { return rank_environment().has_value(); }

ProfileOptions options_of(const ProfileRequest& request, const Graph& graph) {
  ProfileOptions options;
  options.placing.device = open_device(request.device);
  options.training.precision =
      one_of<Precision>("--precision", request.precision,
                        {Precision::Fp32, Precision::Tf32, Precision::Bf16Amp, Precision::Fp16Amp});
  allow_tf32(options.training.precision == Precision::Tf32);
  options.training.optimizer = one_of("--optimizer", request.optimizer, runnable_optimizers());
  options.training.microbatch_size = graph.microbatch_size;
  options.device_kind = device_kind_of(request, options.placing.device);
  options.repetitions = request.repetitions;
  options.microbatches = static_cast<std::size_t>(request.microbatches);
  options.seed = request.seed;
  return options;
}

}  // namespace

int profile_verb(const ProfileRequest& request) {
  if (request.model.empty()) throw ConfigError({"pfeife-run profile"}, "needs a model: M.pt2");
  const Graph graph = read_pt2(request.model, request.microbatch_size);
  const ProfileOptions common = options_of(request, graph);
  const WeightSource source(request.model, request.seed);
  require_possible(common);
  const auto ranks = static_cast<std::size_t>(request.beside) + 1;
  LaunchOptions launch = request.launch;
  launch.device = common.placing.device;
  if (!is_rank()) std::cerr << busy_warning();
  return start_ranks(ranks, launch, [&](const RankSeat& seat) {
    ProfileOptions options = common;
    if (seat.rank == RankId{0}) {
      options.progress = [](const std::string& what) { std::cerr << printable_line(what) << "\n"; };
      options.samples = request.samples;
    }
    const ProfileReport report = profile_model(graph, source, options, &seat.transport);
    if (seat.rank != RankId{0}) return RankAnswer{};
    std::string text = to_string(report, graph);
    if (!request.out.empty()) {
      write_file(request.out, profile_text(report.profile, graph));
      text += "written to " + request.out + "\n";
    }
    return RankAnswer{text, ""};
  });
}

int links_verb(const LinksRequest& request) {
  if (request.devices < 2)
    throw ConfigError({"--devices"}, "a link needs two devices: give at least 2");
  if (!is_rank()) std::cerr << busy_warning();
  return start_ranks(2, request.launch, [&](const RankSeat& seat) {
    std::function<void(const std::string&)> progress;
    if (seat.rank == RankId{0})
      progress = [](const std::string& what) { std::cerr << printable_line(what) << "\n"; };
    const LinkMeasurement link = measure_link(seat.transport, progress);
    DeviceKind kind = measure_device(request.device_kind, at::kCPU, progress);
    if (seat.rank != RankId{0}) return RankAnswer{};
    kind.memory = Bytes{machine_memory().value / request.devices};
    const std::string name =
        request.out.empty() ? "this_machine" : std::filesystem::path(request.out).stem().string();
    const std::string text = cluster_text(name, kind, static_cast<std::size_t>(request.devices),
                                          link, where_and_when() + " each of two processes");
    parse_cluster(text, name);  // what cannot be read is not written
    if (request.out.empty()) return RankAnswer{text, ""};
    write_file(request.out, text);
    return RankAnswer{"written to " + request.out + "\n", ""};
  });
}

}  // namespace pfeife
