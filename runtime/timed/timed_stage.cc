#include "runtime/timed/timed_stage.h"

#include "planner/ir/basics/error.h"
#include "runtime/transport/transport.h"

namespace pfeife {
namespace {

/// What fills a message: tells stages, microbatches and ways apart.
std::uint8_t stamp(StageId from, MicrobatchId m, bool onward) {
  return static_cast<std::uint8_t>((from.value * 31 + m.value * 7 + (onward ? 1 : 0)) % 251);
}

void check_message(const Action& action, const Tensors& message, Bytes bytes, StageId from,
                   bool onward) {
  PFEIFE_CHECK(message.size() == 1, to_string(action), " got ", message.size(),
               " tensors from stage ", from.value);
  const at::Tensor& tensor = message.front();
  PFEIFE_CHECK(tensor.numel() == bytes.value, to_string(action), " got ", tensor.numel(),
               " bytes from stage ", from.value, ", not ", bytes.value);
  const std::uint8_t expected = stamp(from, *action.microbatch, onward);
  const auto* content = tensor.const_data_ptr<std::uint8_t>();
  for (const std::int64_t i : {std::int64_t{0}, bytes.value / 2, bytes.value - 1})
    PFEIFE_CHECK(content[i] == expected, to_string(action), " got what stage ", from.value,
                 " made for another microbatch");
}

}  // namespace

TimedStage::TimedStage(const StageCosts& costs, StageId stage,
                       std::function<Nanoseconds(const Action&)> time, Lateness& lateness)
    : stage_(stage), time_(std::move(time)), lateness_(lateness) {
  for (const StagePair& pair : costs.pairs) {
    if (pair.to == stage) {
      sources_.push_back(pair.from);
      onward_.in.push_back(pair.bytes);
      back_.out.push_back(pair.gradient_bytes);
    }
    if (pair.from == stage) {
      destinations_.push_back(pair.to);
      onward_.out.push_back(pair.bytes);
      back_.in.push_back(pair.gradient_bytes);
    }
  }
}

PerStage TimedStage::perform(const Action& action, const std::vector<StageId>& senders,
                             const PerStage& received, const Messages& messages) {
  const Nanoseconds end = now() + time_(action);
  const bool onward = operation(action.op).passes == Direction::Forward;
  for (std::size_t i = 0; i < senders.size(); ++i)
    if (messages.in[i] > Bytes{0})
      check_message(action, received.at(i), messages.in[i], senders[i], onward);
  PerStage out;
  for (const Bytes bytes : messages.out) {
    Tensors& message = out.emplace_back();
    if (bytes > Bytes{0})
      message.push_back(at::full({bytes.value}, stamp(stage_, *action.microbatch, onward),
                                 at::TensorOptions().dtype(at::kByte)));
  }
  sleep_until(end, lateness_);
  return out;
}

PerStage TimedStage::forward(MicrobatchId m, const PerStage& received) {
  PFEIFE_CHECK(in_flight_.insert(m).second, "microbatch ", m.value, " has run twice");
  return perform(pfeife::forward(stage_, m), sources_, received, onward_);
}

PerStage TimedStage::backward(MicrobatchId m, const PerStage& gradients) {
  PFEIFE_CHECK(in_flight_.erase(m) == 1, "microbatch ", m.value, " has no forward");
  return perform(pfeife::backward(stage_, m), destinations_, gradients, back_);
}

PerStage TimedStage::backward_input(MicrobatchId m, const PerStage& gradients) {
  PFEIFE_CHECK(in_flight_.erase(m) == 1, "microbatch ", m.value, " has no forward");
  weights_pending_.insert(m);
  return perform(pfeife::backward_input(stage_, m), destinations_, gradients, back_);
}

void TimedStage::backward_weight(MicrobatchId m) {
  PFEIFE_CHECK(weights_pending_.erase(m) == 1, "microbatch ", m.value, " has no backward-input");
  perform(pfeife::backward_weight(stage_, m), {}, {}, {});
}

}  // namespace pfeife
