// What a message costs that is waited for: PartSteps in turns.
#include <optional>

#include "runtime/profile/part_steps.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kEchoTask = ~std::uint32_t{0} - 24;
constexpr std::uint32_t kEchoes = 8, kUncountedEchoes = 3;
constexpr MicrobatchId kFirst{0};

struct OwnPass {
  StageId part;
  bool forward = true;
  PerStage in;
  bool waited = false;
};

std::int64_t bytes_of(const Tensors& tensors) {
  std::int64_t sum = 0;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined()) sum += static_cast<std::int64_t>(tensor.nbytes());
  return sum;
}

}  // namespace

void PartSteps::take_turns(const StepInputs& inputs, const Keep& keep) {
  if (alone() || parts() < 2) return;
  std::vector<OwnPass> own;
  std::int64_t bytes = 0, messages = 0;
  const auto turn = [&](std::size_t s, bool forward) {
    if (owner(StageId{s}) != together_->rank()) return;
    OwnPass& pass = own.emplace_back(OwnPass{StageId{s}, forward, {}, false});
    const Nanoseconds asked = now();
    const std::optional<Message> last = take_turn(pass.part, forward, pass.in);
    const Nanoseconds begin = now();
    PerStage out = compute(pass.part, forward, pass.in);
    const Nanoseconds end = now();
    if (last) bytes += bytes_of(last->tensors), ++messages;
    pass.waited = last && last->arrived > asked;
    if (pass.waited) keep(Arrival, begin - last->posted), keep(AfterWait, end - begin);
    hand_on_turn(pass.part, forward, std::move(out), keep);
    if (!forward) stages_[s]->backward_weight(kFirst);
  };
  begin(inputs);
  for (std::size_t s = 0; s < parts(); ++s) turn(s, true);
  for (std::size_t s = parts(); s-- > 0;) turn(s, false);
  end();
  begin(inputs);
  for (const OwnPass& pass : own) {
    const Nanoseconds begin = now();
    compute(pass.part, pass.forward, pass.in);
    if (pass.waited) keep(WithoutWait, now() - begin);
    if (!pass.forward) stages_[pass.part.index()]->backward_weight(kFirst);
  }
  end();
  if (together_->rank() <= RankId{1}) echo(Bytes{messages > 0 ? bytes / messages : 0}, keep);
}

PerStage PartSteps::compute(StageId part, bool forward, const PerStage& in) {
  GraphStage& stage = *stages_[part.index()];
  return forward ? stage.forward(kFirst, in) : stage.backward_input(kFirst, in);
}

std::optional<Message> PartSteps::take_turn(StageId part, bool forward, PerStage& in) {
  const GraphStage& stage = *stages_[part.index()];
  std::optional<Message> last;
  for (const StageId from : forward ? stage.sources() : stage.destinations()) {
    const Route route{from, part, kFirst, forward};
    if (owner(from) == together_->rank()) {
      in.push_back(std::move(handed_.extract(route).mapped()));
      continue;
    }
    Message message = together_->receive(owner(from), tag(route));
    in.push_back(message.tensors);
    if (!last || message.arrived > last->arrived) last = std::move(message);
  }
  return last;
}

void PartSteps::hand_on_turn(StageId part, bool forward, PerStage out, const Keep& keep) {
  const GraphStage& stage = *stages_[part.index()];
  const std::vector<StageId>& others = forward ? stage.destinations() : stage.sources();
  for (std::size_t i = 0; i < others.size(); ++i) {
    const Route route{part, others[i], kFirst, forward};
    if (owner(others[i]) == together_->rank()) {
      handed_[route] = std::move(out[i]);
      continue;
    }
    const Nanoseconds called = now();
    together_->send(owner(others[i]), tag(route), std::move(out[i]));
    keep(Sending, now() - called);
  }
}

/// Rank 1 sends back what it gets.
void PartSteps::echo(Bytes bytes, const Keep& keep) {
  const RankId other{together_->rank() == RankId{0} ? 1U : 0U};
  const Tensors there{at::zeros({std::max<std::int64_t>(bytes.value / 4, 1)})};
  for (std::uint32_t i = 0; i < kEchoes; ++i) {
    const Tag tag{step_, kEchoTask, i};
    if (together_->rank() == RankId{0}) {
      together_->send(other, tag, there);
      const Message back = together_->receive(other, tag);
      if (i >= kUncountedEchoes) keep(Echo, back.arrived - back.posted);
    } else {
      together_->send(other, tag, together_->receive(other, tag).tensors);
    }
  }
}

}  // namespace pfeife
