// What a device can do, for the device kind of a cluster file: products, copies, small operators.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "planner/ir/machine/cluster.h"
#include "runtime/device/aten.h"

namespace pfeife {

/// Measures with the kernel threads that are set: products of square matrices by size in fp32 and
/// bf16, of which the best is the peak; copies of 64 MiB, bytes read and written together; what an
/// operator on one number costs with autograd, forward or backward. `memory` is left alone.
DeviceKind measure_device(const std::string& name, at::Device device,
                          const std::function<void(const std::string&)>& progress);

}  // namespace pfeife
