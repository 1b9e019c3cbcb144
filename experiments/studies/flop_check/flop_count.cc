// What the planner counts in an archive, for flop_check.py: a line an operator, as CSV.
//
//   flop_count MODEL.pt2...     model,operator,nodes,forward,backward,saved
//
// `saved`: bytes that the nodes keep for themselves on a CPU (masks, statistics, copies); those of
// storages are on a line of their own, "storages".
#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "planner/cost/operators/work.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/run_main.h"

namespace pfeife {
namespace {

struct Counted {
  int nodes = 0;
  Flops forward, backward;
  Bytes saved{0};
  bool known = true;
};

void count(const std::filesystem::path& archive) {
  const Graph graph = read_pt2(archive);
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Cpu);
  const KernelList kernels(facts, saved, DeviceType::Gpu);
  std::map<std::string, Counted> by_operator;
  for (const NodeId n : nodes_of(graph)) {
    Counted& sum = by_operator[graph.node(n).op];
    ++sum.nodes;
    sum.known = sum.known && facts.traits[n.index()] != nullptr;
    sum.saved += saved.node_bytes[n.index()];
    for (const Kernel& kernel : kernels.at(n))
      (kernel.pass == Pass::Forward ? sum.forward : sum.backward) +=
          static_cast<double>(kernel.times) * kernel.flops;
  }
  Bytes stored;
  for (const SavedStorage& storage : saved.storages) stored += storage.bytes;
  const std::string model = archive.stem().string();
  for (const auto& [op, sum] : by_operator)
    fmt::print("{},{}{},{},{:.0f},{:.0f},{}\n", model, op, sum.known ? "" : " (no row)", sum.nodes,
               sum.forward.value, sum.backward.value, sum.saved.value);
  fmt::print("{},storages,{},0,0,{}\n", model, saved.storages.size(), stored.value);
}

int run(int argc, char** argv) {
  if (argc < 2) throw ConfigError({}, "which archives? Usage: flop_count MODEL.pt2...");
  fmt::print("model,operator,nodes,forward,backward,saved\n");
  for (int i = 1; i < argc; ++i) count(argv[i]);
  return 0;
}

}  // namespace
}  // namespace pfeife

int main(int argc, char** argv) {
  return pfeife::run_main("flop_count", [&] { return pfeife::run(argc, argv); });
}
