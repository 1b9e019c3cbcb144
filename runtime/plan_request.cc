#include "runtime/plan_request.h"

#include <algorithm>
#include <sstream>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/quantity.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/node_order.h"
#include "runtime/device/device.h"
#include "runtime/device/driver.h"
#include "runtime/launch/rank_environment.h"

namespace pfeife {
namespace {

std::filesystem::path model_of(const Plan& plan, const std::filesystem::path& file) {
  // A model planned from memory was saved beside the plan, and has no file of its name.
  if (plan.files && plan.files->model.format == ModelFormat::Pt2)
    if (const auto saved = file.parent_path() / plan.files->model.file; is_there(saved))
      return saved;
  for (const auto& base :
       {file.parent_path(), std::filesystem::path("."), std::filesystem::path("configs")})
    if (is_there(base / plan.model)) return base / plan.model;
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
  if (plan.node_order.empty()) return graph;
  if (const std::string reason = no_order_because(graph, plan.node_order); !reason.empty())
    throw ConfigError({file.string()}, "node_order cannot be executed: " + reason);
  return reordered(graph, plan.node_order);
}

/// Blocks begin and end where the model may be cut.
void check_blocks(const Pipeline& pipeline, const std::vector<NodeRange>& blocks,
                  const std::filesystem::path& file) {
  if (blocks.empty()) return;
  const std::vector<NodeId> legal = legal_cuts(pipeline.graph, pipeline.effects);
  const auto last = static_cast<std::int32_t>(pipeline.graph.nodes.size()) - 1;
  for (const NodeRange& block : blocks)
    for (const std::int32_t node : {block.before, block.last})
      if (node >= 0 && node != last && !std::ranges::binary_search(legal, NodeId{node}))
        throw ConfigError(
            {file.string()},
            "recompute_blocks: the model must not be cut after node " + std::to_string(node));
}

std::vector<NodeId> node_list(const std::string& text) {
  std::vector<NodeId> nodes;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto number = parse_integer(word);
    if (!number || *number < 0)
      throw ConfigError({"--cuts"}, "'" + word +
                                        "' is no number of a node; give a list of them, as in "
                                        "--cuts \"20 40\"");
    nodes.emplace_back(*number);
  }
  return nodes;
}

/// The card of this rank, which the driver shows as one of several, or as the only one.
at::Device open_card_of(const RankEnvironment& environment) {
  const int cards = Driver().cards();
  if (environment.local >= cards && cards > 1)
    throw ConfigError({"--device"},
                      stream_all("rank ", environment.rank.value, " is number ", environment.local,
                                 " of this host, which shows ", cards, " cards: start at most ",
                                 cards, " ranks a host"));
  return open_device(stream_all("cuda:", cards > 1 ? environment.local : 0));
}

bool wants_a_card_each(const PlanRequest& request) {
  return request.device == "cuda" && (rank_environment() || Driver().cards() > 1);
}

RankOptions rank_options(const PlanRequest& request) {
  RankOptions rank;
  const auto environment = rank_environment();
  if (!wants_a_card_each(request))
    rank.placing.device = open_device(request.device);
  else
    rank.placing.device = environment ? open_card_of(*environment) : at::Device(at::kCUDA);
  rank.placing.double_precision = request.double_precision;
  rank.seed = request.seed;
  return rank;
}

Executable executable_of_plan(const PlanRequest& request, RankOptions rank) {
  const std::filesystem::path file = request.plan;
  const Plan plan = read_plan(file);
  if (plan.cut_nodes.size() != plan.partition.cuts.size())
    throw ConfigError(
        {file.string()},
        "does not name the graph nodes of its cuts: it was made from a table of layers, "
        "which cannot be executed");
  const std::filesystem::path model =
      request.model.empty() ? model_of(plan, file) : std::filesystem::path(request.model);
  allow_tf32(plan.training.precision == Precision::Tf32);
  rank.recompute = plan.activations.stages;
  if (plan.block_nodes.size() != plan.activations.blocks.size())
    throw ConfigError({file.string()}, "does not name the graph nodes of its recomputed blocks");
  rank.blocks = plan.block_nodes;
  rank.recompute_except_last = plan.activations.except_last;
  rank.offload = plan.activations.offload;
  if (plan.training.precision == Precision::Bf16Amp) rank.autocast = at::kBFloat16;
  if (plan.training.precision == Precision::Fp16Amp)
    rank.autocast = at::kHalf, rank.loss_scale = LossScaleOptions{};
  const bool trains = plan.training.mode == Mode::Train;
  if (const auto all = runnable_optimizers();
      trains && std::ranges::find(all, plan.training.optimizer) == all.end())
    throw ConfigError({file.string()},
                      "the plan is for the optimizer " + to_string(plan.training.optimizer) +
                          ", which is priced but not run here; plan with sgd, momentum, adam or "
                          "adamw");
  rank.optimizer.kind = plan.training.optimizer;
  rank.optimizer.clip_norm = plan.clip_norm;
  std::vector<NodeId> cuts;
  for (const std::int32_t n : plan.cut_nodes) cuts.emplace_back(n);
  Pipeline pipeline = make_pipeline(graph_with_digest(model, plan, file), cuts, plan.schedule,
                                    plan.placement, plan.training.mode);
  check_blocks(pipeline, rank.blocks, file);
  return {std::move(pipeline), WeightSource(model, rank.seed), rank, plan};
}

/// Rows without a plan say themselves what they are for.
Mode mode_of(const Schedule& schedule) {
  bool forward = true;
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        forward = forward && (action.op == Op::Forward || is_transfer(action.op));
      });
  return forward ? Mode::Forward : Mode::Train;
}

