#include "planner/schedule_tool/certify.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <set>

#include "planner/cost/estimator.h"
#include "planner/cost/memory.h"
#include "planner/cost/stage_costs.h"
#include "planner/ir/error.h"
#include "planner/ir/lower.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {
namespace {

__extension__ using Big = __int128;  // weights are below 2^53, sums of amounts below 2^63
constexpr Big kNever = Big{1} << 125;
constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
/// What a stage costs per microbatch or step, as prefix sums; then transfers to and from it.
enum : std::size_t { kF, kI, kW, kStep, kFixed, kSaved, kWeightSaved, kSend, kSendBack, kAll };
using Sums = std::vector<std::int64_t>;  // [position]; position = index of a legal boundary
using Counts = std::array<std::vector<Big>, kAll>;  // [what][stage; boundary for transfers]
StageId id(std::size_t s) { return StageId{static_cast<std::int64_t>(s)}; }

struct Refused {
  std::string reason;
};
void require(bool holds, const char* otherwise) {
  if (!holds) throw Refused{otherwise};
}

/// The layers as sums up to each legal cut.
struct Table {
  std::vector<std::size_t> layer{0}, segment;            // [position] layers before it; [layer]
  std::vector<std::array<Sums, kSend>> sums;             // [rank]
  std::vector<Sums> temporary;                           // [from][to] largest between positions
  std::vector<std::vector<const LayerValue*>> crossing;  // [position]
  std::size_t last() const { return layer.size() - 1; }

  explicit Table(const Certificate& c) {
    for (std::size_t l = 0; l < c.layers.size(); ++l) {
      segment.push_back(last());
      if (l + 1 == c.layers.size() || c.layers.layers[l].no_cut_after.empty())
        layer.push_back(l + 1);
    }
    Layers alone = c.layers;  // what several may share is charged to the first: never too much
    std::set<std::size_t> charged;
    for (LayerStorage& s : alone.storages) {
      if (s.value && !s.savers.empty() && !charged.insert(*s.value).second) s.savers.clear();
      if (s.savers.size() > 1) s.savers.resize(1);
      if (s.weight_savers.size() > 1) s.weight_savers.resize(1);
      s.value.reset();
    }
    for (LayerParameter& p : alone.parameters)
      if (p.users.size() > 1) p.users.resize(1);
    Cluster plain = c.cluster;
    for (DeviceKind& k : plain.kinds) k.stage_overhead = k.iteration_overhead = Nanoseconds{0};
    Partition finest;
    for (std::size_t q = 1; q < last(); ++q)
      finest.cuts.push_back(static_cast<std::int32_t>(layer[q]) - 1);
    for (const DeviceId device : c.device_of_rank) {
      const Placement one{std::vector<RankId>(last()), {device}};
      const auto stages = stage_costs(alone, finest, one, plain).stages;
      auto& of = sums.emplace_back();
      of.fill(Sums(1, 0)), temporary.assign(last() + 1, Sums(last() + 1, 0));
      for (const StageCost& s : stages) {
        const std::array amounts{s.forward.count(),         s.backward_input.count(),
                                 s.backward_weight.count(), s.optimizer.count(),
                                 s.fixed().value,           s.saved.value,
                                 s.weight_saved.value};
        for (std::size_t k = 0; k < kSend; ++k) of[k].push_back(of[k].back() + amounts[k]);
        for (std::size_t to = of[kF].size() - 1, from = 0; from < to; ++from)
          temporary[from][to] = std::max(temporary[from][to - 1], s.temporary.value);
      }
    }
    crossing.resize(layer.size());
    for (const LayerValue& v : c.layers.values)
      for (std::size_t q = segment[v.producer.index()] + 1;
           q <= segment[v.consumers.back().index()]; ++q)
        crossing[q].push_back(&v);
  }
};

struct Region {
  Sums low, high;                                  // [stage] load
  std::vector<std::vector<bool>> may;              // [boundary][position]
  std::vector<std::vector<std::size_t>> earliest;  // [stage][end] begin
};
struct Moment {              // what a rank has in flight while it does one action
  Sums saved, weight_saved;  // [stage]
  std::size_t runs = 0;      // stage
};

class ProofCheck {
 public:
  ProofCheck(const Certificate& c, const Table& table, const CertifiedProof& proof,
             Verdict& verdict)
      : c_(c), t_(table), proof_(proof), verdict_(verdict), stages_(proof.spec.stages()) {
    require(proof.spec.ranks == c.device_of_rank.size() && stages_ <= t_.last(),
            "a schedule of other ranks, or of more stages than the model can have");
    placement_ = placement_for(proof.spec);
    placement_.device_of_rank = c.device_of_rank;
    schedule_ = generate(proof.spec);
    const Nanoseconds unit{1};
    graph_ =
        dependencies(lower(schedule_, uniform_costs(stages_, unit, unit, unit, unit), placement_),
                     chain(stages_), placement_, {});
    find_moments();
    for (const CertifiedPath& path : proof.paths) paths_.push_back(walk(path));
    latency_.fill(std::vector<Sums>(stages_, Sums(t_.last() + 1, 0)));
  }

