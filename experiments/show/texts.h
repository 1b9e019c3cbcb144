// Texts that a verb prints; each is in a source of its name.
#pragma once

#include <string>
#include <vector>

#include "experiments/measure/calibrated.h"
#include "experiments/measure/compared.h"
#include "planner/io/results/results.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

// The second closing table: what was predicted against what was measured, for a terminal.

/// A row a measured plan: its measured step, and the errors of estimate, simulation and peak memory
/// (predicted / measured - 1; of memory that of the rank that is furthest off). `verbose`: the
/// peaks of each rank and the actions whose duration was furthest from the prediction, too. "" if
/// nothing was measured. Plans measured in rounds: how well each median is known, and which of two
/// plans is faster. ASCII.
std::string accuracy_table(const std::vector<CaseRecord>& cases, std::size_t width = 80,
                           bool verbose = false);

// What a calibration by traces found, for a terminal.

/// The errors on the steps held out, before and after; the curves. ASCII.
std::string calibration_text(const Calibrated& calibrated, std::size_t width = 80);

// What a run lost against its plan, for a terminal.

/// One sentence: how much longer the run took than was predicted, and to what most of it went.
std::string why_slower(const Comparison& comparison);

/// The sentence; the losses of each rank, which add up to the difference; where the time of each
/// rank went, beside the prediction; the table of errors that `measure` gives; how well the clocks
/// are known. ASCII.
std::string comparison_text(const Comparison& comparison, std::size_t width = 80);

// step_below: with how few devices a step takes less than a given time.

/// A line for cases that differ in the number of devices alone: the fewest with which the planned
/// step is shorter than `limit` by the best engine that all planned ones that fit have, and why the
/// next fewer do not do (a bound above the limit proves it). "" without cases.
std::string fewest_devices(const std::vector<CaseRecord>& cases, Nanoseconds limit,
                           std::size_t width = 80);

// --layers: the layers of a model, which cuts lie between, with what each costs.

/// A line a layer: number, module, times on the first device kind, bytes. A layer after which the
/// model must not be cut is marked.
std::string layer_table(const Layers& layers, const Cluster& cluster);

/// The same as CSV, a line a layer and device kind, with why there is no cut after it; bytes and
/// nanoseconds.
std::string layers_csv(const Layers& layers, const Cluster& cluster);

}  // namespace pfeife
