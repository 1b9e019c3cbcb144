// Told of every function that autograd runs backward on this thread.
#pragma once

#include <functional>

#include "runtime/device/aten.h"

namespace pfeife {

/// While it lives, `begins` is called before each backward function with the number that autograd
/// gave it in the forward (at::sequence_number), or with a negative one for the functions that add
/// to a parameter's gradient. One at a time on a thread.
class BackwardWatch {
 public:
  explicit BackwardWatch(std::function<void(std::int64_t)> begins);
  ~BackwardWatch();
  BackwardWatch(const BackwardWatch&) = delete;
  BackwardWatch& operator=(const BackwardWatch&) = delete;

 private:
  std::function<void(std::int64_t)> begins_;
  std::uint64_t callback_ = 0;
};

}  // namespace pfeife