  void check() {
    std::vector<Region> open{root()};
    std::size_t at = 0;
    for (; !open.empty(); ++at, ++verdict_.regions) {
      require(at < proof_.tree.size(), "the tree ends before all cuts are covered");
      const CertifiedNode& node = proof_.tree[at];
      Region region = std::move(open.back());
      open.pop_back();
      bool left = limit_memory(region);
      for (std::size_t w = 0; left && w < node.weights.size(); ++w) {
        if (at == 0) find_latencies(region);
        left = filter(region, node.weights[w]) && limit_memory(region);
      }
      if (node.then == CertifiedNode::Then::Nothing) {
        require(!left, "a region may have faster cuts than the bound");
      } else if (node.then == CertifiedNode::Then::Each) {
        std::vector<std::size_t> cuts{0};
        if (left) each(region, cuts);
      } else {
        split(region, node, open);
      }
    }
    require(at == proof_.tree.size(), "the tree goes on after all cuts are covered");
  }

 private:
  std::size_t rank(std::size_t s) const { return placement_.rank(id(s)).index(); }
  std::int64_t load(std::size_t s, std::size_t from, std::size_t to) const {
    const auto& sums = t_.sums[rank(s)];
    return sums[kF][to] + sums[kI][to] + sums[kW][to] - sums[kF][from] - sums[kI][from] -
           sums[kW][from];
  }

  void find_moments() {
    on_.resize(placement_.ranks()), moments_.resize(placement_.ranks());
    for (std::size_t s = 0; s < stages_; ++s) on_[rank(s)].push_back(s);
    for (std::size_t k = 0; k < on_.size(); ++k) {
      Moment now{Sums(stages_, 0), Sums(stages_, 0)};
      for (const Cell& cell : schedule_.rows[k])
        for_each_action(cell, [&](const Action& a) {
          const std::size_t s = now.runs = a.stage.index();
          now.saved[s] += a.op == Op::Forward;
          moments_[k].push_back(now);
          now.saved[s] -= a.op == Op::Backward || a.op == Op::BackwardInput;
          now.weight_saved[s] += a.op == Op::BackwardInput;
          now.weight_saved[s] -= a.op == Op::BackwardWeight;
        });
      for (const Moment& m : moments_[k]) {
        std::int64_t most = 0;
        for (const std::size_t s : on_[k]) most += held(m, s, 0, t_.last());
        const bool covered = std::ranges::any_of(largest_, [&](const auto& other) {
          return other.first == k && covers(*other.second, m, k);
        });
        if (covered || most <= c_.memory_limit[k].value) continue;
        std::erase_if(largest_, [&](const auto& other) {
          return other.first == k && covers(m, *other.second, k);
        });
        largest_.emplace_back(k, &m);
      }
    }
  }
  bool covers(const Moment& a, const Moment& b, std::size_t k) const {
    return a.runs == b.runs && std::ranges::all_of(on_[k], [&](std::size_t s) {
             return a.saved[s] >= b.saved[s] && a.weight_saved[s] >= b.weight_saved[s];
           });
  }
  /// At least so many bytes of stage s; buffers and what is shared come on top.
  std::int64_t held(const Moment& m, std::size_t s, std::size_t from, std::size_t to) const {
    const auto sum = [&](std::size_t k) {
      return t_.sums[rank(s)][k][to] - t_.sums[rank(s)][k][from];
    };
    return sum(kFixed) + m.saved[s] * sum(kSaved) + m.weight_saved[s] * sum(kWeightSaved) +
           (m.runs == s ? t_.temporary[from][to] : 0);
  }

