#include "planner/io/model/training_yaml.h"

#include "planner/io/files/yaml.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

/// The largest number of bytes an element that makes sense: a hundred fp32 copies.
constexpr double kMostBytes = 400;

const FieldList<Optimizer>& own_optimizer_fields() {
  static const FieldList<Optimizer> fields = {
      field("state_bytes", &Optimizer::state_bytes, real(0, kMostBytes), "").always().needed(),
      field("traffic_bytes", &Optimizer::traffic_bytes, real(0, kMostBytes), "")};
  return fields;
}

const FieldList<Training>& training_fields_of_files() {
  static const FieldList<Training> fields = {
      field("precision", &Training::precision, word(precisions()), "").always().needed(),
      field("optimizer", &Training::optimizer, optimizer_kind(), "").always().needed(),
      field("microbatch_size", &Training::microbatch_size, whole<std::int64_t>(1, 1'000'000), "")
          .always()
          .needed(),
      field("mode", &Training::mode, word(modes()), ""),
      field("microbatch_costs", &Training::microbatch_costs, microbatch_scales(), "")};
  return fields;
}

/// Far from any real batch, and safe in 64 bits.
constexpr double kLeastScale = 1e-6, kMostScale = 1e6;

MicrobatchScale read_scale(const YamlNode& node) {
  if (!node.is_sequence()) {
    const double scale = node.as_double(kLeastScale, kMostScale);
    return {scale, scale};
  }
  const std::vector<YamlNode> pair = node.items();
  if (pair.size() != 2)
    node.fail("expected a factor, or two of them: outside attention, and of attention");
  return {pair[0].as_double(kLeastScale, kMostScale), pair[1].as_double(kLeastScale, kMostScale)};
}

YamlValue scale_value(const MicrobatchScale& scale) {
  const YamlValue linear = yaml_scalar(shortest(scale.linear));
  if (scale.linear == scale.attention) return linear;
  return yaml_sequence({linear, yaml_scalar(shortest(scale.attention))});
}

}  // namespace

const Words<Precision>& precisions() {
  static const Words<Precision> words = words_of<Precision>(
      {Precision::Fp32, Precision::Tf32, Precision::Bf16Amp, Precision::Fp16Amp});
  return words;
}

const Words<Mode>& modes() {
  static const Words<Mode> words{{"train", Mode::Train}, {"forward", Mode::Forward}};
  return words;
}

Kind<std::vector<MicrobatchScale>> microbatch_scales() {
  return {"a list",
          [](const YamlNode& node) {
            if (!node.is_sequence())
              node.fail("expected a factor for each microbatch, such as [1, 2, 1.5]");
            std::vector<MicrobatchScale> scales;
            for (const YamlNode& item : node.items()) scales.push_back(read_scale(item));
            if (scales.empty()) node.fail("no microbatch is listed; leave the key out");
            return scales;
          },
          [](const std::vector<MicrobatchScale>& scales) {
            return scales.empty() ? YamlValue{} : list_value(scales, scale_value);
          },
          true,
          {},
          R"({"type":"array"})"};
}

Kind<Optimizer> optimizer_kind() {
  Kind<Optimizer> named = word(words_of<Optimizer>(known_optimizers()));
  const Kind<Optimizer> own = map_of(own_optimizer_fields());
  return {named.values + ", or `{state_bytes: 1.5, traffic_bytes: 15}`",
          [read_name = named.read, read_own = own.read](const YamlNode& node) {
            if (!node.is_map()) return read_name(node);
            Optimizer optimizer = read_own(node);
            optimizer.kind = Optimizer::Own;
            return optimizer;
          },
          [name = named.value, own = own.value](const Optimizer& optimizer) {
            return optimizer.kind == Optimizer::Own ? own(optimizer) : name(optimizer);
          },
          false,
          {},
          either_schema({named.schema, own.schema})};
}

Optimizer optimizer_named(const std::string& text) {
  const YamlDocument document = YamlDocument::parse("optimizer: " + text, "--optimizer");
  return optimizer_kind().read(document.root().at("optimizer"));
}

Kind<Training> training_map() { return map_of(training_fields_of_files()); }

}  // namespace pfeife
