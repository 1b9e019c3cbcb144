#include "planner/ir/model/profile.h"

namespace pfeife {

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return "fp32";
    case Precision::Tf32:
      return "tf32";
    case Precision::Bf16Amp:
      return "bf16_amp";
    case Precision::Fp16Amp:
      return "fp16_amp";
  }
  return "";
}

std::string to_string(FigureSource source) {
  switch (source) {
    case FigureSource::Measured:
      return "measured";
    case FigureSource::Roofline:
      return "roofline";
    case FigureSource::Imported:
      return "imported";
  }
  return "";
}

Nanoseconds each_action(const StageOverheads& overheads) {
  return (overheads.forward + overheads.backward_input + overheads.backward_weight) / 2;
}

}  // namespace pfeife
