#include "planner/search/orders/document_grouping.h"

#include <algorithm>
#include <numeric>

#include "planner/ir/basics/error.h"
#include "planner/search/cuts/cut_moves.h"

namespace pfeife {
namespace {

std::int64_t tokens_of(const Documents& microbatch) {
  return std::accumulate(microbatch.begin(), microbatch.end(), std::int64_t{0});
}

/// [document, the longest first] The microbatch that it is in.
using Places = std::vector<std::size_t>;

class GroupingRun {
 public:
  GroupingRun(const std::vector<DocumentLengths>& starts, std::int64_t limit,
              const std::function<std::int64_t(const DocumentLengths&)>& time,
              const GroupingOptions& options)
      : limit_(limit),
        time_(time),
        tries_(std::max(options.tries, starts.size())),
        microbatches_(starts.front().size()),
        random_(options.seed) {
    for (const Documents& microbatch : starts.front())
      documents_.insert(documents_.end(), microbatch.begin(), microbatch.end());
    std::ranges::sort(documents_, std::greater{});
    for (const DocumentLengths& start : starts) ask(places_of(start));
  }

  GroupingSearch run() {
    if (each_grouping([](const Places&) {})) {
      tried_ = 0;
      each_grouping([&](const Places& places) { ask(places); });
      return {grouping_of(best_), best_time_, tried_, true};
    }
    descend(best_, best_time_);
    while (tried_ < tries_) {
      Places places = best_;
      for (std::size_t change = 0; change < 3; ++change) shake(places);
      const std::int64_t from = ask(places);
      descend(std::move(places), from);
    }
    return {grouping_of(best_), best_time_, tried_, false};
  }

 private:
  Places places_of(const DocumentLengths& grouping) const {
    PFEIFE_CHECK(grouping.size() == microbatches_, grouping.size(), " microbatches");
    std::vector<std::pair<std::int64_t, std::size_t>> placed;
    for (std::size_t m = 0; m < grouping.size(); ++m)
      for (const std::int64_t length : grouping[m]) placed.emplace_back(-length, m);
    std::ranges::sort(placed);
    Places places;
    for (const auto& [length, m] : placed) {
      PFEIFE_CHECK(places.size() < documents_.size() && -length == documents_[places.size()],
                   "a start has other documents");
      places.push_back(m);
    }
    PFEIFE_CHECK(places.size() == documents_.size() && allowed(places), "a start is no grouping");
    return places;
  }

  DocumentLengths grouping_of(const Places& places) const {
    DocumentLengths grouping(microbatches_);
    for (std::size_t d = 0; d < places.size(); ++d) grouping[places[d]].push_back(documents_[d]);
    return grouping;
  }

  /// Within the limit, and no microbatch is empty.
  bool allowed(const Places& places) const {
    return std::ranges::all_of(grouping_of(places), [&](const Documents& microbatch) {
      return !microbatch.empty() && tokens_of(microbatch) <= limit_;
    });
  }

  std::int64_t ask(const Places& places) {
    ++tried_;
    const std::int64_t time = time_(grouping_of(places));
    if (best_.empty() || time < best_time_) best_ = places, best_time_ = time;
    return time;
  }

  /// Visits every grouping, unless there are more than may be tried: then it returns false soon.
  template <class Visit>
  bool each_grouping(const Visit& visit) const {
    Places places(documents_.size());
    std::vector<std::int64_t> room(microbatches_, limit_);
    std::size_t steps = tries_ * documents_.size(), groupings = tries_;
    return place_rest(0, places, room, steps, groupings, visit);
  }

  /// Places document `d` and those behind it. Equally long ones stand in rising microbatches, as
  /// exchanging them changes nothing.
  template <class Visit>
  bool place_rest(std::size_t d, Places& places, std::vector<std::int64_t>& room,
                  std::size_t& steps, std::size_t& groupings, const Visit& visit) const {
    if (d == documents_.size()) {
      if (std::ranges::find(room, limit_) != room.end()) return true;  // a microbatch is empty
      if (groupings-- == 0) return false;
      visit(places);
      return true;
    }
    const bool as_before = d > 0 && documents_[d] == documents_[d - 1];
    for (std::size_t m = as_before ? places[d - 1] : 0; m < microbatches_; ++m) {
      if (room[m] < documents_[d]) continue;
      if (steps-- == 0) return false;
      places[d] = m, room[m] -= documents_[d];
      if (!place_rest(d + 1, places, room, steps, groupings, visit)) return false;
      room[m] += documents_[d];
    }
    return true;
  }

