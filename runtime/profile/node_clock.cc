#include <ATen/SequenceNumber.h>

#include <algorithm>

#include "runtime/profile/node_passes.h"
#include "runtime/profile/statistics.h"
#include "runtime/transport/transport.h"

namespace pfeife {

void BackwardNodes::before(NodeId node) {
  const std::uint64_t number = at::sequence_number::peek();
  ranges_.push_back({number, number, node});
}

void BackwardNodes::after() { ranges_.back().end = at::sequence_number::peek(); }

std::optional<NodeId> BackwardNodes::find(std::int64_t number) const {
  if (number < 0) return {};
  const auto wanted = static_cast<std::uint64_t>(number);
  const auto found = std::ranges::upper_bound(ranges_, wanted, {}, &Range::end);
  if (found == ranges_.end() || wanted < found->begin) return {};
  return found->node;
}

NodeClock::NodeClock(std::size_t nodes, at::Device device) : nodes_(nodes), clock_(device) {
  marks_.reserve(8 * nodes);  // not to be moved while the clock runs
}

PassTimes NodeClock::timed(const std::function<void()>& pass) {
  marks_.clear();
  first_ = Nanoseconds{0};
  const long before = interruptions();
  begin_ = clock_.mark();
  pass();
  end_ = clock_.mark();
  read_marks();
  return {std::vector<Nanoseconds>(nodes_),
          std::vector<bool>(nodes_),
          {},
          end_ - begin_,
          interruptions() != before};
}

/// Marks become times.
void NodeClock::read_marks() {
  if (clock_.device().is_cpu()) return;
  clock_.read();
  for (Nanoseconds* mark : {&begin_, &first_, &end_}) *mark = clock_.time(*mark);
  for (Mark& mark : marks_) mark.at = clock_.time(mark.at);
}

void NodeClock::charge(PassTimes& times, std::size_t node, Nanoseconds time,
                       Nanoseconds cost) const {
  if (!clock_.device().is_cpu()) cost = Nanoseconds{0};
  times.nodes[node] += std::max(time - cost, Nanoseconds{0});
  times.ran[node] = true;
}

PassTimes NodeClock::by_ends(PassTimes times) const {
  times.outside = times.whole;
  if (marks_.empty()) return times;
  Nanoseconds before = first_;
  for (const Mark& mark : marks_) {
    charge(times, static_cast<std::size_t>(mark.what), mark.at - before, mark_cost());
    before = mark.at;
  }
  times.outside = (first_ - begin_) + (end_ - marks_.back().at);
  return times;
}

PassTimes NodeClock::forward(const std::function<void()>& pass) {
  functions_.clear();
  return by_ends(timed(pass));
}

PassTimes NodeClock::weight(const std::function<void()>& pass) { return by_ends(timed(pass)); }

PassTimes NodeClock::backward(const std::function<void()>& pass) {
  PassTimes times;
  {
    const BackwardWatch watch([this](std::int64_t number) {
      marks_.push_back({clock_.mark(), number});
    });
    times = timed(pass);
  }
  times.outside = marks_.empty() ? times.whole : marks_.front().at - begin_;
  std::optional<NodeId> node;
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    const Nanoseconds until = i + 1 < marks_.size() ? marks_[i + 1].at : end_;
    if (marks_[i].what >= 0) node = functions_.find(marks_[i].what);
    if (node)
      charge(times, node->index(), until - marks_[i].at, backward_mark_cost());
    else
      times.outside += until - marks_[i].at;
  }
  return times;
}

void NodeClock::before_node(NodeId node) {
  functions_.before(node);
  if (marks_.empty()) first_ = clock_.mark();
}
void NodeClock::after_node(NodeId node) {
  functions_.after();
  marks_.push_back({clock_.mark(), node.value});
}
void NodeClock::before_weight(NodeId) {
  if (marks_.empty()) first_ = clock_.mark();
}
void NodeClock::after_weight(NodeId node) { marks_.push_back({clock_.mark(), node.value}); }

namespace {

constexpr int kTries = 7, kPatience = 100;

/// The least of some tries that nobody interrupted: what else the machine does only adds.
template <class Measure>
Nanoseconds least(const Measure& measure) {
  Nanoseconds best = Nanoseconds::max();
  for (int clean = 0, tries = 0; clean < kTries && tries < kPatience; ++tries) {
    const long before = interruptions();
    best = std::min(best, measure());
    if (interruptions() == before) ++clean;
  }
  return std::max(best, Nanoseconds{0});
}

/// Time of a backward through a chain of `length` functions.
Nanoseconds chain(int length) {
  at::Tensor x = at::zeros({1}).set_requires_grad(true);
  at::Tensor y = x;
  for (int i = 0; i < length; ++i) y = y.neg();
  const Nanoseconds begin = now();
  torch::autograd::backward({y}, {at::ones({1})});
  return now() - begin;
}

}  // namespace

Nanoseconds NodeClock::mark_cost() {
  static const Nanoseconds cost = [] {
    constexpr int kMarks = 1000;
    return least([&] {
      NodeClock clock(kMarks);
      const Nanoseconds begin = now();
      for (int i = 0; i < kMarks; ++i) {
        clock.before_node(NodeId{i});
        clock.after_node(NodeId{i});
      }
      return Nanoseconds((now() - begin) / kMarks);
    });
  }();
  return cost;
}

Nanoseconds NodeClock::backward_mark_cost() {
  static const Nanoseconds cost = [] {
    constexpr int kFunctions = 1000;
    std::vector<Mark> marks;
    marks.reserve(2 * kFunctions);
    const Nanoseconds plain = least([] { return chain(kFunctions); });
    const Nanoseconds watched = least([&] {
      marks.clear();
      const BackwardWatch watch([&](std::int64_t number) { marks.push_back({now(), number}); });
      return chain(kFunctions);
    });
    return std::max((watched - plain) / kFunctions, Nanoseconds{0});
  }();
  return cost;
}

}  // namespace pfeife
