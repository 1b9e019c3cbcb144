// The problems of the comparison, read from configs/.
#include <algorithm>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/layers/grouping.h"
#include "planner/cost/operators/roofline.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/model/imported_layers.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/schedules/families.h"
#include "planner/search/cuts/min_max.h"
#include "tests/benchmarks/planner_comparison/comparison.h"

namespace pfeife {

std::vector<InstanceSpec> all_instances() {
  const char* models[] = {"vit_g14",
                          "vit_g14_40",
                          "gpt2_large",
                          "llama2_7b",
                          "sdxl_unet",
                          "bert_large",
                          "t5_large",
                          "swin_b",
                          "convnext_base",
                          "densenet121",
                          "resnet50",
                          "pipedream/alexnet",
                          "pipedream/vgg16",
                          "pipedream/resnet50",
                          "pipedream/densenet121",
                          "pipedream/inception_v3",
                          "pipedream/nasnetamobile",
                          "pipedream/gnmt",
                          "piper/bert32a100",
                          "piper/gnmt"};
  std::vector<InstanceSpec> instances;
  for (const std::string model : models) {
    instances.push_back({model, "a100_sxm4_40gb_x8", 2, 8, 0.8});
    instances.push_back({model, "a100_sxm4_40gb_x8", 4, 8, 0});
    instances.push_back({model, "a100_sxm4_40gb_x8", 8, 16, 0});
    instances.push_back({model, "3090_x8", 4, 16, 0.7});
    instances.push_back({model, "3090_x8", 8, 8, 0.9});
  }
  return instances;
}

namespace {

Layers read_layers(const std::filesystem::path& configs, const std::string& model,
                   const Cluster& cluster) {
  const ImportOptions options{.device_kinds = cluster.kinds.size(), .training = {}};
  if (model.starts_with("pipedream/"))
    return read_pipedream_profile(configs / "profiles" / (model + ".graph.txt"), options);
  if (model.starts_with("piper/"))
    return read_piper_profile(configs / "profiles" / (model + ".json"),
                              nanoseconds_from_ms(model == "piper/gnmt" ? 1 : 1000), options);
  const Graph graph = read_pt2(configs / "models" / (model + ".pt2"), std::nullopt);
  const Training training{Precision::Tf32, Optimizer::Adam, graph.microbatch_size};
  const FactsByPrecision facts(graph);
  std::vector<Profile> profiles;
  for (const DeviceKind& kind : cluster.kinds)
    profiles.push_back(roofline_profile(facts, kind, training));
  return layers_from_graph(facts, profiles);
}

Bytes fullest(const std::vector<Bytes>& peaks) { return *std::ranges::max_element(peaks); }

}  // namespace

InstanceReader::Instance InstanceReader::read(const InstanceSpec& spec) {
  auto& cluster = clusters_[spec.cluster];
  if (!cluster)
    cluster = std::make_shared<const Cluster>(
        read_cluster(configs_ / "clusters" / (spec.cluster + ".yaml")));
  auto& layers = layers_[spec.model + " " + spec.cluster];
  if (!layers) layers = std::make_shared<const Layers>(read_layers(configs_, spec.model, *cluster));
  Instance instance{layers, cluster, {}, {}};
  for (std::size_t r = 0; r < spec.ranks; ++r) {
    const DeviceId device{r};
    instance.device_of_rank.push_back(device);
    instance.memory_limit.push_back(cluster->kind(device).memory - cluster->kind(device).reserve);
  }
  if (spec.memory == 0) return instance;
  const ScheduleSpec plain{"1f1b", spec.ranks, spec.microbatches, 1, {}, {0}};
  const auto cuts = equal_time_cuts(*layers, placement_for(plain), *cluster);
  if (!cuts) return instance;
  const auto needed = fullest(
      evaluate(*layers, *cluster, generate(plain), placement_for(plain), *cuts).peak_memory);
  const auto share = static_cast<std::int64_t>(spec.memory * static_cast<double>(needed.value));
  for (Bytes& limit : instance.memory_limit) limit = std::min(limit, Bytes{share});
  return instance;
}

}  // namespace pfeife
