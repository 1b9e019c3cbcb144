#include "planner/io/model/training_yaml.h"

namespace pfeife {
namespace {

const FieldList<Training>& training_fields_of_files() {
  static const FieldList<Training> fields = {
      field("precision", &Training::precision, word(precisions()), "").always().needed(),
      field("optimizer", &Training::optimizer, word(optimizers()), "").always().needed(),
      field("microbatch_size", &Training::microbatch_size, whole<std::int64_t>(1, 1'000'000), "")
          .always()
          .needed()};
  return fields;
}

}  // namespace

const Words<Precision>& precisions() {
  static const Words<Precision> words = words_of<Precision>(
      {Precision::Fp32, Precision::Tf32, Precision::Bf16Amp, Precision::Fp16Amp});
  return words;
}

const Words<Optimizer>& optimizers() {
  static const Words<Optimizer> words =
      words_of<Optimizer>({Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam, Optimizer::AdamW});
  return words;
}

Kind<Training> training_map() { return map_of(training_fields_of_files()); }

}  // namespace pfeife
