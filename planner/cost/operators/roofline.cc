#include "planner/cost/operators/roofline.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/cost/operators/liveness.h"
#include "planner/cost/operators/saved.h"
#include "planner/cost/operators/work.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

/// Gradient scaling of fp16: gradients are divided by the scale before the step, read and written.
constexpr Bytes kUnscale{8};

/// Names under which a device lists a peak, the wanted one first, then those that may stand in.
std::vector<std::string> peak_names(DType type, Precision precision) {
  if (type == DType::BFloat16) return {"bf16", "fp16", "tf32", "fp32"};
  if (type == DType::Float16) return {"fp16", "bf16", "tf32", "fp32"};
  if (precision == Precision::Tf32) return {"tf32", "fp32"};
  return {"fp32"};
}

/// Square products of 1024, 2048, 4096, 8192: the mean of the five measured curves of A100 and H100
/// in configs/clusters (fp32, tf32 and fp16 of the one, tf32 and bf16 of the other).
const EfficiencyCurve& default_gemm_efficiency() {
  static const EfficiencyCurve curve{{{Flops{2'100'000'000}, 0.309},
                                      {Flops{17'000'000'000}, 0.626},
                                      {Flops{137'000'000'000}, 0.774},
                                      {Flops{1'100'000'000'000}, 0.744}}};
  return curve;
}

/// What a square product of so many FLOPs reads and writes.
Bytes square_product(Flops flops, DType type) {
  const double side = std::cbrt(flops.value / 2);
  return std::llround(3 * side * side) * element_size(type);
}

/// How fast a device is at one type of product and at moving bytes.
class Roofline {
 public:
  Roofline(const DeviceKind& device, Precision precision, std::span<const Format> formats = {})
      : device_(device), precision_(precision) {
    if (device.memory_bandwidth.value <= 0) lacks("memory_bandwidth: 900 GB/s");
    for (const DType type : {DType::Float32, DType::BFloat16, DType::Float16})
      add(type, peak_names(type, precision));
    for (const Recipe& recipe : known_recipes())
      if (std::ranges::find(formats, recipe.format) != formats.end()) add(recipe);
  }

  /// The curve is of square products and has their memory traffic in it; what others move besides,
  /// no computing hides.
  Nanoseconds time(const Kernel& kernel) const {
    const bool multiplies = kernel.flops.value > 0;
    if (!multiplies && is_in_product(kernel)) return Nanoseconds{0};
    if (const auto measured = multiplies ? measured_time(kernel) : std::nullopt) {
      double busy = measured->seconds * device_.compute_factor;
      if (kernel.format != Format::Wide) busy += cast_seconds(kernel, *find_recipe(kernel.format));
      return nanoseconds_from_seconds(busy) + device_.operator_time();
    }
    if (multiplies && kernel.format != Format::Wide)
      return time_of_cast(kernel, formats_.at(kernel.format));
    double busy = seconds(kernel.bytes);
    if (kernel.flops.value > 0) {
      const Speed& speed = speed_of(kernel.type);
      const double fraction = names_attention(kernel)
                                  ? attention_fraction(kernel)
                                  : kernel.share * speed.curve->at(kernel.flops);
      const double more = busy - seconds(square_product(kernel.flops, kernel.type));
      busy = seconds_at(kernel.flops, fraction * speed.peak) + std::max(more, 0.0);
    }
    return nanoseconds_from_seconds(busy) + device_.operator_time();
  }
  double seconds(Bytes bytes) const { return seconds_at(bytes, device_.element_wise_rate()); }
  /// The time of the product alone; of a weight's gradient also where only the kernel was measured
  /// that adds it to its sum.
  std::optional<ProductTime> measured_time(const Kernel& kernel) const {
    if (device_.measured_products.rows.empty()) return std::nullopt;
    const std::string precision = product_precision(kernel);
    const auto alone = device_.measured_products.find(precision, kernel.product);
    if (alone || kernel.product.pass != ProductPass::Weight) return alone;
    return with_sum(precision, kernel.product);
  }
  /// A key of DeviceKind::peak.
  std::string product_precision(const Kernel& kernel) const {
    if (kernel.format != Format::Wide) return pfeife::to_string(kernel.format);
    return peak_names(kernel.type, precision_).front();
  }
  /// The name of the peak that stands in for `type`; empty if it is the type's own.
  const std::string& stand_in(DType type) const { return speed_of(type).stand_in; }

 private:
  struct Speed {
    FlopsPerSecond peak;
    const EfficiencyCurve* curve;
    std::string stand_in;
  };
  struct FormatSpeed {
    const Recipe* recipe;
    FlopsPerSecond peak;
    const EfficiencyCurve* curve;
    bool holds_cast;  ///< the curve
  };

  std::optional<ProductTime> with_sum(const std::string& precision, ProductShape shape) const {
    shape.pass = ProductPass::WeightSum;
    return device_.measured_products.find(precision, shape);
  }
  /// Whether the measured time of the product has that of the sum which `kernel` makes.
  bool is_in_product(const Kernel& kernel) const {
    if (kernel.product.pass != ProductPass::Weight || device_.measured_products.rows.empty())
      return false;
    const std::string precision = product_precision(kernel);
    return !device_.measured_products.find(precision, kernel.product) &&
           with_sum(precision, kernel.product);
  }
  /// Kernels of fused attention have 16 bits.
  bool names_attention(const Kernel& kernel) const {
    return device_.attention && kernel.sequence > 0 &&
           (kernel.type == DType::BFloat16 || kernel.type == DType::Float16);
  }
  /// The part of the peak at which all FLOPs count: twice where a causal mask hides half.
  double attention_fraction(const Kernel& kernel) const {
    const AttentionSpeed& speed = *device_.attention;
    const double share = kernel.pass == Pass::Forward ? speed.forward : speed.backward;
    return kernel.share / kAttentionShare * speed.at(share, kernel.sequence);
  }
  Nanoseconds time_of_cast(const Kernel& kernel, const FormatSpeed& speed) const {
    const double element = speed.recipe->element_bytes;
    const double narrower = (2 * element + 2) / 6;  // two cast operands and a 16-bit result, of 6 B
    const double more = seconds(kernel.bytes) - seconds(square_product(kernel.flops, kernel.type));
    double busy = seconds_at(kernel.flops, speed.curve->at(kernel.flops) * speed.peak) +
                  narrower * std::max(more, 0.0);
    if (!speed.holds_cast) busy += cast_seconds(kernel, *speed.recipe);
    return nanoseconds_from_seconds(busy) + device_.operator_time();
  }

  /// The cast of one operand, read in 16 bits.
  double cast_seconds(const Kernel& kernel, const Recipe& recipe) const {
    const double moved =
        (recipe.amax_bytes + 2 + recipe.element_bytes) * static_cast<double>(kernel.cast);
    return seconds(Bytes{std::llround(moved)});
  }

  [[noreturn]] void lacks(const char* example) const {
    throw ConfigError({}, "device kind '" + device_.name +
                              "' does not say how fast it is; add a line such as `" + example +
                              "` to its cluster file, or give a measured profile");
  }
  void add(const Recipe& recipe) {
    const auto peak = std::ranges::find_if(
        recipe.peaks, [&](const std::string& name) { return device_.peak.contains(name); });
    if (peak == recipe.peaks.end()) {
      std::string own;
      for (const Recipe& known : known_recipes())
        if (std::ranges::any_of(
                known.peaks, [&](const std::string& name) { return device_.peak.contains(name); }))
          own += ", " + pfeife::to_string(known.format);
      throw ConfigError({}, "device kind '" + device_.name + "' lists no peak for " +
                                pfeife::to_string(recipe.format) + " products; take bf16" + own +
                                ", or add `peak: {" + recipe.peaks.front() +
                                ": ...}` to its cluster file if it has such products");
    }
    const auto curve = std::ranges::find_if(recipe.curves, [&](const std::string& name) {
      return device_.gemm_efficiency.contains(name);
    });
    const bool own = curve != recipe.curves.end();
    formats_.emplace(recipe.format, FormatSpeed{&recipe, device_.peak_of(*peak),
                                                own ? &device_.gemm_efficiency.at(*curve)
                                                    : &nearest_curve({"bf16", "fp16"}),
                                                own});
  }
  void add(DType type, const std::vector<std::string>& names) {
    const auto found = std::ranges::find_if(
        names, [&](const std::string& name) { return device_.peak.contains(name); });
    if (found == names.end()) return;
    speeds_.emplace(type, Speed{device_.peak_of(*found), &nearest_curve({found, names.end()}),
                                found == names.begin() ? "" : *found});
  }
  /// The curve of the first name or, if it has none, of the nearest precision that has one; of a
  /// device without any, the default.
  const EfficiencyCurve& nearest_curve(std::vector<std::string> names) const {
    names.insert(names.end(), {"fp32", "tf32", "bf16", "fp16"});
    const auto found = std::ranges::find_if(
        names, [&](const std::string& name) { return device_.gemm_efficiency.contains(name); });
    return found == names.end() ? default_gemm_efficiency() : device_.gemm_efficiency.at(*found);
  }
  const Speed& speed_of(DType type) const {
    // Other types (fp64, integers) run at the speed of fp32 for want of a figure.
    auto at = speeds_.find(type);
    if (at == speeds_.end()) at = speeds_.find(DType::Float32);
    if (at == speeds_.end())
      throw ConfigError({}, "device kind '" + device_.name + "' lists no peak for " +
                                pfeife::to_string(type) +
                                " products; add `peak: {fp32: ...}` to its cluster file");
    return at->second;
  }

  const DeviceKind& device_;
  Precision precision_;
  std::map<DType, Speed> speeds_;
  std::map<Format, FormatSpeed> formats_;
};

/// The products among a node's kernels, cast: the gradient of its input casts the incoming one.
void cast_products(std::vector<Kernel>& kernels, const GraphFacts& facts, NodeId n, Format format) {
  const std::int64_t input = facts.type(first_tensor(facts.node(n))).elements(),
                     output = facts.type(facts.node(n).outputs.front()).elements();
  for (Kernel& kernel : kernels) {
    if (kernel.flops.value > 0 || kernel.product.groups > 0) kernel.format = format;
    if (kernel.flops.value <= 0) continue;
    kernel.cast = (kernel.pass == Pass::BackwardInput ? output : input) / kernel.times;
  }
}

/// What all functions of a graph need: kernels, with the formats of their products.
class GraphKernels {
 public:
  GraphKernels(const GraphFacts& facts, const SavedMemory& saved, DeviceType device,
               std::span<const OperatorCost> costs, std::span<const Format> formats)
      : facts_(facts), kernels_(facts, saved, device, costs), formats_(formats) {}
  std::vector<Kernel> at(NodeId n) const {
    std::vector<Kernel> of_node = kernels_.at(n);
    if (!formats_.empty() && formats_[n.index()] != Format::Wide)
      cast_products(of_node, facts_, n, formats_[n.index()]);
    return of_node;
  }

 private:
  const GraphFacts& facts_;
  KernelList kernels_;
  std::span<const Format> formats_;
};

/// Distinct products among kernels.
class ProductUses {
 public:
  explicit ProductUses(const Roofline& roofline) : roofline_(roofline) {}
  void add(const std::vector<Kernel>& kernels) {
    for (const Kernel& kernel : kernels) {
      if (kernel.product.groups == 0 || kernel.flops.value <= 0) continue;
      const auto [use, first] =
          uses_.try_emplace({roofline_.product_precision(kernel), kernel.product});
      if (first) {
        const auto time = roofline_.measured_time(kernel);
        use->second = {use->first.first, kernel.product, 0,
                       time ? time->source : ProductSource::Curve};
      }
      use->second.times += kernel.times;
    }
  }
  std::vector<ProductUse> list() const {
    std::vector<ProductUse> list;
    for (const auto& [key, use] : uses_) list.push_back(use);
    return list;
  }

 private:
  const Roofline& roofline_;
  std::map<std::pair<std::string, ProductShape>, ProductUse> uses_;
};

NodeProfile node_profile(const std::vector<Kernel>& kernels, const Roofline& roofline) {
  NodeProfile cost;
  for (const Kernel& kernel : kernels) {
    Nanoseconds& pass = kernel.pass == Pass::Forward         ? cost.forward
                        : kernel.pass == Pass::BackwardInput ? cost.backward_input
                                                             : cost.backward_weight;
    pass += kernel.times * roofline.time(kernel);
  }
  return cost;
}

/// [parameter] Whether it is of a hidden layer: neither an embedding nor the head, which is what
/// the last product has.
std::vector<bool> hidden_parameters(const Graph& graph) {
  std::vector<bool> hidden(graph.parameters.size(), true);
  std::map<ValueId, std::size_t> numbers;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) numbers[graph.parameters[p].value] = p;
  std::optional<std::size_t> last;
  for (const Node& node : graph.nodes)
    for (const ValueId read : inputs_of(node))
      if (const auto found = numbers.find(read); found != numbers.end()) {
        if (node.op == "aten::embedding") hidden[found->second] = false;
        if (graph.parameters[found->second].type.sizes.size() == 2) last = found->second;
      }
  if (last) hidden[*last] = false;
  return hidden;
}

ParameterProfile parameter_profile(const OptimizerWork& work, const Roofline& roofline) {
  ParameterProfile profile{nanoseconds_from_seconds(roofline.seconds(work.moved)), work.state};
  for (const OptimizerProduct& product : work.products)
    profile.optimizer +=
        product.times *
        roofline.time({.flops = product.flops, .bytes = product.bytes, .type = DType::BFloat16});
  return profile;
}

std::vector<ParameterProfile> parameter_profiles(const Graph& graph, const Optimizer& optimizer,
                                                 Masters masters, Bytes besides,
                                                 const Roofline& roofline) {
  const std::vector<bool> hidden = hidden_parameters(graph);
  std::vector<ParameterProfile> profiles;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    profiles.emplace_back();
    if (!parameter.trainable) continue;
    OptimizerWork work = optimizer_work(optimizer, parameter.type.sizes,
                                        element_size(parameter.type.dtype), hidden[p], masters);
    work.moved +=
        Bytes{besides.value * parameter.type.bytes().value / element_size(DType::Float32).value};
    profiles.back() = parameter_profile(work, roofline);
  }
  return profiles;
}

void warn(const GraphFacts& facts, std::span<const OperatorCost> costs, const DeviceKind& device,
          const Roofline& roofline, Profile& profile) {
  const auto given = [&](const std::string& op) {
    return std::ranges::find(costs, op, &OperatorCost::op) != costs.end();
  };
  std::map<std::string, int> unknown;
  for (std::size_t n = 0; n < facts.graph.nodes.size(); ++n)
    if (facts.traits[n] == nullptr && !given(facts.graph.nodes[n].op))
      ++unknown[facts.graph.nodes[n].op];
  for (const auto& [op, count] : unknown)
    profile.warnings.push_back(stream_all(
        "operator ", op, " (", count, count == 1 ? " node" : " nodes",
        ") is not in the operator table: charged by the bytes it reads and writes, and its inputs "
        "and outputs count as kept for backward"));
  if (device.gemm_efficiency.empty())
    profile.warnings.push_back("device kind " + profile.device_kind +
                               " lists no gemm_efficiency: a default is used, the mean of what "
                               "A100 and H100 reach");
  DType type = DType::Float32;
  if (profile.training.precision == Precision::Bf16Amp) type = DType::BFloat16;
  if (profile.training.precision == Precision::Fp16Amp) type = DType::Float16;
  if (const std::string& other = roofline.stand_in(type); !other.empty())
    profile.warnings.push_back("device kind " + profile.device_kind + " lists no peak for " +
                               to_string(profile.training.precision) + ": that of " + other +
                               " is used");
}

}  // namespace

std::vector<ParameterProfile> updates_with_masters(const Graph& graph, const DeviceKind& device,
                                                   const Optimizer& optimizer) {
  return parameter_profiles(graph, optimizer, Masters::Fp32, Bytes{0},
                            Roofline(device, Precision::Fp32));
}

std::vector<ProductUse> product_uses(const FactsByPrecision& of, const DeviceKind& device,
                                     const Training& training, std::span<const OperatorCost> costs,
                                     std::span<const Format> formats) {
  const GraphFacts& facts = of.at(training.precision);
  const SavedMemory saved = saved_memory(facts, device.type);
  const GraphKernels kernels(facts, saved, device.type, costs, formats);
  const Roofline roofline(device, training.precision, formats);
  ProductUses uses(roofline);
  for (const NodeId n : nodes_of(of.graph)) uses.add(kernels.at(n));
  return uses.list();
}

Profile roofline_profile(const FactsByPrecision& of, const DeviceKind& device,
                         const Training& training, std::span<const OperatorCost> costs,
                         std::span<const Format> formats) {
  const Graph& graph = of.graph;
  PFEIFE_CHECK(training.microbatch_size == graph.microbatch_size, "profile for microbatches of ",
               training.microbatch_size, ", graph for ", graph.microbatch_size);
  const GraphFacts& facts = of.at(training.precision);
  SavedMemory saved = saved_memory(facts, device.type);
  const std::vector<PassBytes> temporary = temporary_bytes(facts, saved);
  const GraphKernels kernels(facts, saved, device.type, costs, formats);
  const Roofline roofline(device, training.precision, formats);

  Profile profile;
  profile.graph_digest = graph.digest;
  profile.device_kind = device.name;
  profile.training = training;
  profile.source = FigureSource::Roofline;
  profile.origin = "roofline of " + device.name + " in " + to_string(training.precision);
  profile.nodes.reserve(graph.nodes.size());
  ProductUses uses(roofline);
  for (const NodeId n : nodes_of(graph)) {
    const std::vector<Kernel> of_node = kernels.at(n);
    if (!device.measured_products.rows.empty()) uses.add(of_node);
    NodeProfile cost = node_profile(of_node, roofline);
    cost.saved = saved.node_bytes[n.index()];
    cost.weight_saved = saved.node_weight_bytes[n.index()];
    cost.temporary = temporary[n.index()];
    profile.nodes.push_back(cost);
  }
  if (!device.measured_products.rows.empty()) profile.origin += "; " + coverage_text(uses.list());
  profile.storages = std::move(saved.storages);
  profile.parameters =
      parameter_profiles(graph, training.optimizer, Masters::None,
                         training.precision == Precision::Fp16Amp ? kUnscale : Bytes{0}, roofline);
  warn(facts, costs, device, roofline, profile);
  return profile;
}

}  // namespace pfeife
