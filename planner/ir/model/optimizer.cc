#include "planner/ir/model/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

struct Row {
  Optimizer::Kind kind;
  const char* name;
  double elements;  ///< state, in elements of the parameter's type
  double bytes;     ///< state besides, of an element
  double more;      ///< bytes that a step moves for an fp32 element beyond one pass over all
  bool master;      ///< fp32 copies of parameters in 16 bits
  bool runs;        ///< in pfeife-run
};

/// `more`: PyTorch's multi-tensor passes of momentum (buffer scaled, gradient added, parameter
/// moved: 32 bytes), Adam (the same for two moments, square root, division, step: 80) and AdamW
/// (decoupled decay reads and writes the parameter once more: 88); Adafactor reads the gradient
/// twice more, for sums of rows and columns and for the norm of the update. The others are fused,
/// or one pass at least.
constexpr std::array<Row, 9> kRows = {{
    {Optimizer::Sgd, "sgd", 0, 0, 0, true, true},
    {Optimizer::Momentum, "momentum", 1, 0, 12, true, true},
    {Optimizer::MomentumBf16, "momentum_bf16", 0, 2, 0, false, false},
    {Optimizer::Adam, "adam", 2, 0, 52, true, true},
    {Optimizer::AdamW, "adamw", 2, 0, 60, true, true},
    {Optimizer::Adam8Bit, "adam_8bit", 0, 2, 0, false, false},
    {Optimizer::Adafactor, "adafactor", 0, 0, 8, true, false},
    {Optimizer::Lion, "lion", 1, 0, 0, true, false},
    {Optimizer::Muon, "muon", 1, 0, 0, true, false},
}};

const Row& row_of(Optimizer::Kind kind) { return *std::ranges::find(kRows, kind, &Row::kind); }

constexpr std::int64_t kFp32 = 4;
/// bitsandbytes, torchao: smaller parameters stay in 32 bits; a scale each block and moment.
constexpr std::int64_t kLeast8Bit = 4096, kBlock = 256;
/// Steps of Newton and Schulz (torch.optim.Muon's default).
constexpr std::int64_t kNewtonSchulzSteps = 5;
/// Mixed precision, of an element: gradient to fp32 and unscaled 14, its norm and clipping 12, read
/// for the step 4, the parameter in 16 bits written 2 and itself or its copy read again.
constexpr std::int64_t kMixedTraffic = 14 + 12 + 4 + 2;

std::int64_t product_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

std::int64_t rounded_up(double bytes) { return static_cast<std::int64_t>(std::ceil(bytes)); }

/// Factors over the last two dimensions; a vector in full (torch.optim.Adafactor).
std::int64_t adafactor_elements(const std::vector<std::int64_t>& sizes) {
  const std::int64_t all = product_of(sizes);
  if (sizes.size() < 2 || all == 0) return all;
  const std::int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  return all / (rows * columns) * (rows + columns);
}

bool is_stack_of_matrices(const std::vector<std::int64_t>& sizes) {
  return sizes.size() == 2 || sizes.size() == 3;
}

/// Each matrix of m x n, m <= n, takes in each step: X X', its square, and the result times X.
std::vector<OptimizerProduct> newton_schulz(const std::vector<std::int64_t>& sizes) {
  const auto [m, n] = std::minmax(sizes[sizes.size() - 2], sizes.back());
  if (m == 0) return {};
  const std::int64_t steps = kNewtonSchulzSteps * (product_of(sizes) / (m * n));
  const auto product = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return std::pair(
        Flops{2.0 * static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c)},
        Bytes{2 * (a * b + b * c + a * c)});
  };
  const auto [wide, wide_bytes] = product(m, n, m);
  const auto [square, square_bytes] = product(m, m, m);
  return {{wide, wide_bytes, 2 * steps}, {square, square_bytes, steps}};
}

/// State of `count` elements besides a master copy.
std::int64_t state_of(const Optimizer& optimizer, const std::vector<std::int64_t>& sizes,
                      std::int64_t element) {
  const std::int64_t count = product_of(sizes);
  if (optimizer.kind == Optimizer::Own)
    return rounded_up(optimizer.state_bytes * static_cast<double>(count));
  if (optimizer.kind == Optimizer::Adafactor) return adafactor_elements(sizes) * element;
  if (optimizer.kind == Optimizer::Adam8Bit)
    return count < kLeast8Bit ? 2 * kFp32 * count
                              : 2 * count + 2 * kFp32 * ((count + kBlock - 1) / kBlock);
  const Row& row = row_of(optimizer.kind);
  return rounded_up((row.elements * static_cast<double>(element) + row.bytes) *
                    static_cast<double>(count));
}

}  // namespace

std::string to_string(const Optimizer& optimizer) {
  if (optimizer.kind != Optimizer::Own) return row_of(optimizer.kind).name;
  return "{state_bytes: " + shortest(optimizer.state_bytes) +
         (optimizer.traffic_bytes > 0 ? ", traffic_bytes: " + shortest(optimizer.traffic_bytes)
                                      : "") +
         "}";
}

std::vector<Optimizer> known_optimizers() {
  std::vector<Optimizer> all;
  for (const Row& row : kRows) all.emplace_back(row.kind);
  return all;
}

std::vector<Optimizer> runnable_optimizers() {
  std::vector<Optimizer> all;
  for (const Row& row : kRows)
    if (row.runs) all.emplace_back(row.kind);
  return all;
}

OptimizerWork optimizer_work(const Optimizer& optimizer, const std::vector<std::int64_t>& sizes,
                             Bytes element, bool hidden, Masters masters) {
  const bool muon = optimizer.kind == Optimizer::Muon;
  if (muon && !(hidden && is_stack_of_matrices(sizes)))
    return optimizer_work(Optimizer::AdamW, sizes, element, hidden, masters);
  const bool own = optimizer.kind == Optimizer::Own, mixed = masters == Masters::Fp32;
  const std::int64_t count = product_of(sizes), updated = mixed ? kFp32 : element.value;
  OptimizerWork work;
  std::int64_t state = state_of(optimizer, sizes, updated);
  const bool copies = mixed && !own && row_of(optimizer.kind).master;
  if (copies) state += kFp32 * count;
  work.state = Bytes{state};
  if (own && optimizer.traffic_bytes > 0) {
    work.moved = Bytes{rounded_up(optimizer.traffic_bytes * static_cast<double>(count))};
  } else if (mixed) {
    work.moved = Bytes{count * (kMixedTraffic + (copies ? kFp32 : element.value)) + 2 * state};
  } else {
    const double more = own ? 0 : row_of(optimizer.kind).more;
    work.moved = Bytes{3 * element.value * count + 2 * state +
                       rounded_up(more * static_cast<double>(element.value * count) / kFp32)};
  }
  if (muon) work.products = newton_schulz(sizes);
  return work;
}

Bytes optimizer_state(const Optimizer& optimizer, Bytes parameters) {
  const std::int64_t count = parameters.value / kFp32;
  const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  if (optimizer.kind == Optimizer::Adafactor)
    return Bytes{state_of(optimizer, {side, side}, kFp32)};
  if (optimizer.kind == Optimizer::Own || optimizer.kind == Optimizer::Adam8Bit)
    return Bytes{state_of(optimizer, {count}, kFp32)};
  const Row& row = row_of(optimizer.kind);
  return Bytes{
      rounded_up((row.elements + row.bytes / kFp32) * static_cast<double>(parameters.value))};
}

}  // namespace pfeife
