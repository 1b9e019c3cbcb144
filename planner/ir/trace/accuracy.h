// How far a prediction was from what happened.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/ir/trace/median_interval.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// An action whose duration was predicted and measured.
struct ActionError {
  RankId rank;         ///< sender of a transfer
  std::string action;  ///< as in the schedule: "1F0", "0SEND_F0", "0OPTIMIZER_STEP"
  Nanoseconds predicted{0}, measured{0};
  friend bool operator==(const ActionError&, const ActionError&) = default;
};

/// What a run of a plan says beside its step time.
struct MeasuredRun {
  std::string failure;              ///< why nothing was measured; "" = it was
  std::size_t steps = 0;            ///< that count
  double others = 0;                ///< processors that other programs kept busy meanwhile
  std::optional<Nanoseconds> anew;  ///< estimated with a profile that was taken between the rounds
  Nanoseconds p5{0}, p95{0};
  std::vector<Nanoseconds> rounds;  ///< [round] the median of its steps
  double interval_goal = 0;         ///< half width that the median's interval was to have, a share
  std::vector<Bytes> peak_memory;   ///< [rank]; empty = not counted
  std::vector<ActionError> furthest;  ///< from the prediction, the furthest first
  friend bool operator==(const MeasuredRun&, const MeasuredRun&) = default;
};

/// Where the median of rounds lies with 95 %. None of fewer than six rounds.
std::optional<MedianInterval> median_interval(const MeasuredRun& run);

/// Rounds were asked for, and their median is not known as well as it was to be.
bool misses_goal(const MeasuredRun& run);

/// predicted / measured - 1: above 0 if the prediction was too long (or too much). 0 if nothing was
/// measured.
double relative_error(double predicted, double measured);

/// The `count` events whose duration differs most, in time, between `predicted` and
/// `durations` [event]; the first of equals first.
std::vector<ActionError> furthest_actions(const Trace& predicted,
                                          std::span<const Nanoseconds> durations,
                                          std::size_t count);

}  // namespace pfeife