  /// What the tasks on a path are, counted; every step is an edge of the dependency graph.
  Counts walk(const CertifiedPath& path) const {
    Counts counts;
    counts.fill(std::vector<Big>(stages_, 0));
    std::size_t at = graph_.size();
    for (std::size_t t = 0; t < graph_.size(); ++t)
      if (graph_.tasks[t].kind != TaskKind::Transfer && graph_.tasks[t].rank.index() == path.rank)
        at = t;
    require(at < graph_.size(), "a path on no rank");
    const auto count = [&] {
      for_each_action(graph_.tasks[at].cell, [&](const Action& a) {
        const std::size_t s = a.stage.index();
        counts[kF][s] += a.op == Op::Forward;
        counts[kI][s] += a.op == Op::Backward || a.op == Op::BackwardInput;
        counts[kW][s] += a.op == Op::Backward || a.op == Op::BackwardWeight;
        counts[kStep][s] += a.op == Op::OptimizerStep;
        if (a.op == Op::Send && a.direction == Direction::Forward) ++counts[kSend][s + 1];
        if (a.op == Op::Send && a.direction == Direction::Backward) ++counts[kSendBack][s];
      });
    };
    const auto step = [&](EdgeKind kind, std::optional<Direction> transfer) {
      for (const Edge& e : graph_.edges_into(TaskId{static_cast<std::int64_t>(at)})) {
        const Task& task = graph_.tasks[e.from.index()];
        if (e.kind != kind || (task.kind == TaskKind::Transfer) != transfer.has_value() ||
            (transfer && std::get<Action>(task.cell).direction != *transfer))
          continue;
        at = e.from.index();
        return count();
      }
      throw Refused{"a path takes a step that the schedule does not have"};
    };
    count();
    const char *next = path.turns.data(), *const end = next + path.turns.size();
    for (std::size_t steps = 0; next != end; ++next) {
      const auto [rest, error] = std::from_chars(next, end, steps);
      require(error == std::errc(), "a path without a number of steps");
      for (; steps > 0; --steps) step(EdgeKind::RankOrder, {});
      if ((next = rest) == end) break;
      require(*next == 'f' || *next == 'b', "a path takes neither f nor b");
      step(EdgeKind::Data, *next == 'f' ? Direction::Forward : Direction::Backward);
      step(EdgeKind::Data, {});
    }
    return counts;
  }

