// Times and bytes of a model's layers as measured on a device, by LayerSetting: a file of layer
// times that has been read (configs/reference/layer_times.md).
//   layers.find({.kind = "attention+dense", .tp = 2, .microbatch = 1, .sequence = 4096})
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/model/architecture.h"

namespace pfeife {

inline constexpr const char* kEmbeddingKind = "embedding";
inline constexpr const char* kHeadKind = "head";
/// "attention+dense", "attention window 4096+experts", "mamba".
std::string to_string(const LayerKind& kind);

/// What decides the times of a layer on one rank of a mesh.
struct LayerSetting {
  std::string kind;  ///< kEmbeddingKind, kHeadKind, or to_string(LayerKind)
  std::int64_t tp = 1, cp = 1, ep = 1;
  std::int64_t microbatch = 1;     ///< sequences of a microbatch of one replica
  std::int64_t sequence = 1;       ///< tokens of a sequence, before cp divides it
  std::string recompute = "none";  ///< modules that backward computes again: "layernorm+mlp"
  std::string precision = {};      ///< "bf16", "fp16", "fp8", ...; in a row "" = any
  friend bool operator==(const LayerSetting&, const LayerSetting&) = default;
};
/// "attention+dense at tp 2, cp 1, ep 1, microbatch 1, sequence 4096, recompute none, bf16".
std::string to_string(const LayerSetting& setting);

/// A row: one microbatch on one layer, without collectives.
struct MeasuredLayer {
  LayerSetting setting;
  Nanoseconds forward{0};
  Nanoseconds input{0};            ///< backward without the gradients of weights
  Nanoseconds weight{0};           ///< gradients of weights
  std::optional<Bytes> saved;      ///< kept from forward to backward, without weights
  std::optional<Bytes> temporary;  ///< held in addition, only during a pass
  std::optional<Bytes> parameters;
  int line = 0;  ///< of the file
  friend bool operator==(const MeasuredLayer&, const MeasuredLayer&) = default;
};

struct MeasuredLayerFound {
  MeasuredLayer layer;
  bool interpolated = false;
};

struct MeasuredLayers {
  std::string file;     ///< "" = there are none
  std::string machine;  ///< where and with which versions, in the file's words
  std::vector<MeasuredLayer> rows;

  bool empty() const { return rows.empty(); }
  /// The row with this setting. Without one, the nearest two rows that differ from it in only one
  /// of microbatch, sequence and tp, one below, one above, at most four times apart, interpolated:
  /// log(time) is linear in log(size). nullopt if there is neither. O(rows).
  std::optional<MeasuredLayerFound> find(const LayerSetting& setting) const;
  /// Why find() gives nothing, in words: the setting, and what the nearest row has instead.
  std::string missing(const LayerSetting& setting) const;
  friend bool operator==(const MeasuredLayers&, const MeasuredLayers&) = default;
};

}  // namespace pfeife
