// How a step is done, in the words of every file.
#pragma once

#include "planner/io/files/fields.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// "fp32", ...
const Words<Precision>& precisions();
/// "train", "forward".
const Words<Mode>& modes();
/// "adam", or {state_bytes: 1.5, traffic_bytes: 15}.
Kind<Optimizer> optimizer_kind();
/// What each microbatch costs beside one of the model's own size: [1, 0.5, [0.8, 0.4]], where a
/// pair is the factor outside attention and that of attention. Positive.
Kind<std::vector<MicrobatchScale>> microbatch_scales();
/// The same from the command line. Errors: ConfigError.
Optimizer optimizer_named(const std::string& text);
/// {precision: ..., optimizer: ..., microbatch_size: ...}, as plans and profiles have it.
Kind<Training> training_map();

}  // namespace pfeife