  /// All legal cuts. A stage is busy N times a step, so none that matters takes bound / N.
  Region root() {
    Region all{proof_.least_load, {}, {}, {}};
    all.may.assign(stages_ + 1, std::vector<bool>(t_.last() + 1, false));
    for (std::size_t i = 0; i <= stages_; ++i)
      for (std::size_t q = i; q + stages_ - i <= t_.last(); ++q)
        all.may[i][q] = (i > 0 || q == 0) && (i < stages_ || q == t_.last());
    if (all.low.empty()) all.low.assign(stages_, 0);
    require(all.low.size() == stages_, "not one least load a stage");
    all.high.assign(stages_, (c_.bound - 1) / static_cast<std::int64_t>(proof_.spec.microbatches));
    all.earliest.assign(stages_, std::vector<std::size_t>(t_.last() + 1, 0));
    return all;
  }
  /// Later begins of every stage for every end, by memory: what the stage itself holds, and at
  /// least what the rank's others hold in this region. False if nothing fits.
  bool limit_memory(Region& r) const {
    for (int pass = 0; pass < 3; ++pass) {  // more would find more, at a cost
      for (const auto& [k, m] : largest_) {
        Sums least(stages_, 0);
        std::int64_t sum = 0;
        for (const std::size_t s : on_[k]) {
          if ((least[s] = least_held(r, *m, s)) == kNone) return false;
          sum += least[s];
        }
        for (const std::size_t s : on_[k])
          for (std::size_t p = 0, q = 1; q <= t_.last(); ++q) {
            if (!r.may[s + 1][q]) continue;
            while (p < q && held(*m, s, p, q) + sum - least[s] > c_.memory_limit[k].value) ++p;
            r.earliest[s][q] = std::max(r.earliest[s][q], p);
          }
      }
      for (std::size_t s = 0; s < stages_ && !largest_.empty(); ++s) {
        std::int64_t most = -1;
        for (std::size_t q = 0; q <= t_.last(); ++q)
          if (r.may[s + 1][q]) most = std::max(most, load(s, r.earliest[s][q], q));
        r.high[s] = std::min(r.high[s], most);
      }
    }
    return true;
  }
  std::int64_t least_held(const Region& r, const Moment& m, std::size_t s) const {
    std::int64_t least = kNone;
    for (std::size_t q = 1, next = 0, p = kNone; q <= t_.last(); ++q) {
      for (; next < q && load(s, next, q) >= r.low[s]; ++next)
        if (r.may[s][next]) p = next;
      if (r.may[s + 1][q] && p != kNone && fits(r, s, p, q))
        least = std::min(least, held(m, s, p, q));
    }
    return least;
  }
  bool fits(const Region& r, std::size_t s, std::size_t from, std::size_t to) const {
    return from < to && load(s, from, to) >= r.low[s] && load(s, from, to) <= r.high[s] &&
           from >= r.earliest[s][to];
  }

  /// Time of the message over boundary i at q if stage i - 1 begins at `begin` and stage i ends at
  /// `end`: larger stages send no less. -1: nothing is sent.
  std::int64_t message(std::size_t i, bool back, std::size_t begin, std::size_t q,
                       std::size_t end) const {
    if (rank(i - 1) == rank(i)) return 0;
    Bytes timed{0};
    std::int64_t published = 0;
    bool any = false;
    for (const LayerValue* v : t_.crossing[q]) {
      const auto reader =
          std::ranges::find_if(v->consumers, [&](LayerId l) { return t_.segment[l.index()] >= q; });
      if (t_.segment[v->producer.index()] < begin || t_.segment[reader->index()] >= end ||
          (back && v->gradient_bytes == Bytes{0}))
        continue;
      any = true;
      if (v->transfer_time) published += v->transfer_time->count();
      if (!v->transfer_time) timed += back ? v->gradient_bytes : v->bytes;
    }
    if (!any || (timed == Bytes{0} && published > 0)) return any ? published : -1;
    const DeviceId before = placement_.device(id(i - 1)), after = placement_.device(id(i));
    return published +
           transfer_time(c_.cluster.path(back ? after : before, back ? before : after), timed)
               .count();
  }
  void find_latencies(const Region& r) {
    for (std::size_t i = 1; i < stages_; ++i)
      for (std::size_t q = 1; q < t_.last(); ++q) {
        std::size_t begin = q, end = q;
        while (begin-- > 0 && !(r.may[i - 1][begin] && fits(r, i - 1, begin, q))) continue;
        while (++end <= t_.last() && !(r.may[i + 1][end] && fits(r, i, q, end))) continue;
        for (const bool back : {false, true})
          latency_[back][i][q] =
              begin < q && end <= t_.last() ? message(i, back, begin, q, end) : 0;
      }
  }

  /// For every position the smallest value among those that stage s may reach from it: of its
  /// begins for an end, or of its ends for a begin.
  std::vector<Big> least(const Region& r, std::size_t s, const std::vector<Big>& value,
                         bool ends) const {
    const std::size_t n = t_.last();
    std::vector<Big> found(n + 1, kNever);
    std::deque<std::size_t> window;
    const auto at = [&](std::size_t j) { return ends ? n - j : j; };
    for (std::size_t k = 0, next = 0; k <= n; ++k) {
      const auto x = [&](std::size_t j) {
        return ends ? load(s, at(k), at(j)) : load(s, at(j), at(k));
      };
      for (; next < k && x(next) >= r.low[s]; window.push_back(next++))
        while (!window.empty() && value[at(window.back())] >= value[at(next)]) window.pop_back();
      while (!window.empty() &&
             (x(window.front()) > r.high[s] ||
              at(ends ? k : window.front()) < r.earliest[s][at(ends ? window.front() : k)]))
        window.pop_front();
      if (!window.empty()) found[at(k)] = value[at(window.front())];
    }
    return found;
  }

