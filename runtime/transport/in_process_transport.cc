#include "runtime/transport/in_process_transport.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

bool is_on_device(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.device().is_cpu();
}

}  // namespace

StreamHandover::StreamHandover(const Tensors& tensors) {
  const auto found = std::ranges::find_if(tensors, is_on_device);
  if (found == tensors.end()) return;
  const c10::impl::VirtualGuardImpl guard(found->device().type());
  ready_.emplace(found->device().type());
  ready_->record(guard.getStream(found->device()));
}

Tensors StreamHandover::receive(Tensors tensors) const {
  if (!ready_) return tensors;
  const c10::impl::VirtualGuardImpl guard(ready_->device_type());
  const c10::Stream stream = guard.getStream(ready_->device());
  ready_->block(stream);
  for (at::Tensor& tensor : tensors) {
    if (!is_on_device(tensor)) continue;
    const at::Tensor theirs = std::exchange(tensor, tensor.clone());
    // Else its memory could be given to others while the copy is still to come.
    guard.recordDataPtrOnStream(theirs.storage().data_ptr(), stream);
  }
  return tensors;
}

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
