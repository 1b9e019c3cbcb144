// The linear program behind the bounds: which longest paths matter, and how much.
//
//   minimise T   subject to   T >= slope_p . x + constant_p   for the paths p found so far,
//                             0 >= slope_m . x + constant_m   for limits m, likewise
//                             sum x = work,   low <= x <= high                (x = loads of stages)
//
// solved through its dual, whose variables are the weights of the paths: a primal simplex with
// paths as columns, S + 1 rows and an explicit inverse. What a branch of the search changes (box,
// constants) is the objective of the dual only, so any basis stays a valid start. The result needs
// no precision: every set of weights gives a valid bound (CutBound); good weights give a good one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pfeife {

class PathMaster {
 public:
  PathMaster(std::size_t stages, double work) : stages_(stages), work_(work) {}

  /// Adds a path, or a limit (which counts as one below); returns its number. The first one, a
  /// path, makes the first basis.
  std::size_t add(std::span<const double> slope, double constant, bool limit = false);
  std::size_t paths() const { return constants_.size(); }
  double slope(std::size_t path, std::size_t stage) const { return slopes_[stage * room_ + path]; }

  /// One more load, in [low, high]; slope[p] of path p. The basis stays, with the load at
  /// the side that the paths want: what that violates is for the next pivots.
  void add_stage(std::span<const double> slope, double low, double high);

  /// Numbers of the paths in the basis; drops the paths that are not to be kept (basic ones must
  /// be) and numbers the others anew in their order.
  std::vector<std::size_t> basic_paths() const;
  void keep_paths(const std::vector<bool>& keep);

  /// A new box and new constants for all paths; call price_basis() when all are set.
  void set_box(std::span<const double> low, std::span<const double> high);
  void set_constant(std::size_t path, double constant) { constants_[path] = constant; }
  void price_basis();

  /// Loads and T of the present basis: optimal once no path and no side of the box is violated.
  std::span<const double> loads() const { return {prices_.data() + 1, stages_}; }
  double value() const { return prices_[0]; }

  /// How far T is below the path at the present loads.
  double violation(std::size_t path) const;
  /// The path that is farthest above T, if one is by more than `tolerance`; the first of equals.
  std::optional<std::size_t> most_violated(double tolerance);
  /// Takes the path in. False if the program has no solution: then see contradiction().
  bool enter_path(std::size_t path);
  /// Pivots, about so many at most: on sides of the box, then on the path that `next` names, which
  /// may add it. `spend` is called before each.
  enum class End { Solved, Stuck, Spent };  ///< Solved: no side is violated, and `next` named none
  template <class Next, class Spend>
  End solve(double box_tolerance, std::size_t pivots, const Next& next, const Spend& spend) {
    for (std::size_t k = 0; k < pivots; ++k) {
      spend();
      const Entered side = enter_box(box_tolerance);
      if (side == Entered::Yes) continue;
      if (side == Entered::Stuck) return End::Stuck;
      const std::optional<std::size_t> path = next();
      if (!path) return End::Solved;
      if (!enter_path(*path)) return End::Stuck;
    }
    return End::Spent;
  }

  /// Weight of every path in the basis (they sum to 1) and of every limit.
  struct Weight {
    std::size_t path;
    double weight;
  };
  std::vector<Weight> weights() const;
  /// Weights of limits that cannot all be met, where that is why there is no solution.
  const std::vector<Weight>& contradiction() const { return contradiction_; }

 private:
  /// Takes in the most violated side of the box. Nothing = none is violated by more than
  /// `tolerance`; Stuck = no solution.
  enum class Entered { Yes, Nothing, Stuck };
  Entered enter_box(double tolerance);

  // Columns: 0..S-1 low sides, S..2S-1 high sides, 2S the sum, 2S + 1 + p path p.
  std::size_t sum_column() const { return 2 * stages_; }
  double objective(std::size_t column) const;
  void column(std::size_t index, std::vector<double>& out) const;
  void start(std::size_t path);
  void invert();
  bool pivot(std::size_t column);
  void note_contradiction(std::size_t entering);

  std::size_t stages_;
  double work_;
  std::size_t room_ = 0;        // paths that slopes_ has room for
  std::vector<double> slopes_;  // [stage * room_ + path]
  std::vector<double> constants_, low_, high_;
  std::vector<double> unit_;  // [path] 1; 0 = limit
  std::vector<Weight> contradiction_;
  std::vector<std::size_t> basis_;  // [row] column
  std::vector<double> inverse_;     // [... * (S + 1) + row]
  std::vector<double> amount_;      // [row] value of the basic variable
  std::vector<double> prices_;      // [row] T, then x
  std::vector<double> entering_, direction_, row_, violations_;
  std::size_t pivots_ = 0;
};

}  // namespace pfeife
