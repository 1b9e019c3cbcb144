// What NVIDIA's driver says of the cards, without LibTorch's library for CUDA.
#pragma once

#include <string>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// The driver's library, found when it is asked for.
class Driver {
 public:
  Driver();
  bool is_there() const { return library_ != nullptr; }
  /// 0 without a driver. CUDA_VISIBLE_DEVICES hides the others.
  int cards() const;
  std::string name(int card) const;
  /// The same on every host for no two cards; "" if the driver does not say.
  std::string identity(int card) const;
  /// The newest CUDA that it runs: 13000 is 13.0.
  int cuda_version() const;

 private:
  template <class Function>
  Function find(const char* name) const;
  void* library_;  // stays loaded
};

}  // namespace pfeife