  /// The weights summed to one figure for each kind of work and stage.
  struct Summed {
    Counts y;
    Big total = 0, constant = 0;
    Big cost(const Table& t, std::size_t rank, std::size_t s, std::size_t q) const {
      Big sum = 0;
      for (std::size_t k = 0; k < kSend; ++k) sum += y[k][s] * t.sums[rank][k][q];
      return sum;
    }
  };
  Summed sum(const CertifiedWeights& weights) const {
    Summed all;
    all.y.fill(std::vector<Big>(stages_, 0));
    const auto sane = [](std::int64_t weight) {
      return weight >= 0 && weight < std::int64_t{1} << 53;
    };
    for (const auto& [path, weight] : weights.paths) {
      require(path < paths_.size() && sane(weight), "a weight of no path, below 0 or too large");
      all.total += weight;
      for (std::size_t k = 0; k < kAll; ++k)
        for (std::size_t s = 0; s < stages_; ++s) all.y[k][s] += weight * paths_[path][k][s];
    }
    for (std::size_t s = 0; s < stages_; ++s) all.constant += overhead(all.y, s);
    for (const auto& [r, action, weight] : weights.memory) {
      require(r < moments_.size() && action < moments_[r].size() && sane(weight),
              "a weight of no action, below 0 or too large");
      all.constant -= Big{weight} * c_.memory_limit[r].value;
      for (std::size_t s = 0; s < stages_; ++s) {
        if (rank(s) != r) continue;
        all.y[kFixed][s] += weight;
        all.y[kSaved][s] += Big{weight} * moments_[r][action].saved[s];
        all.y[kWeightSaved][s] += Big{weight} * moments_[r][action].weight_saved[s];
      }
    }
    all.constant += all.cost(t_, rank(stages_ - 1), stages_ - 1, t_.last());
    return all;
  }
  /// What the counted tasks of a stage cost whatever its layers; a rank's first stage pays for it.
  Big overhead(const Counts& y, std::size_t s) const {
    const DeviceKind& kind = c_.cluster.kind(placement_.device(id(s)));
    bool first = true;
    for (std::size_t o = 0; o < s; ++o) first = first && rank(o) != rank(s);
    return (y[kF][s] + y[kI][s]) * kind.stage_overhead.count() +
           (first ? y[kStep][s] * kind.iteration_overhead.count() : 0);
  }

  /// Takes out of the region the positions that only lie on cuts whose weighted paths, and memory
  /// above the limits, are together longer than bound - 1. False if a boundary has none left.
  bool filter(Region& r, const CertifiedWeights& weights) const {
    const Summed all = sum(weights);
    require(c_.bound != Certificate::kNothingFits || all.total == 0,
            "paths cannot prove that nothing fits");
    const std::size_t positions = t_.last() + 1;
    std::vector<std::vector<Big>> price(stages_ + 1, std::vector<Big>(positions, 0)), value = price;
    std::fill(value[0].begin() + 1, value[0].end(), kNever);
    for (std::size_t i = 1; i <= stages_; ++i) {
      value[i] = least(r, i - 1, value[i - 1], false);
      for (std::size_t q = 0; q < positions; ++q) {
        if (!r.may[i][q]) value[i][q] = kNever;
        if (!r.may[i][q] || i == stages_) continue;
        price[i][q] = all.cost(t_, rank(i - 1), i - 1, q) - all.cost(t_, rank(i), i, q);
        for (const bool back : {false, true}) {
          const Big crossed = all.y[back ? kSendBack : kSend][i];
          require(crossed == 0 || latency_[back][i][q] >= 0,
                  "a path takes a transfer that may not exist");
          price[i][q] += crossed * latency_[back][i][q];
        }
        value[i][q] += price[i][q];
      }
    }
    std::vector<Big> rest(positions, 0);  // of the boundaries after i
    for (std::size_t i = stages_; i > 0; rest = least(r, --i, rest, true)) {
      bool left = false;
      for (std::size_t q = 0; q < positions; ++q) {
        r.may[i][q] = value[i][q] + rest[q] + all.constant <= all.total * (c_.bound - 1);
        left = left || r.may[i][q];
        rest[q] = r.may[i][q] ? rest[q] + price[i][q] : kNever;
      }
      if (!left) return false;
    }
    return true;
  }

