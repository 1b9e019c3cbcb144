// Costs as a user types them: "f=1,i=1,w=1,transfer=0.05", in milliseconds.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/schedule/stage_costs.h"

namespace pfeife::tool {

/// Times in ms; a list gives one for each stage, a single value holds for all.
struct UnitCosts {
  std::vector<double> forward{1}, backward_input{1}, backward_weight{1}, optimizer{0};
  std::vector<double> offload{
      0};  ///< one way, of a stage that offloads all it saves; 0: it keeps it
  /// S and T, where all ranks share the output layer.
  std::vector<double> share{1}, rest{1};
  double collective = 0;  ///< each of BROADCAST_F, REDUCE_S and REDUCE_T
  double transfer = 0;
  double overlap = 1;       ///< factor of OVERLAP_F_B
  Mode mode = Mode::Train;  ///< Forward: of F alone
  double linear = 1;  ///< share of the work that grows with a slice's length; the rest is attention

  friend bool operator==(const UnitCosts&, const UnitCosts&) = default;
};

/// Reads "f=1,b=2,transfer=0.05": f, i, w, b (= i + w, half each), s, t, optimizer, offload,
/// transfer, collective in ms, overlap as a factor, linear as a share. Lists of one value a stage
/// are separated by ':', as in f=15:10. Errors: ConfigError with the key and what is allowed.
UnitCosts parse_costs(const std::string& text);

/// A time in ms that `option` was given. Errors: ConfigError.
double parse_ms(const std::string& option, const std::string& text);

/// The costs of a chain of that many stages, whose microbatches are cut into slices of equal
/// length and whose ranks share the output layer with so many barriers (head_barriers). A message
/// takes equally long whatever it carries. Errors: ConfigError if a list has another length.
StageCosts stage_costs_of(const UnitCosts& costs, std::size_t stages, std::size_t slices = 1,
                          std::size_t head_barriers = 0);

}  // namespace pfeife::tool
