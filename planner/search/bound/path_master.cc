#include "planner/search/bound/path_master.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "planner/cost/estimate/clones.h"
#include "planner/search/price/numbers.h"

namespace pfeife {

// Plain loops over numbers that lie side by side: all processors agree on the results, because the
// file is built without contraction to fused operations.

/// out += sum over c of factors[c] * column c, in this order.
PFEIFE_CLONES static void add_columns(double* out, std::size_t count, const double* columns,
                                      std::size_t stride, const std::vector<double>& factors) {
  for (std::size_t c = 0; c < factors.size(); ++c) {
    if (factors[c] == 0) continue;
    const double factor = factors[c];
    const double* const column = columns + c * stride;
    for (std::size_t k = 0; k < count; ++k) out[k] += factor * column[k];
  }
}

/// Column c -= factors[c] * direction, for all columns.
PFEIFE_CLONES static void eliminate(double* columns, const std::vector<double>& factors,
                                    const std::vector<double>& direction) {
  const std::size_t rows = direction.size();
  for (std::size_t c = 0; c < factors.size(); ++c) {
    if (factors[c] == 0) continue;
    const double factor = factors[c];
    double* const column = columns + c * rows;
    for (std::size_t r = 0; r < rows; ++r) column[r] -= factor * direction[r];
  }
}

std::size_t PathMaster::add(std::span<const double> slope, double constant, bool limit) {
  const std::size_t path = paths();
  if (path == room_) {
    const std::size_t room = 2 * room_ + 8;
    std::vector<double> wider(stages_ * room, 0.0);
    for (std::size_t s = 0; s < stages_; ++s)
      std::copy_n(slopes_.data() + s * room_, path, wider.data() + s * room);
    slopes_ = std::move(wider), room_ = room;
  }
  for (std::size_t s = 0; s < stages_; ++s) slopes_[s * room_ + path] = slope[s];
  unit_.push_back(limit ? 0 : 1);
  constants_.push_back(constant);
  return path;
}

void PathMaster::add_stage(std::span<const double> slope, double low, double high) {
  const std::size_t before = stages_++;
  low_.push_back(low), high_.push_back(high);
  slopes_.resize(stages_ * room_, 0.0);
  std::ranges::copy(slope, slopes_.begin() + static_cast<std::ptrdiff_t>(before * room_));
  if (basis_.empty()) return;
  // High sides and all that comes after them are numbered anew.
  for (std::size_t& column : basis_)
    if (column >= before) column += column < 2 * before ? 1 : 2;
  // The basis is now (B 0; b e) with the new row b of its columns and e = 1 for the low side, -1
  // for the high one, its inverse (B' 0; -ebB' e). Of the two, the amount is not negative of one.
  const std::size_t rows = stages_ + 1;
  std::vector<double> wider(rows * rows, 0.0);
  for (std::size_t k = 0; k + 1 < rows; ++k) {
    const double* const old = inverse_.data() + k * (rows - 1);
    double below = 0;
    for (std::size_t r = 0; r + 1 < rows; ++r) {
      wider[k * rows + r] = old[r];
      if (basis_[r] == sum_column()) below += old[r];
      if (basis_[r] > sum_column()) below -= slope[basis_[r] - sum_column() - 1] * old[r];
    }
    wider[k * rows + rows - 1] = below;
  }
  const bool high_side = wider[rows - 1] >= 0;
  for (std::size_t k = 0; !high_side && k + 1 < rows; ++k) wider[k * rows + rows - 1] *= -1;
  wider.back() = high_side ? -1 : 1;
  inverse_ = std::move(wider);
  basis_.push_back(high_side ? 2 * stages_ - 1 : stages_ - 1);
  amount_.push_back(inverse_[rows - 1]);
  price_basis();
}

std::vector<std::size_t> PathMaster::basic_paths() const {
  std::vector<std::size_t> found;
  for (const std::size_t column : basis_)
    if (column > sum_column()) found.push_back(column - sum_column() - 1);
  return found;
}

void PathMaster::keep_paths(const std::vector<bool>& keep) {
  std::vector<std::size_t> number(keep.size(), 0);
  std::size_t kept = 0;
  for (std::size_t p = 0; p < keep.size(); ++p) {
    if (!keep[p]) continue;
    for (std::size_t s = 0; s < stages_; ++s) slopes_[s * room_ + kept] = slopes_[s * room_ + p];
    constants_[kept] = constants_[p], unit_[kept] = unit_[p];
    number[p] = kept++;
  }
  constants_.resize(kept), unit_.resize(kept);
  for (std::size_t& column : basis_)
    if (column > sum_column()) column = sum_column() + 1 + number[column - sum_column() - 1];
}

void PathMaster::set_box(std::span<const double> low, std::span<const double> high) {
  low_.assign(low.begin(), low.end());
  high_.assign(high.begin(), high.end());
}

double PathMaster::objective(std::size_t column) const {
  if (column < stages_) return low_[column];
  if (column < 2 * stages_) return -high_[column - stages_];
  if (column == sum_column()) return work_;
  return constants_[column - sum_column() - 1];
}

void PathMaster::column(std::size_t index, std::vector<double>& out) const {
  out.assign(stages_ + 1, 0.0);
  if (index < stages_) {
    out[index + 1] = 1;
  } else if (index < 2 * stages_) {
    out[index - stages_ + 1] = -1;
  } else if (index == sum_column()) {
    std::fill(out.begin() + 1, out.end(), 1.0);
  } else {
    out[0] = unit_[index - sum_column() - 1];
    for (std::size_t s = 0; s < stages_; ++s) out[s + 1] = -slope(index - sum_column() - 1, s);
  }
}

/// The best loads for one path alone: fill the box from below, cheapest stages first. The stage
/// that is filled in part has neither side of its box in the basis.
void PathMaster::start(std::size_t path) {
  std::vector<std::size_t> order(stages_);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t s) { return slope(path, s); });
  double left = work_ - std::accumulate(low_.begin(), low_.end(), 0.0);
  std::size_t part = 0;
  while (part + 1 < stages_ && left > high_[order[part]] - low_[order[part]]) {
    left -= high_[order[part]] - low_[order[part]];
    ++part;
  }
  basis_.assign(1, sum_column() + 1 + path);
  basis_.push_back(sum_column());
  for (std::size_t i = 0; i < stages_; ++i)
    if (i != part) basis_.push_back(i < part ? stages_ + order[i] : order[i]);
  invert();
}

