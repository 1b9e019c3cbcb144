// Optimizers: what each keeps of a parameter from step to step, and what its step moves.
//   optimizer_work(Optimizer::Lion, {4096, 4096}, Bytes{4}).state  // 64 MiB
//
// One table (optimizer.cc), a row each. States are those of torch.optim in PyTorch 2.11, counted
// there, and of the layouts of bitsandbytes and torchao. Not modelled: what tensor parallelism
// gathers for Muon's products; a rank multiplies its own part of a matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// One of the table, or the user's own. A kind is an optimizer by itself: Optimizer::Adam.
struct Optimizer {
  enum Kind { Sgd, Momentum, MomentumBf16, Adam, AdamW, Adam8Bit, Adafactor, Lion, Muon, Own };

  Kind kind = Adam;
  double state_bytes = 0;    ///< Own: of an element, with a master copy where there is one
  double traffic_bytes = 0;  ///< Own: that a step moves for an element; 0 = in one pass over all

  constexpr Optimizer() = default;
  constexpr Optimizer(Kind of) : kind(of) {}
  constexpr Optimizer(Kind of, double state, double traffic)
      : kind(of), state_bytes(state), traffic_bytes(traffic) {}
  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};

/// "adam"; of the user's own "{state_bytes: 1.5, traffic_bytes: 15}".
std::string to_string(const Optimizer& optimizer);
/// All of the table.
std::vector<Optimizer> known_optimizers();
/// The optimizers that pfeife-run has.
std::vector<Optimizer> runnable_optimizers();

/// A product of matrices in bf16, done so often.
struct OptimizerProduct {
  Flops flops;
  Bytes bytes{0};  ///< read and written
  std::int64_t times = 0;
};
struct OptimizerWork {
  Bytes state{0};  ///< kept between steps
  Bytes moved{0};  ///< by the elementwise part of a step
  std::vector<OptimizerProduct> products;
};

/// Parameters as an optimizer finds them.
enum class Masters {
  None,  ///< elements are of the type that is updated; gradients, too
  Fp32,  ///< in 16 bits, with fp32 gradients and, unless the optimizer does without, fp32 copies
};

/// The step of a parameter with `sizes` and elements of `element` bytes. `hidden`: of a hidden
/// layer, which Muon treats by products if it is a matrix, or a stack of matrices, and else as
/// AdamW does.
OptimizerWork optimizer_work(const Optimizer& optimizer, const std::vector<std::int64_t>& sizes,
                             Bytes element, bool hidden = true, Masters masters = Masters::None);

/// State of fp32 parameters of which nothing but their bytes is known: as one square matrix.
Bytes optimizer_state(const Optimizer& optimizer, Bytes parameters);

}  // namespace pfeife
