// Links that take as long as they are told, over any transport.
//
// A message is handed to the rank no earlier than its posting plus the length of its task: a delay
// that never holds the sender and lets any number of messages overlap, as Links::Delay. The real
// transport's time counts within it. Clocks of all ranks must agree, so one host only.
#pragma once

#include <map>
#include <vector>

#include "runtime/timed/timed_wait.h"
#include "runtime/transport/transport.h"

namespace pfeife {

class TimedTransport final : public Transport {
 public:
  /// `durations` by task; messages of other tags pass as they are. A reduction lasts from the last
  /// of its parts. References must outlive it.
  TimedTransport(Transport& inner, std::vector<Nanoseconds> durations, Lateness& lateness)
      : inner_(inner), durations_(std::move(durations)), lateness_(lateness) {}

  RankId rank() const override { return inner_.rank(); }
  std::size_t ranks() const override { return inner_.ranks(); }
  void send(RankId to, Tag tag, Tensors tensors) override;
  Message receive(RankId from, Tag tag) override;
  void stop(const RankFault& fault) override { inner_.stop(fault); }

 private:
  Transport& inner_;
  std::vector<Nanoseconds> durations_;
  Lateness& lateness_;
  std::uint64_t step_ = 0;
  std::map<std::uint32_t, Nanoseconds>
      own_parts_;  ///< of reductions: when this rank posted its own
};

}  // namespace pfeife