/// One step of Gauss-Jordan: of the row, every other row takes what makes its column `c` 0. What
/// the inverse has grown to is kept where the matrix has become the identity.
PFEIFE_CLONES static void sweep(double* matrix, std::size_t rows, std::size_t c) {
  double* const row = matrix + c * rows;
  const double factor = 1 / row[c];
  row[c] = 1;
  for (std::size_t k = 0; k < rows; ++k) row[k] *= factor;
  for (std::size_t r = 0; r < rows; ++r) {
    double* const other = matrix + r * rows;
    const double times = other[c];
    if (r == c || times == 0) continue;
    other[c] = 0;
    for (std::size_t k = 0; k < rows; ++k) other[k] -= times * row[k];
  }
}

/// Gauss-Jordan on the basis, from scratch.
void PathMaster::invert() {
  const std::size_t rows = stages_ + 1;
  std::vector<double> matrix(rows * rows), basis_column;
  for (std::size_t c = 0; c < rows; ++c) {
    column(basis_[c], basis_column);
    for (std::size_t r = 0; r < rows; ++r) matrix[r * rows + c] = basis_column[r];
  }
  std::vector<std::size_t> origin(rows);  // [row] where it was before rows changed places
  std::iota(origin.begin(), origin.end(), std::size_t{0});
  for (std::size_t c = 0; c < rows; ++c) {
    std::size_t largest = c;
    for (std::size_t r = c + 1; r < rows; ++r)
      if (std::abs(matrix[r * rows + c]) > std::abs(matrix[largest * rows + c])) largest = r;
    if (largest != c) {
      std::swap_ranges(&matrix[c * rows], &matrix[c * rows] + rows, &matrix[largest * rows]);
      std::swap(origin[c], origin[largest]);
    }
    sweep(matrix.data(), rows, c);
  }
  inverse_.resize(rows * rows);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t k = 0; k < rows; ++k) inverse_[origin[k] * rows + r] = matrix[r * rows + k];
  amount_.assign(inverse_.data(), inverse_.data() + rows);
  price_basis();
}

