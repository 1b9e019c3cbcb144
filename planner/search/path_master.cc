#include "planner/search/path_master.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace pfeife {

/// Eight sums side by side: one alone would wait for every addition. Always in the same order, so
/// that all processors agree.
static double dot(const double* a, const double* b, std::size_t count) {
  double lanes[8] = {};
  std::size_t k = 0;
  for (; k + 8 <= count; k += 8)
    for (std::size_t j = 0; j < 8; ++j) lanes[j] += a[k + j] * b[k + j];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

std::size_t PathMaster::add(std::span<const double> slope, double constant, bool limit) {
  unit_.push_back(limit ? 0 : 1);
  slopes_.insert(slopes_.end(), slope.begin(), slope.end());
  constants_.push_back(constant);
  return constants_.size() - 1;
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
    std::copy_n(slopes_.begin() + static_cast<std::ptrdiff_t>(p * stages_), stages_,
                slopes_.begin() + static_cast<std::ptrdiff_t>(kept * stages_));
    constants_[kept] = constants_[p], unit_[kept] = unit_[p];
    number[p] = kept++;
  }
  slopes_.resize(kept * stages_), constants_.resize(kept), unit_.resize(kept);
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

/// Gauss-Jordan on the basis, from scratch.
void PathMaster::invert() {
  const std::size_t rows = stages_ + 1;
  std::vector<double> matrix(rows * rows), one;
  for (std::size_t c = 0; c < rows; ++c) {
    column(basis_[c], one);
    for (std::size_t r = 0; r < rows; ++r) matrix[r * rows + c] = one[r];
  }
  inverse_.assign(rows * rows, 0.0);
  for (std::size_t r = 0; r < rows; ++r) inverse_[r * rows + r] = 1;
  for (std::size_t c = 0; c < rows; ++c) {
    std::size_t largest = c;
    for (std::size_t r = c + 1; r < rows; ++r)
      if (std::abs(matrix[r * rows + c]) > std::abs(matrix[largest * rows + c])) largest = r;
    for (std::size_t k = 0; k < rows; ++k) {
      std::swap(matrix[c * rows + k], matrix[largest * rows + k]);
      std::swap(inverse_[c * rows + k], inverse_[largest * rows + k]);
    }
    const double factor = 1 / matrix[c * rows + c];
    for (std::size_t k = 0; k < rows; ++k) {
      matrix[c * rows + k] *= factor;
      inverse_[c * rows + k] *= factor;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const double times = matrix[r * rows + c];
      if (r == c || times == 0) continue;
      for (std::size_t k = 0; k < rows; ++k) {
        matrix[r * rows + k] -= times * matrix[c * rows + k];
        inverse_[r * rows + k] -= times * inverse_[c * rows + k];
      }
    }
  }
  amount_.resize(rows);
  for (std::size_t r = 0; r < rows; ++r) amount_[r] = inverse_[r * rows];
  price_basis();
}

void PathMaster::price_basis() {
  const std::size_t rows = stages_ + 1;
  prices_.assign(rows, 0.0);
  if (basis_.empty()) return;
  for (std::size_t r = 0; r < rows; ++r) {
    const double worth = objective(basis_[r]);
    for (std::size_t k = 0; k < rows; ++k) prices_[k] += worth * inverse_[r * rows + k];
  }
}

double PathMaster::violation(std::size_t path) const {
  return constants_[path] + dot(slopes_.data() + path * stages_, prices_.data() + 1, stages_) -
         unit_[path] * prices_[0];
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
  direction_.resize(rows);
  for (std::size_t r = 0; r < rows; ++r)
    direction_[r] = dot(inverse_.data() + r * rows, entering_.data(), rows);
  std::size_t leaving = rows;
  double step = std::numeric_limits<double>::infinity();
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
  double* const row = inverse_.data() + leaving * rows;
  const double factor = 1 / direction_[leaving];
  for (std::size_t k = 0; k < rows; ++k) row[k] *= factor;
  amount_[leaving] *= factor;
  for (std::size_t r = 0; r < rows; ++r) {
    const double times = direction_[r];
    if (r == leaving || times == 0) continue;
    double* const other = inverse_.data() + r * rows;
    for (std::size_t k = 0; k < rows; ++k) other[k] -= times * row[k];
    amount_[r] -= times * amount_[leaving];
  }
  double gain = objective(entering);
  for (std::size_t k = 0; k < rows; ++k) gain -= prices_[k] * entering_[k];
  for (std::size_t k = 0; k < rows; ++k) prices_[k] += gain * row[k];
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