Executable executable_of_parts(const PlanRequest& request, const RankOptions& rank) {
  if (request.model.empty() || request.schedule.empty())
    throw ConfigError({}, "needs a plan, or --model and --schedule; see --help");
  const Schedule schedule = read_schedule(read_file(request.schedule), request.schedule);
  const auto placement = placement_of(schedule);
  if (!placement) throw ConfigError({request.schedule}, "a stage is missing, or on two ranks");
  allow_tf32(false);
  return {make_pipeline(read_pt2(request.model, request.microbatch_size), node_list(request.cuts),
                        schedule, *placement, mode_of(schedule)),
          WeightSource(request.model, rank.seed), rank, std::nullopt};
}

std::string replica_text(const ReplicaRanks& replicas) {
  if (replicas.count == 1) return "";
  return stream_all(", dp ", replicas.count, replicas.neighbours ? " (dp,pp)" : " (pp,dp)",
                    ", zero ", replicas.zero);
}

/// What must be equal on all ranks, whose files may lie on several hosts.
std::vector<RunFact> facts_of(const Executable& run) {
  const auto digest = [](const std::string& text) { return sha256(text).substr(0, 12); };
  std::string plan = write_schedule(run.pipeline.schedule);
  for (const StageSlice& stage : run.pipeline.split.stages) {
    for (const NodeId node : stage.nodes) plan += stream_all(node.value, " ");
    plan += "\n";
  }
  for (const bool again : run.rank.recompute) plan += again ? '1' : '0';
  for (const NodeRange& block : run.rank.blocks)
    plan += stream_all(" ", block.before, "-", block.last);
  if (run.rank.recompute_except_last) plan += " except last";
  for (const double share : run.rank.offload) plan += stream_all(" ", share);
  const std::string precision = run.plan ? to_string(run.plan->training.precision) : "fp32";
  return {{"the model", digest(run.pipeline.graph.digest), "give all ranks the same model"},
          {"the plan", digest(plan), "give all ranks the same plan, or schedule and cuts"},
          {"",
           stream_all("seed ", run.rank.seed, ", ",
                      run.rank.placing.double_precision ? "fp64" : precision, ", ",
                      to_string(run.rank.optimizer.kind), replica_text(run.pipeline.replicas)),
           "give all ranks the same arguments"}};
}

void check_batch(const Pipeline& pipeline, std::optional<std::int64_t> batch) {
  const auto replicas = static_cast<std::int64_t>(pipeline.replicas.count),
             of_replica =
                 static_cast<std::int64_t>(pipeline.microbatches) * pipeline.graph.microbatch_size;
  if (!batch || *batch == replicas * of_replica) return;
  const std::int64_t nearest = std::max((*batch + of_replica / 2) / of_replica, std::int64_t{1});
  throw ConfigError(
      {"--global-batch"},
      stream_all("is ", *batch, ", the plan takes ", pipeline.microbatches, " microbatches of ",
                 pipeline.graph.microbatch_size, " samples in each of ", replicas, " replicas, ",
                 replicas * of_replica,
                 *batch % of_replica == 0
                     ? stream_all(": use --dp ", nearest)
                     : stream_all(": plan for a batch that ", replicas, " divides, or use --dp ",
                                  nearest, " with a batch of ", nearest * of_replica)));
}

std::string rank_count_reason(const Pipeline& pipeline) {
  if (pipeline.replicas.count == 1) return stream_all("the plan has ", pipeline.ranks(), " ranks");
  return stream_all(pipeline.replicas.count, " replicas of a plan with ", pipeline.ranks(),
                    " ranks are ", pipeline.all_ranks(), " ranks");
}

}  // namespace

Executable read_executable(const PlanRequest& request) {
  const RankOptions rank = rank_options(request);  // first: it opens the device
  Executable run =
      request.plan.empty() ? executable_of_parts(request, rank) : executable_of_plan(request, rank);
  run.card_each = wants_a_card_each(request);
  run.hang_after = request.hang_after;
  run.pipeline.replicas = request.replicas;
  check_batch(run.pipeline, request.global_batch);
  const std::size_t ranks = run.pipeline.all_ranks();
  if (const int cards = Driver().cards();
      run.card_each && !rank_environment() && ranks > static_cast<std::size_t>(cards))
    throw ConfigError({"--device"},
                      stream_all(rank_count_reason(run.pipeline), ", this host shows ", cards,
                                 " cards: plan for ", cards, ", start ranks on several hosts (see ",
                                 "pfeife-run --help), or let all share a card: cuda:0"));
  if (!run.card_each) check_streams(ranks, rank.placing.device);
  return run;
}

void Executable::place(LaunchOptions& launch) const {
  launch.device = rank.placing.device;
  launch.card_each = card_each;
  launch.rank_count_reason = rank_count_reason(pipeline);
  if (card_each && launch.device.has_index())
    launch.card = Driver().identity(launch.device.index());
  if (hang_after)
    launch.nccl.deadline = *hang_after;
  else if (plan)
    launch.nccl.deadline = hang_deadline(plan->estimate);
  for (RunFact& fact : facts_of(*this)) launch.facts.push_back(std::move(fact));
}

void require_training(const Executable& run) {
  if (run.pipeline.stages.mode == Mode::Forward)
    throw ConfigError({"plan"},
                      "has rows of F alone (training.mode: forward), which train nothing; run it "
                      "with pfeife-run evaluate");
}

}  // namespace pfeife
