// What the planner's table says of a graph's nodes, beside what LibTorch's schemas say.
#include "planner/cost/operators/table_effects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "planner/io/model/pt2_reader.h"
#include "planner/ir/schedule/graph_split.h"
#include "runtime/model/operators.h"

namespace pfeife {
namespace {

std::vector<std::filesystem::path> shipped_archives() {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"configs/models", "tests/data/models"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(PFEIFE_SOURCE_DIR) / folder))
      if (entry.path().extension() == ".pt2") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

// Writes and random numbers are the same, and so is everything that follows from them: which cuts
// are legal, and what every stage executes, holds, makes and reads.
TEST(TableEffects, CutShippedModelsAsTheSchemasOfLibTorchDo) {
  std::mt19937 draw(1);
  std::size_t splits = 0;
  for (const std::filesystem::path& file : shipped_archives()) {
    SCOPED_TRACE(file.filename().string());
    std::optional<Graph> graph;
    std::vector<NodeEffects> schemas;
    try {
      graph = read_pt2(file);
      schemas = effects_of(*graph);
    } catch (const ConfigError&) {
      continue;  // made to be refused
    }
    const std::vector<NodeEffects> table = table_effects(*graph);
    for (std::size_t n = 0; n < graph->nodes.size(); ++n) {
      const Node& node = graph->nodes[n];
      const auto sorted = [](std::vector<ValueId> values) {
        std::ranges::sort(values);
        return values;
      };
      EXPECT_EQ(table[n].random, schemas[n].random) << node.name << " " << node.op;
      EXPECT_EQ(table[n].metadata_only, schemas[n].metadata_only) << node.name << " " << node.op;
      EXPECT_EQ(sorted(table[n].writes), sorted(schemas[n].writes)) << node.name << " " << node.op;
      for (const auto& alias : schemas[n].aliases)
        EXPECT_TRUE(std::ranges::find(table[n].aliases, alias) != table[n].aliases.end())
            << node.name << " " << node.op;
    }
    EXPECT_EQ(whole_graph(*graph, table).stages, whole_graph(*graph, schemas).stages);
    if (graph->nodes.size() > 800) continue;  // seconds for each cut
    for (int repetition = 0; repetition < 5; ++repetition) {
      std::set<NodeId> cuts;
      for (int c = 0; c < 3; ++c) cuts.emplace(draw() % (graph->nodes.size() - 1));
      const std::vector<NodeId> at(cuts.begin(), cuts.end());
      std::optional<GraphSplit> by_schemas, by_table;
      try {
        by_schemas = split_graph(*graph, schemas, at);
      } catch (const ConfigError&) {
      }
      try {
        by_table = split_graph(*graph, table, at);
      } catch (const ConfigError&) {
      }
      ASSERT_EQ(by_schemas.has_value(), by_table.has_value());
      if (!by_table) continue;
      ++splits;
      EXPECT_EQ(by_table->stages, by_schemas->stages);
      EXPECT_EQ(by_table->crossings, by_schemas->crossings);
    }
  }
  EXPECT_GT(splits, 20u);
}

}  // namespace
}  // namespace pfeife
