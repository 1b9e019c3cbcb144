// What a kind of devices has in cluster.yaml. The speeds may be missing: models that bring their
// own times need none, and the roofline says what it lacks.
#include "planner/io/cluster/cluster_file.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

constexpr double kLeastFraction = 1e-6;
const std::string kListed =
    "by precision: `fp32`, `tf32`, `bf16`, `fp16`, `fp8`, `fp8_block`, `mxfp8`, `nvfp4`";

double read_fraction(const YamlNode& node, double most) {
  const double fraction = node.as_double(0, most);
  if (fraction < kLeastFraction) node.fail("the fraction must be above 0, at least 1e-6");
  return fraction;
}

EfficiencyCurve read_efficiency(const YamlNode& node) {
  EfficiencyCurve curve;
  if (!node.is_sequence())
    node.fail("expected points [work, fraction] such as [[2.1 GFLOP, 0.73]]");
  for (const YamlNode& point : node.items()) {
    const auto pair = point.items();
    if (pair.size() != 2) point.fail("expected [work, fraction] such as [2.1 GFLOP, 0.73]");
    const Flops work = pair[0].as_flops();
    if (work.value <= 0) pair[0].fail("the work must be above 0");
    if (!curve.points.empty() && work <= curve.points.back().work)
      pair[0].fail("the work must grow from point to point");
    // Cards that run above their nominal clock exceed the published peak.
    curve.points.push_back({work, read_fraction(pair[1], 1.5)});
  }
  if (curve.points.empty()) node.fail("expected at least one point [work, fraction]");
  return curve;
}

YamlValue efficiency_value(const EfficiencyCurve& curve) {
  return list_value(curve.points, [](const EfficiencyCurve::Point& point) {
    return yaml_sequence({yaml_amount(point.work), yaml_scalar(shortest(point.fraction))});
  });
}

template <class T>
Kind<std::map<std::string, T>> by_precision(const Kind<T>& kind) {
  using Map = std::map<std::string, T>;
  return {kListed,
          [read = kind.read](const YamlNode& node) {
            node.check_keys(known_precisions());
            Map values;
            for (const auto& [precision, value] : node.entries())
              values.emplace(precision, read(value));
            if (values.empty()) node.fail("expected at least one precision such as bf16");
            return values;
          },
          [value = kind.value](const Map& values) {
            std::vector<YamlEntry> entries;
            for (const auto& [precision, of] : values)
              entries.push_back({precision, value(of), {}});
            return entries.empty() ? YamlValue{} : yaml_map(std::move(entries));
          }};
}

/// Memory in the largest unit that it is whole in.
Kind<Bytes> whole_memory() {
  Kind<Bytes> kind = memory();
  kind.value = [](const Bytes& bytes) {
    for (const auto& [unit, name] : {std::pair(kGiB, " GiB"), {kMiB, " MiB"}})
      if (bytes.value > 0 && bytes.value % unit.value == 0)
        return yaml_scalar(std::to_string(bytes.value / unit.value) + name);
    return yaml_amount(bytes);
  };
  return kind;
}

FieldList<HostLink> host_link_fields() {
  return {
      field("bandwidth", &HostLink::bandwidth, bandwidth(), "").always().needed(),
      field("duplex", &HostLink::half_duplex, word<bool>({{"full", false}, {"half", true}}), ""),
      field("shared_by", &HostLink::shared_by, whole<std::int64_t>(1, 1024), "")};
}

FieldList<AttentionSpeed> attention_fields() {
  const Kind<double> share{"0 to 1", [](const YamlNode& node) { return read_fraction(node, 1); },
                           [](double value) { return yaml_scalar(shortest(value)); }};
  return {field("kernel", &AttentionSpeed::kernel, any_text(), "").always().needed(),
          field("forward", &AttentionSpeed::forward, share, "").always().needed(),
          field("backward", &AttentionSpeed::backward, share, "").always().needed()};
}

/// Zero where it is not given.
Kind<BytesPerSecond> bandwidth_or_none() {
  Kind<BytesPerSecond> kind = bandwidth();
  kind.value = [](const BytesPerSecond& rate) {
    return rate.value > 0 ? yaml_amount(rate) : YamlValue{};
  };
  return kind;
}

