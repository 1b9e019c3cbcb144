// The files that a plan's costs are made of, as plan.yaml has them.
#pragma once

#include "planner/io/files/fields.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

/// What `format` of a model may be.
const Words<ModelFormat>& model_formats();

/// The key `parallel` of a config and of plan.yaml's files.
const FieldList<Replicas>& replica_fields();
Kind<Replicas> replicas_map();

/// `files` of plan.yaml.
Kind<PlanFiles> files_map();

}  // namespace pfeife
