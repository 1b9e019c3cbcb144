// `training`, `simulation` and `measurement` of an experiment: lists of fields.
#include <cmath>

#include "planner/io/experiment/experiment_case.h"
#include "planner/io/files/csv_table.h"
#include "planner/io/model/training_yaml.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

Kind<double> norm() {
  return {"above 0",
          [](const YamlNode& node) {
            const double norm = node.as_double();
            if (!(norm > 0))
              node.fail(
                  "the largest norm that the gradients may have is above 0; leave it out for any");
            return norm;
          },
          [](double norm) { return yaml_scalar(shortest(norm)); },
          false,
          {},
          R"({"type":"number","exclusiveMinimum":0})"};
}

const FieldList<JitterSettings>& jitter_fields() {
  using Jitter = JitterSettings;
  static const FieldList<JitterSettings> fields = {
      field("cv", &Jitter::cv, real(0, 1),
            "coefficient of variation of each compute and transfer time (log-normal, [the same "
            "draws](../../planner/ir/schedule/jitter.h) for estimate and simulation)")
          .always()
          .needed(),
      field("drift", &Jitter::drift, real(0, 1),
            "the same of all computations of a repetition together, as a machine that is "
            "slower for a while"),
      field("repetitions", &Jitter::repetitions, whole<std::size_t>(1, 1'000'000),
            "over which the 5th percentile, median and 95th percentile are taken")
          .always(),
      field("seed", &Jitter::seed, whole<std::uint64_t>(0, kAnyMore), "of the draws").always()};
  return fields;
}

}  // namespace

DocumentLengths read_lengths(const std::filesystem::path& file) {
  const CsvTable table = CsvTable::parse(read_text_file(file));
  if (table.has("batch"))
    throw ConfigError(table.where(),
                      "has many batches, and a config is of one; leave training.lengths out and "
                      "run pfeife-exp batches CONFIG --lengths " +
                          file.filename().string());
  table.check_columns({"microbatch", "length"});
  DocumentLengths lengths;
  const auto whole_at = [&](std::size_t row, const std::string& column, std::int64_t least) {
    const CsvCell& cell = table.at(row, column);
    const double number = number_of(cell, column);
    if (number != std::floor(number) || number < static_cast<double>(least) || number > 1e9)
      throw ConfigError(cell.where, column + " must be a whole number of at least " +
                                        std::to_string(least) + ", found " + cell.text);
    return static_cast<std::int64_t>(number);
  };
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto m = static_cast<std::size_t>(whole_at(row, "microbatch", 0));
    if (m > lengths.size() || m + 1 < lengths.size())
      throw ConfigError(table.at(row, "microbatch").where,
                        "microbatches are numbered from 0 on and stand in their order, found " +
                            std::to_string(m) + " after " + std::to_string(lengths.size()) +
                            " of them");
    if (m == lengths.size()) lengths.emplace_back();
    lengths[m].push_back(whole_at(row, "length", 1));
  }
  if (lengths.empty()) throw ConfigError({file.string()}, "has no documents");
  return lengths;
}