  static void exchange_microbatches(Places& places, std::size_t a, std::size_t b) {
    for (std::size_t& place : places)
      if (place == a || place == b) place = a + b - place;
  }

  /// A random move, if it is allowed.
  void shake(Places& places) {
    Places changed = places;
    const std::size_t d = random_.below(changed.size()), e = random_.below(changed.size());
    switch (random_.below(3)) {
      case 0:
        changed[d] = random_.below(microbatches_);
        break;
      case 1:
        std::swap(changed[d], changed[e]);
        break;
      default:
        exchange_microbatches(changed, changed[d], changed[e]);
    }
    if (allowed(changed)) places = std::move(changed);
  }

  /// Takes the first change that helps, until none does.
  void descend(Places places, std::int64_t time) {
    const auto faster = [&](Places changed) {
      if (changed == places || tried_ >= tries_ || !allowed(changed)) return false;
      const std::int64_t now = ask(changed);
      if (now >= time) return false;
      places = std::move(changed), time = now;
      return true;
    };
    for (bool moved = true; moved && tried_ < tries_;) {
      moved = false;
      for (std::size_t a = 0; a < microbatches_; ++a)
        for (std::size_t b = a + 1; b < microbatches_; ++b) {
          Places changed = places;
          exchange_microbatches(changed, a, b);
          moved = faster(std::move(changed)) || moved;
        }
      for (std::size_t d = 0; d < places.size(); ++d) {
        for (std::size_t m = 0; m < microbatches_; ++m) {
          Places changed = places;
          changed[d] = m;
          moved = faster(std::move(changed)) || moved;
        }
        for (std::size_t e = d + 1; e < places.size(); ++e) {
          if (documents_[d] == documents_[e] || places[d] == places[e]) continue;
          Places changed = places;
          std::swap(changed[d], changed[e]);
          moved = faster(std::move(changed)) || moved;
        }
      }
    }
  }

  std::int64_t limit_;
  const std::function<std::int64_t(const DocumentLengths&)>& time_;
  std::size_t tries_, microbatches_, tried_ = 0;
  Random random_;
  Documents documents_;  // the longest first
  Places best_;
  std::int64_t best_time_ = 0;
};

}  // namespace

DocumentLengths first_fit(const Documents& documents, std::int64_t limit) {
  DocumentLengths grouping;
  for (const std::int64_t length : documents) {
    PFEIFE_CHECK(length <= limit, length, " tokens, and a limit of ", limit);
    const auto has_room = [&](const Documents& m) { return tokens_of(m) + length <= limit; };
    auto microbatch = std::ranges::find_if(grouping, has_room);
    if (microbatch == grouping.end()) microbatch = grouping.insert(grouping.end(), Documents{});
    microbatch->push_back(length);
  }
  return grouping;
}

std::optional<DocumentLengths> balanced_grouping(Documents documents, std::int64_t limit,
                                                 std::size_t microbatches, bool squares) {
  std::ranges::sort(documents, std::greater{});
  DocumentLengths grouping(microbatches);
  std::vector<double> load(microbatches, 0);
  for (const std::int64_t length : documents) {
    std::optional<std::size_t> least;
    for (std::size_t m = 0; m < microbatches; ++m)
      if (tokens_of(grouping[m]) + length <= limit && (!least || load[m] < load[*least])) least = m;
    if (!least) return std::nullopt;
    grouping[*least].push_back(length);
    const auto exact = static_cast<double>(length);
    load[*least] += squares ? exact * exact : exact;
  }
  if (std::ranges::any_of(grouping, [](const Documents& m) { return m.empty(); }))
    return std::nullopt;
  return grouping;
}

GroupingSearch search_grouping(const std::vector<DocumentLengths>& starts, std::int64_t limit,
                               const std::function<std::int64_t(const DocumentLengths&)>& time,
                               const GroupingOptions& options) {
  PFEIFE_CHECK(!starts.empty() && !starts.front().empty(), "no grouping to start from");
  return GroupingRun(starts, limit, time, options).run();
}

}  // namespace pfeife
