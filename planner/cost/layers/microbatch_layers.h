// Layers whose microbatches differ, as layers of equal ones: for those who know no others.
#pragma once

#include "planner/ir/model/layers.h"

namespace pfeife {

/// The layers of microbatches that all cost what `size` says: times by each layer's share of
/// attention, bytes by MicrobatchScale::linear, rounded down.
Layers layers_of_scale(Layers layers, const MicrobatchScale& size);
/// ... of the mean over Layers::microbatches: as much work a step. Cuts that are good for it are
/// about good for the layers.
Layers mean_microbatch(const Layers& layers);
/// ... of the smallest part that any microbatch has of either scale: no plan of `layers` takes less
/// than it does with these.
Layers least_microbatch(const Layers& layers);

/// How often the work of layer `l` is done in a step, in microbatches of the layers' own size, at
/// least: a sum over the microbatches. `alike`: all devices are of one kind, so that shares of
/// attention hold for them.
double least_work(const Layers& layers, std::size_t l, bool alike);

}  // namespace pfeife
