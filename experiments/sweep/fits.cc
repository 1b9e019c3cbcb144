#include "experiments/sweep/fits.h"

#include <algorithm>

#include "experiments/pfeife.h"
#include "planner/io/cluster/mesh_file.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/io/model/measured_layers_file.h"
#include "planner/ir/request/request.h"

namespace pfeife {
namespace {

/// Tokens of a step where nobody says how many: Llama 3 began with 4 Mi (arXiv 2407.21783, sec.
/// 3.4.1).
constexpr std::int64_t kTokens = std::int64_t{4} << 20;
constexpr std::size_t kEffort = 50;  ///< plan.iterations of a row

std::string cluster_name(const std::filesystem::path& file) { return file.stem().string(); }

std::optional<double> price_of(const FitsQuestion& question, std::size_t cluster) {
  if (question.prices.empty()) return std::nullopt;
  return question.prices[std::min(cluster, question.prices.size() - 1)];
}

MeshQuestion mesh_question(const FitsQuestion& asked) {
  MeshQuestion question = usual_mesh();
  question.allocator = asked.allocator;
  MeshRun& run = question.run;
  run.optimizer = asked.optimizer;
  const MeshPrecision precision = mesh_precision_named(asked.precision);
  run.type = precision.type, run.format = precision.format;
  run.architecture = read_architecture(asked.model);
  if (asked.sequence) run.architecture.sequence = *asked.sequence;
  if (run.architecture.sequence == 0)
    throw ConfigError({asked.model.string()},
                      "the model leaves open how long its sequences are; add --sequence 8192");
  run.global_batch =
      asked.batch.value_or(std::max<std::int64_t>(1, kTokens / run.architecture.sequence));
  return question;
}

FitsAnswer fits_of_meshes(const FitsQuestion& asked, std::size_t threads,
                          const std::function<void(const FitRow&)>& done) {
  MeshQuestion question = mesh_question(asked);
  FitsAnswer answer{.rows = {}, .unit = "tokens", .what = {}, .question = {}};
  answer.question = question;
  answer.what = question.run.architecture.name + ": " + std::to_string(question.run.global_batch) +
                " sequences of " + std::to_string(question.run.architecture.sequence) +
                " tokens a step; " + precision_of(question.run) + ", optimizer " +
                to_string(asked.optimizer) + "; estimated, of the fastest mesh that fits";
  for (std::size_t c = 0; c < asked.clusters.size(); ++c) {
    Network network = load_hosts(asked.clusters[c]);
    if (asked.times) network.measured_layers = read_measured_layers(*asked.times);
    std::vector<std::int64_t> devices = asked.devices;
    if (devices.empty()) devices = {network.inner().devices};
    for (const std::int64_t count : devices) {
      question.devices = count;
      answer.rows.push_back(
          fit_of_mesh(cluster_name(asked.clusters[c]), question, network, threads));
      answer.rows.back().price = price_of(asked, c);
      if (done) done(answer.rows.back());
    }
  }
  return answer;
}

/// One pipeline of the model on so many devices of the cluster.
FitRow fit_of_pipeline(const FitsQuestion& asked, const Model& model, const Cluster& cluster,
                       const std::string& name, std::int64_t devices, std::int64_t microbatches,
                       std::size_t threads) try {
  FitRow row{.cluster = name, .devices = devices};
  Request request{.devices = static_cast<std::size_t>(devices),
                  .microbatches = static_cast<std::size_t>(microbatches),
                  .model = {},
                  .training = {.precision = Precision::Bf16Amp, .optimizer = asked.optimizer},
                  .plan = {.iterations = kEffort, .allocator = asked.allocator},
                  .baselines = {},
                  .select_by = {}};
  const Planned planned = plan(model, cluster, request, {.threads = threads, .progress = {}});
  const Contestant& best = planned.contestants.front();
  row.lack = best.possible() && !best.fits() ? "no plan fits" : best.reason;
  if (!row.lack.empty()) return row;
  row.step = step_time(best.predicted());
  row.rate =
      static_cast<double>(microbatches * planned.layers->microbatch_size) / seconds(row.step);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const Need& need = best.need;
  for (std::size_t r = 0; r < need.held().size(); ++r) {
    const std::int64_t left = need.limit[r].value - need.held()[r].value;
    if (left >= least) continue;
    least = left;
    row.allocated = need.allocated[r], row.reserved = need.held()[r], row.limit = need.limit[r];
  }
  row.plan = name_of(best.plan);
  if (asked.model.extension() == ".pt2")  // the times of a layer table are given
    row.error = error_of_pipelines(request.training.precision,
                                   cluster.kind(best.plan.placement.device_of_rank.front()).type);
  return row;
} catch (const ConfigError& error) {
  return {.cluster = name, .devices = devices, .lack = error.what()};
}

FitsAnswer fits_of_pipelines(const FitsQuestion& asked, std::size_t threads,
                             const std::function<void(const FitRow&)>& done) {
  if (asked.precision != "bf16")
    throw ConfigError({}, "--precision " + asked.precision +
                              " is of architectures and config.json files; archives and layer "
                              "tables are planned in bf16: leave it out");
  if (asked.times)
    throw ConfigError({asked.times->string()},
                      "--times is of architectures and config.json files; archives have a profile, "
                      "and layer tables have times: leave it out");
  const Model model = load_model(asked.model);
  std::vector<Cluster> clusters;
  std::int64_t most = 1;
  for (const auto& file : asked.clusters) {
    clusters.push_back(load_cluster(file));
    const auto all = static_cast<std::int64_t>(clusters.back().devices());
    for (const std::int64_t count : asked.devices) most = std::max(most, std::min(count, all));
    if (asked.devices.empty()) most = std::max(most, all);
  }
  const std::int64_t microbatches = asked.batch.value_or(4 * most);
  FitsAnswer answer{.rows = {}, .unit = "samples", .what = {}, .question = {}};
  answer.what = asked.model.stem().string() + ": " + std::to_string(microbatches) +
                " microbatches a step; bf16_amp, optimizer " + to_string(asked.optimizer) +
                "; one pipeline, simulated";
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    std::vector<std::int64_t> devices = asked.devices;
    if (devices.empty()) devices = {static_cast<std::int64_t>(clusters[c].devices())};
    for (const std::int64_t count : devices) {
      answer.rows.push_back(fit_of_pipeline(asked, model, clusters[c],
                                            cluster_name(asked.clusters[c]), count, microbatches,
                                            threads));
      answer.rows.back().price = price_of(asked, c);
      if (done) done(answer.rows.back());
    }
  }
  return answer;
}

}  // namespace

FitsAnswer fits(const FitsQuestion& question, std::size_t threads,
                const std::function<void(const FitRow&)>& done) {
  return is_architecture(question.model) ? fits_of_meshes(question, threads, done)
                                         : fits_of_pipelines(question, threads, done);
}

}  // namespace pfeife
