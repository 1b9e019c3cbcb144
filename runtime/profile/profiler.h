// Profiles a model on this machine: what each node costs, measured in whole steps of the code that
// trains.
//
// The whole model is one stage. Nodes are timed while a forward or backward goes through all of
// them, so that caches are as in a step; no node runs in a loop of its own.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "planner/ir/model/graph.h"
#include "planner/ir/model/profile.h"
#include "runtime/model/weights.h"
#include "runtime/transport/transport.h"

namespace pfeife {

struct ProfileOptions {
  Placing placing;
  Training training;
  std::string device_kind;  ///< its name in cluster files
  int repetitions = 0;      ///< steps of each kind; 0 = 6 s of them, at least 10, spread over 20 s
  std::size_t microbatches = 4;  ///< of a step
  std::uint64_t seed = 0;
  std::string samples;  ///< a file to which what is timed is added, and which counts; "" = none
  std::function<void(const std::string&)> progress;  ///< told what is being measured
};

/// A pass or step, as a whole without and node by node with the clock running.
struct MeasuredSum {
  Nanoseconds whole{0};         ///< StepTimes::typical; of the optimizer the median
  Nanoseconds whole_spread{0};  ///< median absolute deviation
  Nanoseconds nodes{0};  ///< sum over nodes of their medians, before it is made equal to `whole`
  std::size_t samples = 0, interrupted = 0;  ///< of `whole`; interrupted: others had the core
};

/// What Profile::message_overhead is made of: typical times of PartSteps in turns.
struct MessageTimes {
  Nanoseconds arrival{0}, sending{0}, after_wait{0}, without_wait{0}, echo{0};
  Nanoseconds overhead() const {
    return std::max(arrival - sending - echo + after_wait - without_wait, Nanoseconds{0});
  }
};

struct ProfileReport {
  Profile profile;
  std::optional<MessageTimes> messages;
  MeasuredSum forward, backward_input, backward_weight, optimizer;
  MeasuredSum backward, split_forward;  ///< B, not split; F of a stage that splits; wholes only
  Bytes saved{0}, weight_saved{0};      ///< of the whole model
};

/// ConfigError for a precision that the device does not execute.
void require_possible(const ProfileOptions& options);

/// Measures. With a transport, all ranks measure at the same time, in step with one another, as
/// ranks of a pipeline do; each has a report of its own. ConfigError for what cannot be measured,
/// and for a file of samples that were timed of something else.
ProfileReport profile_model(const Graph& graph, const WeightSource& source,
                            const ProfileOptions& options, Transport* together = nullptr);

/// For people: sums against wholes, I and W against B, memory.
std::string to_string(const ProfileReport& report, const Graph& graph);

}  // namespace pfeife
