#include "runtime/transport/in_process_transport.h"

#include "planner/ir/basics/error.h"

namespace pfeife {

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(InProcessHub& hub, RankId rank) : hub_(hub), rank_(rank) {}

  RankId rank() const override { return rank_; }
  std::size_t ranks() const override { return hub_.boxes_.size(); }

  void send(RankId to, Tag tag, Tensors tensors) override {
    hub_.check();
    InProcessHub::Box& box = hub_.boxes_[to.index()];
    const Nanoseconds time = now();
    {
      StreamHandover handover(tensors);
      const std::lock_guard lock(box.mutex);
      box.messages.insert_or_assign(
          {rank_, tag}, InProcessHub::Sent{{std::move(tensors), time, now()}, std::move(handover)});
    }
    box.arrived.notify_all();
  }

  Message receive(RankId from, Tag tag) override {
    InProcessHub::Box& box = hub_.boxes_[rank_.index()];
    std::unique_lock lock(box.mutex);
    const std::pair key{from, tag};
    box.arrived.wait(lock, [&] { return box.messages.contains(key) || hub_.failed(); });
    hub_.check();
    InProcessHub::Sent sent = std::move(box.messages.extract(key).mapped());
    lock.unlock();
    sent.message.tensors = sent.handover.receive(std::move(sent.message.tensors));
    return std::move(sent.message);
  }

  void stop(const RankFault& fault) override {
    {
      const std::lock_guard lock(hub_.failure_mutex_);
      if (!hub_.failure_) hub_.failure_ = fault;
    }
    for (InProcessHub::Box& box : hub_.boxes_) {
      const std::lock_guard lock(box.mutex);  // or a rank about to wait would miss it
      box.arrived.notify_all();
    }
  }

 private:
  InProcessHub& hub_;
  RankId rank_;
};

std::unique_ptr<Transport> InProcessHub::transport(RankId rank) {
  return std::make_unique<InProcessTransport>(*this, rank);
}

void InProcessHub::check() const {
  const std::lock_guard lock(failure_mutex_);
  if (failure_) throw *failure_;
}

bool InProcessHub::failed() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_.has_value();
}

}  // namespace pfeife
