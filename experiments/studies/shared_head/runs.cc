#include "experiments/studies/shared_head/runs.h"

#include <sstream>

#include "planner/cost/estimate/estimator.h"
#include "planner/io/files/csv_table.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife::shared_head {
namespace {

std::vector<double> numbers(const CsvCell& cell) {
  std::vector<double> values;
  std::stringstream words(cell.text);
  for (double value = 0; words >> value;) values.push_back(value);
  if (!words.eof() || values.empty())
    throw ConfigError(cell.where, "numbers are expected, one a stage");
  return values;
}

Nanoseconds from_us(double us) { return nanoseconds_from_ms(us / 1e3); }

}  // namespace

std::string PublishedStages::family() const {
  return method == "baseline" || method == "redistributed" ? "1f1b" : method;
}

std::vector<PublishedStages> read_runs(const std::filesystem::path& file) {
  const CsvTable table = CsvTable::parse(read_text_file(file));
  std::vector<PublishedStages> runs;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const auto number = [&](const std::string& column) {
      return number_of(table.at(r, column), column);
    };
    const auto count = [&](const std::string& column) {
      return static_cast<std::size_t>(number(column));
    };
    const auto list = [&](const std::string& column) { return numbers(table.at(r, column)); };
    runs.push_back({.name = table.at(r, "run").text,
                    .method = table.at(r, "method").text,
                    .sequence = count("sequence"),
                    .vocabulary = count("vocabulary"),
                    .microbatches = count("microbatches"),
                    .layers_of_last_stage = count("layers_of_last_stage"),
                    .step_ms = number("step_ms"),
                    .forward = list("forward_us"),
                    .backward = list("backward_us"),
                    .output = list("output_us"),
                    .embedding_forward = list("embedding_forward_us"),
                    .embedding_backward = list("embedding_backward_us"),
                    .message_and_answer = number("message_and_answer_us")});
  }
  return runs;
}

StageCosts measured_costs(const PublishedStages& run) {
  const Nanoseconds nothing{0};
  StageCosts costs =
      uniform_costs(run.ranks(), nothing, nothing, nothing, from_us(run.message_and_answer / 2));
  const std::size_t barriers = family(run.family()).head_barriers;
  if (barriers > 0) costs.head = SharedHead{.barriers = barriers};
  const double first = barriers == 1 ? 2.0 / 3 : 1.0 / 3;
  for (std::size_t s = 0; s < run.ranks(); ++s) {
    StageCost& stage = costs.stages[s];
    stage.forward = from_us(run.forward[s]);
    stage.backward_input = from_us(run.backward[s]);
    stage.head_share = from_us(run.output[s] * first);
    stage.head_rest =
        from_us(run.output[s] * (1 - first) + run.embedding_forward[s] + run.embedding_backward[s]);
  }
  return costs;
}

Replay replay(const PublishedStages& run) {
  const ScheduleSpec spec{
      .family = run.family(), .ranks = run.ranks(), .microbatches = run.microbatches};
  Replay replay{.lowered = {}, .placement = placement_for(spec), .costs = measured_costs(run)};
  replay.lowered = lower(generate(spec), replay.costs, replay.placement);
  const auto answer = estimate(
      dependencies(replay.lowered, stage_graph(replay.costs), replay.placement, {}), replay.costs);
  PFEIFE_CHECK(std::holds_alternative<Trace>(answer), run.name, " hangs");
  replay.step = step_time(std::get<Trace>(answer));
  return replay;
}

MeshRun mesh_run(const PublishedStages& measured) {
  MeshRun run;
  Architecture& gpt = run.architecture;
  gpt.name = "gpt";
  gpt.layers = 32, gpt.hidden = 3072, gpt.heads = gpt.kv_heads = 24, gpt.head_size = 128;
  gpt.feed_forward = 4 * gpt.hidden;
  gpt.vocabulary = static_cast<std::int64_t>(measured.vocabulary);
  gpt.sequence = static_cast<std::int64_t>(measured.sequence);
  gpt.attention = AttentionKind::Fused;
  gpt.tied_embedding = false;
  run.mesh.size(Axis::Pipeline) = static_cast<std::int64_t>(measured.ranks());
  run.global_batch = static_cast<std::int64_t>(measured.microbatches);
  run.schedule = measured.family();
  run.balanced = measured.method == "redistributed";
  run.kernels = RankKernels::Megatron;
  return run;
}

MeshPrice from_shapes(const PublishedStages& run, const Network& network) {
  return price_mesh(mesh_run(run), network);
}

}  // namespace pfeife::shared_head
