// One tree on several threads: its open nodes are dealt to parts, each with candidates, paths and a
// heap of its own, and taken back after a while. How many parts there are does not depend on the
// threads, and what they found is taken in their order.
#include <algorithm>
#include <utility>

#include "planner/search/proof/branch_and_bound.h"

namespace pfeife {

BranchAndBound::BranchAndBound(const BranchAndBound& whole, Part)
    : own_candidates_(std::make_unique<Candidates>(whole.candidates_)),
      candidates_(*own_candidates_),
      settings_(whole.settings_),
      cut_bound_(whole.cut_bound_),
      record_(whole.record_),
      relaxation_(candidates_, cut_bound_, settings_.record ? &record_ : nullptr),
      target_(whole.target_),
      closed_bound_(whole.closed_bound_),
      rooted_(true) {
  joined_work_ = work();
}

std::vector<BranchAndBound*> BranchAndBound::deal(std::size_t most) {
  constexpr std::size_t kLeastNodes = 4;  // of a part
  const std::size_t count = std::clamp<std::size_t>(open_.size() / kLeastNodes, 1, most);
  std::vector<BranchAndBound*> dealt{this};
  for (std::size_t k = 1; k < count; ++k) {
    if (parts_.size() < k)
      parts_.push_back(std::unique_ptr<BranchAndBound>(new BranchAndBound(*this, Part{})));
    BranchAndBound& part = *dealt.emplace_back(parts_[k - 1].get());
    part.candidates_.follow(candidates_);
    part.relaxation_.take_rows(relaxation_);
    part.next_id_ = next_id_;
  }
  dealt_ = count - 1;
  if (count == 1) return dealt;
  // Sorted with the best first, which is a heap, too.
  std::vector<Node> all = std::exchange(open_, {});
  std::ranges::sort(all, [](const Node& a, const Node& b) { return Later{}(b, a); });
  for (std::size_t i = 0; i < all.size(); ++i) dealt[i % count]->open_.push_back(std::move(all[i]));
  return dealt;
}

void BranchAndBound::join() {
  for (std::size_t k = 0; k < dealt_; ++k) {
    BranchAndBound& part = *parts_[k];
    candidates_.join(part.candidates_);
    std::ranges::move(part.open_, std::back_inserter(open_));
    part.open_.clear();
    closed_bound_ = std::min(closed_bound_, part.closed_bound_);
    handled_ += std::exchange(part.handled_, 0);
    other_work_ += part.work() - std::exchange(part.joined_work_, part.work());
    next_id_ = std::max(next_id_, part.next_id_);
    if (nearest_.empty()) nearest_ = part.nearest_;
  }
  if (std::exchange(dealt_, 0) > 0) std::ranges::make_heap(open_, Later{});
}

}  // namespace pfeife
