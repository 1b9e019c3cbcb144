#include "planner/search/bound/segment_bound.h"

#include <algorithm>
#include <set>

namespace pfeife {
namespace {

/// Times of every layer, each on the fastest device of the ranks (ns).
struct Fastest {
  std::vector<double> forward, backward_input, backward_weight;
};

Fastest fastest(const Problem& problem) {
  std::set<std::size_t> kinds;
  for (const DeviceId device : problem.device_of_rank)
    kinds.insert(problem.cluster->kind_of_device[device.index()]);
  const auto least = [&](const Layer& layer, Nanoseconds LayerTimes::*work) {
    Nanoseconds found = Nanoseconds::max();
    for (const std::size_t kind : kinds) found = std::min(found, layer.times[kind].*work);
    return static_cast<double>(found.count());
  };
  Fastest found;
  for (const Layer& layer : problem.layers->layers) {
    found.forward.push_back(least(layer, &LayerTimes::forward));
    found.backward_input.push_back(least(layer, &LayerTimes::backward_input));
    found.backward_weight.push_back(least(layer, &LayerTimes::backward_weight));
  }
  return found;
}

struct Chains {
  std::vector<double> forward;   ///< [layer] longest way forward to its end
  std::vector<double> backward;  ///< [layer] longest way back from its begin to the step's end
};

Chains chains(const Problem& problem, const Fastest& time) {
  Chains found{time.forward, time.backward_input};
  std::vector<std::vector<const LayerValue*>> produced(problem.layers->size());
  for (const LayerValue& value : problem.layers->values)
    produced[value.producer.index()].push_back(&value);
  for (std::size_t l = 0; l < produced.size(); ++l)  // every reader comes after what it reads
    for (const LayerValue* value : produced[l])
      for (const LayerId reader : value->consumers) {
        const std::size_t r = reader.index();
        found.forward[r] = std::max(found.forward[r], found.forward[l] + time.forward[r]);
        if (value->has_gradient)
          found.backward[r] =
              std::max(found.backward[r], found.backward[l] + time.backward_input[r]);
      }
  return found;
}

/// Weight gradients of a stage that are computed before its last gradient of inputs, or with it:
/// the fewest of all stages.
std::size_t early_weights(const Schedule& schedule) {
  std::vector<std::size_t> so_far(stage_count(schedule), 0), early = so_far;
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        const std::size_t s = action.stage.index();
        if (makes_weight_gradient(action.op)) ++so_far[s];
        if (makes_input_gradient(action.op)) early[s] = so_far[s];
      });
  return early.empty() ? 0 : *std::ranges::min_element(early);
}

/// `early`: weight gradients of a stage that surely come before its last gradient of inputs.
HeaviestSegment heaviest(const CutModel& model, const Problem& problem, double n, double early) {
  const Fastest time = fastest(problem);
  const Chains chain = chains(problem, time);
  const auto segment = [&](LayerId layer) {
    return static_cast<std::size_t>(model.segment(layer));
  };
  const auto segments = static_cast<std::size_t>(model.last());
  // What a segment waits for, what waits for it, and its own work for one microbatch.
  std::vector<double> entry(segments), exit(segments), inputs(segments), all(segments);
  for (const LayerValue& value : problem.layers->values)
    for (const LayerId reader : value.consumers) {
      const std::size_t k = segment(reader), l = value.producer.index();
      if (segment(value.producer) == k) continue;
      entry[k] = std::max(entry[k], chain.forward[l]);
      if (value.has_gradient) exit[k] = std::max(exit[k], chain.backward[l]);
    }
  for (std::size_t l = 0; l < problem.layers->size(); ++l) {
    const std::size_t k = segment(LayerId{l});
    inputs[k] += time.forward[l] + time.backward_input[l];
    all[k] += time.forward[l] + time.backward_input[l] + time.backward_weight[l];
  }
  HeaviestSegment found;
  for (std::size_t k = 0; k < segments; ++k)
    if (const double bound =
            std::max(entry[k] + n * all[k],
                     entry[k] + n * inputs[k] + early * (all[k] - inputs[k]) + exit[k]);
        bound > found.bound)
      found = {bound, k};
  return found;
}

}  // namespace

double segment_bound(const CutModel& model, const Problem& problem, const Schedule& compute_only) {
  return heaviest(model, problem, static_cast<double>(microbatch_count(compute_only)),
                  static_cast<double>(early_weights(compute_only)))
      .bound;
}

HeaviestSegment heaviest_segment(const CutModel& model, const Problem& problem,
                                 std::size_t microbatches) {
  return heaviest(model, problem, static_cast<double>(microbatches), 0);
}

double one_microbatch_bound(const Problem& problem) {
  const Chains chain = chains(problem, fastest(problem));
  double longest = 0;
  for (std::size_t l = 0; l < problem.layers->size(); ++l)
    longest = std::max(longest, chain.forward[l] + chain.backward[l]);
  return longest;
}

}  // namespace pfeife