/// Lists of lengths, or a file of them.
static Kind<DocumentLengths> document_lengths(const ListContext& context) {
  return {"a list of lists, or a CSV file",
          [&context](const YamlNode& node) {
            if (!node.is_sequence()) {
              if (!context.config)
                node.fail("expected a list of lists such as [[512, 512], [1024]]");
              return read_lengths(
                  input_file(node, *context.folder, "training.lengths", *context.config));
            }
            DocumentLengths lengths;
            for (const YamlNode& microbatch : node.items()) {
              std::vector<std::int64_t>& documents = lengths.emplace_back();
              for (const YamlNode& length : microbatch.items_or_self())
                documents.push_back(length.as_int(1, 1'000'000'000));
              if (documents.empty())
                microbatch.fail("a microbatch has one document at least, such as [512, 1024]");
            }
            if (lengths.empty()) node.fail("no microbatch is listed; leave the key out");
            return lengths;
          },
          [](const DocumentLengths& lengths) {
            if (lengths.empty()) return YamlValue{};
            return list_value(lengths, [](const std::vector<std::int64_t>& documents) {
              return list_value(documents, [](std::int64_t length) {
                return yaml_scalar(std::to_string(length));
              });
            });
          },
          true,
          {},
          either_schema({kTextSchema, R"({"type":"array"})"})};
}

const FieldList<SlowRank>& slow_rank_fields() {
  static const FieldList<SlowRank> fields{
      field("rank", &SlowRank::rank, whole<std::size_t>(0, 1'000'000),
            "the slow rank that is shown first; the others follow")
          .by_default("none is first"),
      field("factor", &SlowRank::factor, real(0.01, 100),
            "multiplies all compute times of the rank: 1.1 is 10 % slower")
          .always()};
  return fields;
}

const FieldList<WhatIf>& what_if_fields() {
  static const FieldList<WhatIf> fields{
      field("slow", &WhatIf::slow, map_of(slow_rank_fields()),
            "`{rank: 3, factor: 1.1}`: report and `--verbose` give the step time if this rank is "
            "slower by the factor, the step time for each other rank in its place, and each rank's "
            "slack: how much slower it may be before the step is 0.1 % longer")
          .by_default("none")};
  return fields;
}

const FieldList<StepSettings>& training_fields() {
  static const ListContext none;
  static const FieldList<StepSettings> fields = training_fields(none);
  return fields;
}

FieldList<StepSettings> training_fields(const ListContext& context) {
  using Step = StepSettings;
  return {
      field("precision", &Step::precision, word(precisions()), "of products; parameters are `fp32`")
          .always(),
      field(
          "optimizer", &Step::optimizer, optimizer_kind(),
          "its state is part of the memory, its time part of the step: [optimizers](optimizers.md)")
          .always(),
      field("clip_norm", &Step::clip_norm, norm(),
            "largest norm of all gradients together: [clipping](#clipping)")
          .by_default("any"),
      field("microbatch_size", &Step::microbatch_size, whole<std::int64_t>(1, 1'000'000),
            "samples. Of a layer table or a published profile it only scales samples/s")
          .by_default("the archive's own; 1"),
      field("mode", &Step::mode, word(modes()),
            "`forward`: rows of F alone, as for serving, evaluation, prefill: no gradients, no "
            "optimizer, nothing kept for a backward; [forward only](forward.md)"),
      field("global_batch", &Step::global_batch, whole<std::int64_t>(1, 1'000'000),
            "samples a step. With `microbatch_size` or `cases.microbatches` it says the other; "
            "alone it leaves both [to be found](open_choices.md)")
          .by_default("none"),
      field("microbatch_costs", &Step::microbatch_costs, microbatch_scales(),
            "[what each microbatch costs](microbatches.md), relative to one of the model's own "
            "size: a factor a microbatch, or `[factor outside attention, factor of attention]`")
          .by_default("all cost the same"),
      field("lengths", &Step::lengths, document_lengths(context),
            "the same costs, computed from the lengths in tokens of the documents "
            "[packed](microbatches.md) into each microbatch: `[[2048], [1024, 1024]]`")
          .by_default("all cost the same")};
}

const FieldList<SimulationSettings>& simulation_fields() {
  using Simulation = SimulationSettings;
  auto overhead = field("launch_overhead", &Simulation::launch_overhead, duration(),
                        "added to every F, B, I, W and optimizer step")
                      .always()
                      .by_default("`5 us`; with `profile: measure` what the executor took");
  overhead.read = [read = overhead.read](const YamlNode& node, Simulation& simulation) {
    read(node, simulation);
    simulation.launch_overhead_given = true;
  };
  auto jitter = field("jitter", &Simulation::jitter, map_of(jitter_fields()),
                      "random variation of all times, with keys of its own")
                    .by_default("none");
  jitter.read = [read = jitter.read](const YamlNode& node, Simulation& simulation) {
    if (!node.is_null()) read(node, simulation);
  };
  static const FieldList<SimulationSettings> fields = {
      field("queues", &Simulation::queues,
            word(words_of<Queues>({Queues::None, Queues::Edge, Queues::Pair, Queues::Rank})),
            "order of transfers: none (each starts when its value is ready), or first in first "
            "out per edge (ordered pair of ranks), pair, or rank")
          .always(),
      field("links", &Simulation::links, word(words_of<Links>({Links::Delay, Links::Shared})),
            "`shared`: transfers at the same time share the links they cross; `delay`: none "
            "waits for another")
          .always(),
      overhead, jitter};
  return fields;
}

FieldList<MeasurementSettings> measurement_fields(const ListContext& context) {
  using Measurement = MeasurementSettings;
  return {
      field("steps", &Measurement::steps, whole<std::size_t>(3, 100'000),
            "training steps of a plan in a round; the first two only warm up")
          .always(),
      field("rounds", &Measurement::rounds, whole<std::size_t>(1, 999),
            "most rounds in which the plans of a case take turns; 1: each runs once, and nothing "
            "is said of how well its time is known")
          .always(),
      field("interval", &Measurement::interval, real(0, 1),
            "rounds end when the 95 % interval of every plan's median has at most this half width, "
            "as a share of the median; below six rounds there is no interval")
          .always(),
      {"traces", "files, or folders of them",
       "[traces](../../experiments/studies/torch_traces/README.md) of a run of the case's plan "
       "that has "
       "been; of one case, and without `measure`. Screen and `comparison.txt` have what "
       "`pfeife-exp "
       "compare` says",
       [&context](const YamlNode& node, Measurement& measurement) {
         read_traces(node, context, measurement);
       },
       [](const Measurement& measurement) {
         return measurement.traces.empty() ? YamlValue{}
                                           : list_value(measurement.traces, path_value);
       },
       true}};
}

std::vector<FieldRow> jitter_rows() { return jitter_fields().rows("simulation.jitter."); }

}  // namespace pfeife
