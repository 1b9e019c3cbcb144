#include "runtime/timed/timed_transport.h"

#include <algorithm>

namespace pfeife {

void TimedTransport::send(RankId to, Tag tag, Tensors tensors) {
  if (tag.step != step_) own_parts_.clear(), step_ = tag.step;
  if (tag.task < durations_.size()) own_parts_.try_emplace(tag.task, now());
  inner_.send(to, tag, std::move(tensors));
}

Message TimedTransport::receive(RankId from, Tag tag) {
  Message message = inner_.receive(from, tag);
  if (tag.task >= durations_.size()) return message;
  Nanoseconds start = message.posted;
  // Only a reduction's parts are sent and received under one tag.
  if (const auto part = own_parts_.find(tag.task); part != own_parts_.end() && tag.step == step_)
    start = std::max(start, part->second);
  const Nanoseconds end = start + durations_[tag.task];
  const bool waited = now() < end;
  sleep_until(end, lateness_);
  message.arrived = std::max(message.arrived, waited ? now() : end);
  return message;
}

}  // namespace pfeife
