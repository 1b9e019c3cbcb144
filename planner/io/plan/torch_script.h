// The script that lies beside split_points.json and runs the plan in torch.distributed.pipelining.
#pragma once

#include <string_view>

namespace pfeife {

/// Python, complete: run_in_torch.py of a plan's folder. The same for every plan.
std::string_view torch_script();

}  // namespace pfeife