void PathMaster::price_basis() {
  const std::size_t rows = stages_ + 1;
  prices_.assign(rows, 0.0);
  if (basis_.empty()) return;
  for (std::size_t r = 0; r < rows; ++r) {
    const double worth = objective(basis_[r]);
    for (std::size_t k = 0; k < rows; ++k) prices_[k] += worth * inverse_[k * rows + r];
  }
}

double PathMaster::violation(std::size_t path) const {
  double sum = constants_[path] - unit_[path] * prices_[0];
  for (std::size_t s = 0; s < stages_; ++s) sum += prices_[s + 1] * slope(path, s);
  return sum;
}

std::optional<std::size_t> PathMaster::most_violated(double tolerance) {
  violations_.resize(paths());
  for (std::size_t p = 0; p < paths(); ++p) violations_[p] = constants_[p] - unit_[p] * prices_[0];
  row_.assign(prices_.begin() + 1, prices_.end());
  add_columns(violations_.data(), paths(), slopes_.data(), room_, row_);
  const auto most = std::ranges::max_element(violations_);
  if (most == violations_.end() || *most <= tolerance) return std::nullopt;
  return static_cast<std::size_t>(most - violations_.begin());
}

bool PathMaster::enter_path(std::size_t path) {
  if (basis_.empty()) {
    start(path);
    return true;
  }
  return pivot(sum_column() + 1 + path);
}

PathMaster::Entered PathMaster::enter_box(double tolerance) {
  double worst = tolerance;
  std::size_t side = sum_column();
  for (std::size_t s = 0; s < stages_; ++s) {
    const double below = low_[s] - prices_[s + 1], above = prices_[s + 1] - high_[s];
    if (below > worst) worst = below, side = s;
    if (above > worst) worst = above, side = stages_ + s;
  }
  if (side == sum_column()) return Entered::Nothing;
  return pivot(side) ? Entered::Yes : Entered::Stuck;
}

bool PathMaster::pivot(std::size_t entering) {
  const std::size_t rows = stages_ + 1;
  column(entering, entering_);
  direction_.assign(rows, 0.0);
  add_columns(direction_.data(), rows, inverse_.data(), rows, entering_);
  std::size_t leaving = rows;
  double step = kInfinite;
  for (std::size_t r = 0; r < rows; ++r) {
    if (direction_[r] <= 1e-9 || basis_[r] == sum_column()) continue;
    const double ratio = std::max(0.0, amount_[r]) / direction_[r];
    if (ratio < step - 1e-13 || (ratio < step + 1e-13 && direction_[r] > direction_[leaving]))
      step = std::min(step, ratio), leaving = r;
  }
  if (leaving == rows) {
    note_contradiction(entering);
    return false;
  }
  basis_[leaving] = entering;
  if (++pivots_ % 256 == 0) {
    invert();
    return true;
  }
  const double factor = 1 / direction_[leaving];
  amount_[leaving] *= factor;
  for (std::size_t r = 0; r < rows; ++r)
    if (r != leaving) amount_[r] -= direction_[r] * amount_[leaving];
  row_.resize(rows);
  for (std::size_t k = 0; k < rows; ++k) row_[k] = inverse_[k * rows + leaving] * factor;
  eliminate(inverse_.data(), row_, direction_);
  for (std::size_t k = 0; k < rows; ++k) inverse_[k * rows + leaving] = row_[k];
  double gain = objective(entering);
  for (std::size_t k = 0; k < rows; ++k) gain -= prices_[k] * entering_[k];
  for (std::size_t k = 0; k < rows; ++k) prices_[k] += gain * row_[k];
  return true;
}

/// The dual grows without end along this direction.
void PathMaster::note_contradiction(std::size_t entering) {
  contradiction_.clear();
  if (entering > sum_column()) contradiction_.push_back({entering - sum_column() - 1, 1.0});
  for (std::size_t r = 0; r < basis_.size(); ++r)
    if (basis_[r] > sum_column() && direction_[r] < -1e-9)
      contradiction_.push_back({basis_[r] - sum_column() - 1, -direction_[r]});
  std::erase_if(contradiction_, [&](const Weight& w) { return unit_[w.path] != 0; });
}

std::vector<PathMaster::Weight> PathMaster::weights() const {
  std::vector<Weight> found;
  for (std::size_t r = 0; r < basis_.size(); ++r)
    if (basis_[r] > sum_column() && amount_[r] > 0)
      found.push_back({basis_[r] - sum_column() - 1, amount_[r]});
  return found;
}

}  // namespace pfeife
