// How a step is done, in the words of every file.
#pragma once

#include "planner/io/files/fields.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// "fp32", ...
const Words<Precision>& precisions();
/// "sgd", ...
const Words<Optimizer>& optimizers();
/// {precision: ..., optimizer: ..., microbatch_size: ...}, as plans and profiles have it.
Kind<Training> training_map();

}  // namespace pfeife
