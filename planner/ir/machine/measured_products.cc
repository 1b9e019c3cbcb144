#include "planner/ir/machine/measured_products.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace pfeife {
namespace {

/// Shapes of which one stands for the other: rows of a group of experts are a mean, rounded.
constexpr double kAlike = 0.01;

/// Neighbours that are further apart say nothing of what lies between.
constexpr std::int64_t kFurthest = 4;

using Sides = std::array<std::int64_t, 3>;

/// Rows that a product may be between, those of its own pass in front.
class Neighbours {
 public:
  Neighbours(std::span<const MeasuredProduct> rows, const std::string& precision,
             const ProductShape& shape)
      : sides_(shape.sides()) {
    for (const ProductPass pass : {shape.pass, ProductPass::Any})
      for (const MeasuredProduct& row : rows)
        if (row.shape.op == shape.op && row.shape.groups == shape.groups &&
            row.shape.pass == pass && row.precision == precision)
          rows_.push_back(&row);
  }

  std::optional<double> time_at(const Sides& sides) const {
    for (const MeasuredProduct* row : rows_)
      if (row->shape.sides() == sides) return row->seconds;
    return std::nullopt;
  }
  /// The time of the first row that stands for the shape.
  std::optional<double> alike() const {
    for (const MeasuredProduct* row : rows_) {
      const Sides row_sides = row->shape.sides();
      int differing = 0;
      double ratio = 1;
      for (std::size_t side = 0; side < sides_.size(); ++side) {
        if (row_sides[side] == sides_[side]) continue;
        ++differing;
        ratio *= static_cast<double>(sides_[side]) / static_cast<double>(row_sides[side]);
      }
      if (differing == 1 && std::abs(ratio - 1) <= kAlike) return row->seconds * ratio;
    }
    return std::nullopt;
  }
  /// Where both neighbours differ from the shape in one side; the nearest of all such pairs.
  std::optional<double> along_one_side() const {
    std::optional<double> best;
    double least = 0;
    for (std::size_t side = 0; side < sides_.size(); ++side) {
      const auto differs_elsewhere = [&](const Sides& row) {
        for (std::size_t i = 0; i < row.size(); ++i)
          if (i != side && row[i] != sides_[i]) return true;
        return false;
      };
      const auto ends = around(side, differs_elsewhere);
      if (!ends) continue;
      const double apart =
          std::log(static_cast<double>((*ends)[1]) / static_cast<double>((*ends)[0]));
      if (best && apart >= least) continue;
      Sides low = sides_, high = sides_;
      low[side] = (*ends)[0], high[side] = (*ends)[1];
      best = between(side, *ends, *time_at(low), *time_at(high));
      least = apart;
    }
    return best;
  }
  /// Where every corner of the box of nearest sides is measured.
  std::optional<double> in_box() const {
    std::array<std::array<std::int64_t, 2>, 3> box{};
    for (std::size_t side = 0; side < sides_.size(); ++side) {
      const auto ends = around(side, [](const Sides&) { return false; });
      if (!ends) return std::nullopt;
      box[side] = *ends;
    }
    return in_box(box, {}, 0);
  }

 private:
  /// The nearest values of a side below and above, or its own twice; of rows that are not skipped.
  template <class Skips>
  std::optional<std::array<std::int64_t, 2>> around(std::size_t side, const Skips& skips) const {
    std::int64_t below = 0, above = 0;
    for (const MeasuredProduct* row : rows_) {
      const Sides row_sides = row->shape.sides();
      if (skips(row_sides)) continue;
      if (row_sides[side] <= sides_[side]) below = std::max(below, row_sides[side]);
      if (row_sides[side] >= sides_[side] && (above == 0 || row_sides[side] < above))
        above = row_sides[side];
    }
    if (below == 0 || above == 0 || above > kFurthest * below) return std::nullopt;
    return std::array{below, above};
  }
  double between(std::size_t side, const std::array<std::int64_t, 2>& ends, double low,
                 double high) const {
    if (ends[0] == ends[1]) return low;
    const auto log_of = [](std::int64_t value) { return std::log(static_cast<double>(value)); };
    const double share =
        (log_of(sides_[side]) - log_of(ends[0])) / (log_of(ends[1]) - log_of(ends[0]));
    return low * std::pow(high / low, share);
  }
  std::optional<double> in_box(const std::array<std::array<std::int64_t, 2>, 3>& box, Sides corner,
                               std::size_t side) const {
    if (side == box.size()) return time_at(corner);
    corner[side] = box[side][0];
    const auto low = in_box(box, corner, side + 1);
    corner[side] = box[side][1];
    const auto high = in_box(box, corner, side + 1);
    if (!low || !high) return std::nullopt;
    return between(side, box[side], *low, *high);
  }

  Sides sides_;
  std::vector<const MeasuredProduct*> rows_;
};

}  // namespace

std::string to_string(ProductOperator op) {
  switch (op) {
    case ProductOperator::Product:
      return "product";
    case ProductOperator::Attention:
      return "attention";
    case ProductOperator::CausalAttention:
      return "causal_attention";
  }
  return "";
}

std::string to_string(ProductPass pass) {
  switch (pass) {
    case ProductPass::Any:
      return "";
    case ProductPass::Forward:
      return "forward";
    case ProductPass::Input:
      return "input";
    case ProductPass::Weight:
      return "weight";
    case ProductPass::WeightSum:
      return "weight_sum";
  }
  return "";
}

std::optional<ProductTime> MeasuredProducts::find(const std::string& precision,
                                                  const ProductShape& shape) const {
  if (rows.empty() || shape.groups == 0) return std::nullopt;
  const Neighbours neighbours(rows, precision, shape);
  if (const auto exact = neighbours.time_at(shape.sides()))
    return ProductTime{*exact, ProductSource::Measured};
  auto between = neighbours.alike();
  if (!between) between = neighbours.along_one_side();
  if (!between) between = neighbours.in_box();
  if (!between) return std::nullopt;
  return ProductTime{*between, ProductSource::Interpolated};
}

std::string coverage_text(const std::vector<ProductUse>& uses) {
  std::array<std::int64_t, 3> counts{};
  for (const ProductUse& use : uses) counts[static_cast<std::size_t>(use.source)] += use.times;
  std::string text = "of a microbatch's " + std::to_string(counts[0] + counts[1] + counts[2]) +
                     " products " + std::to_string(counts[0]) + " as measured, " +
                     std::to_string(counts[1]) + " interpolated between measured ones, " +
                     std::to_string(counts[2]) + " by the curve";
  return text;
}

}  // namespace pfeife