/// A path beside the file that names it.
const Kind<MeasuredProducts>& measured_products() {
  static const Kind<MeasuredProducts> kind = {
      "a CSV file, beside this one unless its path is absolute",
      [](const YamlNode& node) {
        const std::filesystem::path file = node.as_string();
        try {
          return read_measured_products(std::filesystem::absolute(
              std::filesystem::path(node.where().file).parent_path() / file));
        } catch (const ConfigError& error) {
          if (error.where().line > 0) throw;
          node.fail(error.what());
        }
      },
      [](const MeasuredProducts& products) {
        return products.rows.empty() ? YamlValue{} : yaml_string(products.file);
      }};
  return kind;
}

}  // namespace

const std::vector<std::string>& known_precisions() {
  static const std::vector<std::string> names = {"fp32", "tf32",      "bf16",  "fp16",
                                                 "fp8",  "fp8_block", "mxfp8", "nvfp4"};
  return names;
}

const FieldList<DeviceKind>& device_kind_fields() {
  using Of = DeviceKind;
  const auto read_reserve = [](const YamlNode& node, Of& kind) {
    kind.reserve = node.as_bytes();
    if (kind.reserve >= kind.memory) node.fail("the reserve leaves nothing of the memory");
  };
  const Kind<double> efficiency{"0 to 1",
                                [](const YamlNode& node) { return read_fraction(node, 1); },
                                [](double value) { return yaml_scalar(shortest(value)); }};
  const Kind<EfficiencyCurve> curve{"", read_efficiency, efficiency_value};
  static const FieldList<Of> fields = {
      field("type", &Of::type,
            word<DeviceType>({{"gpu", DeviceType::Gpu}, {"cpu", DeviceType::Cpu}}),
            "what backward keeps of dropout and attention differs"),
      field("memory", &Of::memory, whole_memory(), "as the driver reports it").always().needed(),
      Field<Of>{"reserve", memory().values,
                "not available to the model: context, communication buffers", read_reserve,
                [](const Of& kind) { return whole_memory().value(kind.reserve); }},
      field("memory_bandwidth", &Of::memory_bandwidth, bandwidth_or_none(), "peak")
          .by_default("required for a `.pt2` model without a measured profile"),
      field("memory_efficiency", &Of::memory_efficiency, efficiency,
            "fraction of it that element-wise operators reach"),
      field("peak", &Of::peak, by_precision(speed()), "dense peak")
          .by_default("likewise, at least one"),
      field("gemm_efficiency", &Of::gemm_efficiency, by_precision(curve),
            "fraction of the peak that a matrix product reaches: points `[work, fraction]`, "
            "interpolated in log(work), below the first falling as work^0.35, above the last "
            "constant. A precision without a curve takes the nearest one's")
          .by_default("`[[2.1 GFLOP, 0.309], [17 GFLOP, 0.626], [137 GFLOP, 0.774], [1100 GFLOP, "
                      "0.744]]`: the mean of five measured curves of A100 and H100 below; the "
                      "report says that it is used"),
      field(
          "attention", &Of::attention, map_of(attention_fields()),
          "of fused attention in 16 bits, the fraction of the peak that its kernel reaches, what a "
          "causal mask hides left out, from sequences of 4,096 on (below, it falls as "
          "sequence^0.35): `{kernel: FlashAttention-3, forward: 0.60, backward: 0.52}`")
          .by_default("0.45 of what a product reaches"),
      field("measured_products", &Of::measured_products, measured_products(),
            "times of [products that you measured](../clusters/README.md#products-of-your-own) on "
            "this device; they go before curves and shares")
          .by_default("none"),
      field("kernel_overhead", &Of::kernel_overhead, duration(),
            "time per operator besides its work"),
      field("stage_overhead", &Of::stage_overhead, duration(),
            "time per forward or backward of a stage"),
      field("iteration_overhead", &Of::iteration_overhead, duration(), "time once a step"),
      field("compute_factor", &Of::compute_factor, real(0.01, 100),
            "by which every time of the roofline is longer than its figures say: a "
            "[calibration](../reference/calibration.md)"),
      field("host_link", &Of::host_link, map_of(host_link_fields()),
            "the way to the host's memory, each way, which offloading takes: `{bandwidth: 25 GB/s, "
            "duplex: half, shared_by: 2}`. `half`: one way at a time; `shared_by`: devices on one "
            "root, each has that part")
          .by_default("none: nothing can be offloaded")};
  return fields;
}

}  // namespace pfeife
