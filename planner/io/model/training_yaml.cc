#include "planner/io/model/training_yaml.h"

#include "planner/io/files/yaml_document.h"

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
      field("mode", &Training::mode, word(modes()), "")};
  return fields;
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
          }};
}

Optimizer optimizer_named(const std::string& text) {
  const YamlDocument document = YamlDocument::parse("optimizer: " + text, "--optimizer");
  return optimizer_kind().read(document.root().at("optimizer"));
}

Kind<Training> training_map() { return map_of(training_fields_of_files()); }

}  // namespace pfeife
