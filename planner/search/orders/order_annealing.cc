#include "planner/search/orders/order_annealing.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "planner/schedules/order_clock.h"
#include "planner/search/cuts/cut_moves.h"
#include "planner/search/price/numbers.h"

namespace pfeife {
namespace {

constexpr double kTooFull = Candidates::kTooFull;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr double kLate = 1.01;     ///< a list's own time is at most a little more than its order's
constexpr double kHottest = 3e-2;  ///< temperature at first, of the score
constexpr double kColdest = 3e-4;  ///< and in the end
constexpr int kAttempts = 4;       ///< orders of the same cuts until one fits

/// Cuts, the rule that makes the best order known for them, and what that is worth: step time in
/// ns, or kTooFull + bytes too many.
struct Ordered {
  Cuts cuts;
  std::size_t rule = 0;
  double score = kInfinite;
};

class OrderAnnealing {
 public:
  OrderAnnealing(const OrderBuilder& builder, const std::vector<bool>& recompute,
                 std::uint64_t seed)
      : builder_(builder),
        recompute_(recompute),
        moves_(builder.model(), builder.placement()),
        random_(seed),
        rules_(order_rules(builder.placement().stages(), builder.spec().ranks)),
        unseen_(builder.spec().ranks) {}

  std::unique_ptr<Candidates> run(const Cuts& from, std::size_t tries) {
    Ordered now{from, 0}, best;
    std::vector<std::size_t> all(rules_);
    std::iota(all.begin(), all.end(), std::size_t{0});
    weigh(now, all, kInfinite);
    for (std::size_t k = 0; k < tries; ++k) {
      const double done = static_cast<double>(k) / static_cast<double>(tries);
      const double scale = now.score < kTooFull ? now.score : now.score - kTooFull;
      const double temperature = scale * kHottest * std::pow(kColdest / kHottest, done);
      Ordered next{moves_.random(now.cuts, random_), now.rule};
      const std::size_t other = random_.below(rules_);
      const double limit = now.score - temperature * std::log(std::max(random_.unit(), 1e-12));
      if (next.cuts == now.cuts) continue;
      weigh(next, std::array{now.rule, other}, limit);
      if (next.score > limit) continue;
      now = std::move(next);
      for (int attempt = 0; attempt < kAttempts && now.score < best.score && now.score < kTooFull;
           ++attempt) {
        if (keep(now))
          best = now;
        else
          weigh(now, std::array{now.rule, random_.below(rules_)}, kInfinite);
      }
    }
    return std::move(best_);
  }

 private:
  OrderModel model_of(const Cuts& cuts) const {
    const StageCosts costs = builder_.costs(cuts, {recompute_});
    std::vector<Bytes> room = builder_.rooms(costs);
    for (std::size_t r = 0; r < room.size(); ++r) room[r] -= unseen_[r];
    return OrderModel(costs, builder_.placement(), builder_.spec().microbatches, room);
  }
  /// The best of these rules for the cuts; those worth more than `limit` are left out.
  void weigh(Ordered& at, std::span<const std::size_t> rules, double limit) const {
    const RuledOrder best = best_rule(model_of(at.cuts), rules, limit);
    at.rule = best.rule, at.score = best.score;
  }
  /// Judges in full, and learns what of the memory is not seen here.
  bool keep(const Ordered& at) {
    const OrderModel model = model_of(at.cuts);
    const Order order = *order_by_rule(model, at.rule, kNever);
    auto judged = builder_.judged(at.cuts, schedule_of(order));
    if (!judged->best()) {
      const Infeasible& lack = *judged->closest();
      unseen_[lack.rank.index()] += lack.lacking();
      return false;
    }
    for (std::size_t r = 0; r < model.ranks; ++r)
      unseen_[r] += judged->best()->peak_memory[r] - builder_.problem().memory_limit[r] +
                    Bytes{model.room[r] - most_held(model, order, r)};
    if (!best_ || judged->best_time() < best_->best_time()) best_ = std::move(judged);
    return true;
  }

  const OrderBuilder& builder_;
  const std::vector<bool>& recompute_;
  CutMoves moves_;
  Random random_;
  std::size_t rules_;
  std::vector<Bytes> unseen_;  // [rank] that the exact rule counts besides
  std::unique_ptr<Candidates> best_;
};

}  // namespace

RuledOrder best_rule(const OrderModel& model, std::span<const std::size_t> rules, double limit) {
  OrderClock clock(model);
  RuledOrder best{rules.front(), kInfinite};
  for (const std::size_t rule : rules) {
    const double enough = std::min(limit, best.score);
    const bool any = enough >= kTooFull;
    const auto order =
        order_by_rule(model, rule, any ? kNever : static_cast<std::int64_t>(kLate * enough));
    if (!order) continue;
    double score = 0;
    for (std::size_t r = 0; r < model.ranks; ++r)
      score += static_cast<double>(
          std::max<std::int64_t>(0, most_held(model, *order, r) - model.room[r]));
    if (score > 0) {
      score += kTooFull;
    } else {
      const auto time = clock.run(*order, any ? kNever : static_cast<std::int64_t>(enough));
      if (!time) continue;
      score = static_cast<double>(*time);
    }
    if (score < best.score) best = {rule, score};
  }
  return best;
}

std::unique_ptr<Candidates> anneal_orders(const OrderBuilder& builder, const Cuts& from,
                                          const std::vector<bool>& recompute, std::size_t tries,
                                          std::uint64_t seed, std::size_t& evaluated) {
  evaluated += tries;
  if (tries == 0 || from.size() < 3) return nullptr;
  return OrderAnnealing(builder, recompute, seed).run(from, tries);
}

}  // namespace pfeife