  void split(const Region& region, const CertifiedNode& node, std::vector<Region>& open) const {
    Region left = region, right = region;
    const bool load = node.then == CertifiedNode::Then::SplitLoad;
    require((load || node.then == CertifiedNode::Then::SplitPosition) && node.at < stages_,
            "a split of no stage and no boundary");
    if (load) {
      left.high[node.at] = std::min(left.high[node.at], node.threshold);
      right.low[node.at] = std::max(right.low[node.at], node.threshold + 1);
    }
    for (std::size_t q = 0; !load && q <= t_.last(); ++q)
      (static_cast<std::int64_t>(q) <= node.threshold ? right : left).may[node.at][q] = false;
    open.push_back(std::move(right)), open.push_back(std::move(left));
  }

  void each(const Region& r, std::vector<std::size_t>& cuts) {
    if (cuts.size() > stages_) return judge(cuts);
    for (std::size_t q = cuts.back() + 1; q <= t_.last(); ++q) {
      if (!r.may[cuts.size()][q] || !fits(r, cuts.size() - 1, cuts.back(), q)) continue;
      cuts.push_back(q);
      each(r, cuts);
      cuts.pop_back();
    }
  }
  void judge(const std::vector<std::size_t>& cuts) {
    ++verdict_.cuts;
    Partition partition;
    for (std::size_t s = 1; s < stages_; ++s)
      partition.cuts.push_back(static_cast<std::int32_t>(t_.layer[cuts[s]]) - 1);
    const StageCosts costs = stage_costs(c_.layers, partition, placement_, c_.cluster);
    const Schedule lowered = lower(schedule_, costs, placement_);
    if (!std::ranges::equal(peak_memory(lowered, costs, placement_), c_.memory_limit,
                            std::less_equal{}))
      return;
    const DependencyGraph graph = dependencies(lowered, stage_graph(costs), placement_, {});
    std::vector<std::int64_t> times;
    for (const Nanoseconds time : slot_durations(graph, costs)) times.push_back(time.count());
    require(CompiledGraph(graph).makespan(times) >= c_.bound,
            "cuts that fit are faster than the bound");
  }

  const Certificate& c_;
  const Table& t_;
  const CertifiedProof& proof_;
  Verdict& verdict_;
  std::size_t stages_;
  Placement placement_;
  Schedule schedule_;
  DependencyGraph graph_;
  std::vector<std::vector<Moment>> moments_;  // [rank][action]
  std::vector<Counts> paths_;
  std::vector<std::vector<std::size_t>> on_;                    // [rank] stages
  std::vector<std::pair<std::size_t, const Moment*>> largest_;  // rank; no other holds more
  std::array<std::vector<Sums>, 2> latency_;                    // [way][boundary][position]
};

}  // namespace

Verdict certify(const Certificate& certificate) {
  Verdict verdict;
  try {
    require(certificate.bound > 0 && !certificate.proofs.empty(), "there is nothing to prove");
    const Table table(certificate);
    for (const CertifiedProof& proof : certificate.proofs) {
      if (proof.spec.stages() > table.last()) continue;  // it has no cuts
      ProofCheck(certificate, table, proof, verdict).check();
    }
  } catch (const Refused& refused) {
    verdict.refusal = refused.reason;
  } catch (const ConfigError& error) {
    verdict.refusal = error.what();
  }
  return verdict;
}

}  // namespace pfeife::tool
