// An accelerator that is none: a stand-in where there is no GPU.
//
// It is LibTorch's open place for devices (PrivateUse1): its memory is the host's, its kernels are
// the CPU's, its streams do at once what LibTorch gives them and later what the stand-in for NCCL
// does. What is tested with it is everything but CUDA itself: that all tensors of a pipeline are
// made on the device (an operator refuses a CPU tensor beside one of the card, as CUDA does), whose
// memory they are, which stream waits for which. Free memory is filled with NaN.
#pragma once

#include <utility>
#include <vector>

#include "planner/ir/basics/units.h"
#include "runtime/device/aten.h"

namespace pfeife::testing {

/// Makes the card known to LibTorch; again does nothing. From then on it is the process's
/// accelerator, of which LibTorch wants one: a GPU cannot be used any more.
at::Device fake_card();
bool fake_card_is_there();

/// What the card's streams were told, from all threads.
struct CardLog {
  std::vector<std::pair<c10::StreamId, c10::StreamId>>
      waits;                            ///< (who waits, for an event of whom)
  std::vector<c10::StreamId> finished;  ///< streams that a thread waited for
  std::vector<c10::StreamId> borrowed;  ///< streams that use memory of others
  std::size_t kernels = 0;              ///< operators that computed on the card
  std::size_t copies = 0;               ///< of tensors to, from and on the card
  std::size_t awaited_copies = 0;       ///< to the card from memory that is not page-locked
  std::size_t reads = 0;                ///< numbers that the host waited for
};
/// Since the last call.
CardLog take_card_log();

/// What no stream, event or wait of the host orders (stream_races.h), from all threads, since the
/// last call: sentences.
std::vector<std::string> take_races();

/// The processor's time of this thread, but for its waits for events: a card would wait, not its
/// host.
Nanoseconds host_time_here();

/// From now on the k-th wait of a stream for an event is left out, or the k-th event that the host
/// asks for says at once that it is done. 0: none.
struct Mutation {
  int wait = 0, done = 0;
};
/// What has been seen of it since.
struct Mutated {
  bool happened = false;
  bool idle = false;    ///< the stream was behind all that the event stands for anyway
  std::string of = {};  ///< an event's last work, as the stand-in for NCCL names it
};
Mutated mutate(Mutation next);

/// Between two events of the card there is always this time, while `counted`; else what the host's
/// clock said when they were recorded.
constexpr Nanoseconds kBetweenEvents = std::chrono::microseconds(250);
void count_event_times(bool counted);

}  // namespace pfeife::testing
