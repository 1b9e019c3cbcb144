#include "planner/mesh/activation_memory.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"
#include "planner/mesh/mesh_price.h"

namespace pfeife {
namespace {

Bytes scaled(Bytes bytes, double factor) {
  return Bytes{std::llround(factor * static_cast<double>(bytes.value))};
}

PassBytes scaled(const PassBytes& bytes, double factor) {
  return {scaled(bytes.forward, factor), scaled(bytes.backward, factor),
          scaled(bytes.input, factor), scaled(bytes.weight, factor)};
}

/// Calls `visit(storage)` for each storage that layer `l` is the first to keep.
template <class Storages, class Visit>
void each_kept(Storages& storages, std::size_t l, const Visit& visit) {
  for (auto& storage : storages)
    if (!storage.savers.empty() && storage.savers.front().index() == l) visit(storage);
}

Bytes fullest_rank(MeshRun run, const Network& network, double activation_factor) {
  run.activation_factor = activation_factor;
  return std::ranges::max(price_mesh(run, network).plan.peak_memory);
}

std::string gib(Bytes bytes) {
  return fixed(static_cast<double>(bytes.value) / static_cast<double>(kGiB.value), 2) + " GiB";
}

}  // namespace

Bytes kept_bytes(const Layers& layers, std::size_t begin, std::size_t end) {
  Bytes all;
  for (std::size_t l = begin; l < end; ++l) {
    all += layers.layers[l].saved;
    each_kept(layers.storages, l, [&](const LayerStorage& storage) { all += storage.bytes; });
  }
  return all;
}

Bytes temporary_bytes(const Layers& layers, std::size_t begin, std::size_t end) {
  Bytes most;
  for (std::size_t l = begin; l < end; ++l)
    most = std::max(most, layers.layers[l].temporary.largest());
  return most;
}

void scale_activations(Layers& layers, std::size_t begin, std::size_t end, double kept,
                       double temporary) {
  for (std::size_t l = begin; l < end; ++l) {
    Layer& layer = layers.layers[l];
    const Bytes more = scaled(kept_bytes(layers, l, l + 1), kept - 1);
    layer.weight_saved = scaled(layer.weight_saved, kept);
    layer.temporary = scaled(layer.temporary, temporary);
    if (more >= Bytes{0}) {
      layer.saved += more;
      continue;
    }
    Bytes own = layer.saved;
    each_kept(layers.storages, l, [&](const LayerStorage& storage) {
      if (!storage.value) own += storage.bytes;
    });
    const double left =
        own == Bytes{0}
            ? 0
            : std::max(0.0, 1 + static_cast<double>(more.value) / static_cast<double>(own.value));
    layer.saved = scaled(layer.saved, left);
    each_kept(layers.storages, l, [&](LayerStorage& storage) {
      if (!storage.value) storage.bytes = scaled(storage.bytes, left);
    });
  }
}

PeakResidual peak_residual(const MeasuredPeak& peak, const MeshRun& run, const Network& hosts) {
  const MeshRun measured = measured_run(peak, run);
  Network network = hosts;
  network.measured_layers = {};  // times do not change what is kept; the file may lack this mesh
  const auto fail = [&](const std::string& why) {
    throw ConfigError({}, "model.measured_peak of " + gib(peak.bytes) + ": " + why);
  };
  try {
    check_run(measured);
  } catch (const ConfigError& error) {
    fail(error.what());
  }
  double low = 0, high = kMostActivations;
  if (const Bytes least = fullest_rank(measured, network, low); least > peak.bytes)
    fail(to_string(measured.mesh) + " takes " + gib(least) +
         " without any activations; give torch.cuda.max_memory_allocated() of the fullest rank, "
         "and the mesh, ZeRO and optimizer of that run");
  if (const Bytes most = fullest_rank(measured, network, high); most < peak.bytes)
    fail(to_string(measured.mesh) + " takes " + gib(most) + " with " + shortest(kMostActivations) +
         " times the activations of the formula; give the mesh, microbatch and sequence of that "
         "run");
  while (high - low > 1e-9) {
    const double middle = (low + high) / 2;
    (fullest_rank(measured, network, middle) < peak.bytes ? low : high) = middle;
  }
  return {fullest_rank(measured, network, 1), high};
}

}  // namespace pfeife
