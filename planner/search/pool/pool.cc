#include "planner/search/pool/pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "planner/search/price/lack.h"
#include "planner/search/price/pareto.h"

namespace pfeife {

Claim joined(Claim claim, const Claim& other) {
  claim.certificate.reset();
  if (!claim.bound || !other.bound) {
    claim.bound.reset(), claim.covered.clear();
    return claim;
  }
  Bound& bound = *claim.bound;
  bound.time = std::min(bound.time, other.bound->time);
  bound.least_share = std::max(bound.least_share, other.bound->least_share);
  bound.linked = bound.linked || other.bound->linked;
  bound.schedules.insert(bound.schedules.end(), other.bound->schedules.begin(),
                         other.bound->schedules.end());
  claim.covered.insert(claim.covered.end(), other.covered.begin(), other.covered.end());
  return claim;
}

void Pool::add(std::vector<Priced> plans) {
  if (plans.empty()) return;
  for (std::vector<Priced>* list : {&answer_.all, &answer_.plans}) {
    list->insert(list->end(), plans.begin(), plans.end());
    std::ranges::stable_sort(*list, {}, &Priced::estimate);
  }
  answer_.infeasible.reset();
  add_near(std::move(plans));
}

void Pool::replace(std::vector<Priced> plans) {
  answer_.plans.clear(), answer_.all.clear(), answer_.front.clear();
  add(std::move(plans));
}

void Pool::add_near(std::vector<Priced> plans) {
  if (plans.empty()) return;
  std::vector<Priced>& front = answer_.front;
  front.insert(front.end(), std::make_move_iterator(plans.begin()),
               std::make_move_iterator(plans.end()));
  front = pareto_front(std::move(front), memory_limit_);
}

void Pool::keep(std::size_t most) {
  answer_.plans = answer_.all;
  if (answer_.plans.size() > most) answer_.plans.resize(most);
  std::erase_if(answer_.rejected, [&](const Rejected& rejected) {
    return std::ranges::find(answer_.plans, rejected.spec, &Priced::spec) != answer_.plans.end();
  });
}

std::vector<Priced> Pool::take_all() { return std::exchange(answer_.all, {}); }

void Pool::reject(std::vector<Rejected> rejected) {
  answer_.rejected.insert(answer_.rejected.end(), std::make_move_iterator(rejected.begin()),
                          std::make_move_iterator(rejected.end()));
}

void Pool::add(const std::optional<Infeasible>& lack) {
  if (answer_.plans.empty()) note_closest(lack, answer_.infeasible);
}

void Pool::note_host_lack(HostLack lack) {
  if (!answer_.host_lack || lack.shortage.lacking() < answer_.host_lack->shortage.lacking())
    answer_.host_lack = std::move(lack);
}

void Pool::prove_infeasible(bool proven) {
  if (answer_.infeasible) answer_.infeasible->proven = proven;
}

void Pool::claim(Claim claim) {
  static_cast<Claim&>(answer_) = std::move(claim);
  cap_history();
}

void Pool::rebound(Nanoseconds bound) {
  if (!answer_.bound) return;
  answer_.bound->time = bound;
  cap_history();
}

void Pool::raise(Nanoseconds bound, std::shared_ptr<const Certificate> certificate) {
  answer_.bound->time = std::max(answer_.bound->time, bound);
  answer_.certificate = std::move(certificate);
}

void Pool::count(std::size_t candidates, std::size_t effort) {
  answer_.candidates += candidates;
  answer_.effort += effort;
}

void Pool::count_before(std::size_t candidates) {
  for (SearchStep& step : answer_.history) step.candidates += candidates;
}

void Pool::forget_claims() {
  answer_.bound.reset(), answer_.certificate.reset();
  answer_.orders_left_out = false;
  answer_.all.clear();
}

void Pool::set_history(std::vector<SearchStep> history) {
  answer_.history = std::move(history);
  cap_history();
}

void Pool::cap_history() {
  if (!answer_.bound) return;
  for (SearchStep& step : answer_.history)
    if (step.bound) step.bound = std::min(*step.bound, answer_.bound->time);
}

}  // namespace pfeife
