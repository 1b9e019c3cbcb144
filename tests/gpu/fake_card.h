// An accelerator that is none: a stand-in where there is no GPU.
//
// It is LibTorch's open place for devices (PrivateUse1): its memory is the host's, its kernels are
// the CPU's, its streams do at once what they are given. What is tested with it is everything but
// CUDA itself: that all tensors of a pipeline are made on the device (an operator refuses a CPU
// tensor beside one of the card, as CUDA does), whose memory they are, which stream waits for
// which.
#pragma once

#include <utility>
#include <vector>

#include "planner/ir/units.h"
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

/// Between two events of the card there is always this time, while `counted`; else what the host's
/// clock said when they were recorded.
constexpr Nanoseconds kBetweenEvents = std::chrono::microseconds(250);
void count_event_times(bool counted);

}  // namespace pfeife::testing
