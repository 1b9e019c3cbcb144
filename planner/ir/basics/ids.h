// Integer names of things that must not be mixed up.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "planner/ir/basics/error.h"

namespace pfeife {

/// An index with a type: StageId{3} is not RankId{3}. Counts from 0.
template <class Tag>
struct Id {
  std::int32_t value = 0;

  constexpr Id() = default;
  /// From any integer; one that 32 bits do not hold is a defect.
  template <std::integral Integer>
  constexpr explicit Id(Integer v) : value(static_cast<std::int32_t>(v)) {
    PFEIFE_CHECK(std::in_range<std::int32_t>(v), "no id: ", v);
  }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
};
template <class Tag>
std::string to_string(Id<Tag> id) {
  return std::to_string(id.value);
}

using StageId = Id<struct StageTag>;    ///< a piece of the model between two cuts
using RankId = Id<struct RankTag>;      ///< a process of the pipeline
using DeviceId = Id<struct DeviceTag>;  ///< a device of the cluster
using NodeId = Id<struct NodeTag>;      ///< an operator of a Graph; order = order of execution
using ValueId = Id<struct ValueTag>;    ///< a tensor (or list of tensors) of a Graph
using ParameterId =
    Id<struct ParameterTag>;          ///< a distinct parameter of a Graph (tied names share one)
using LayerId = Id<struct LayerTag>;  ///< a layer of Layers: the unit between cut candidates
using TaskId = Id<struct TaskTag>;    ///< a task of a DependencyGraph

/// A microbatch; or one slice of its sequence, where a schedule cuts every microbatch into S of
/// them: slice k of microbatch m has the number m S + k, so tables by microbatch are tables by
/// slice.
struct MicrobatchId {
  std::int32_t value = 0;   ///< number of the microbatch, or of the slice among those of all
  std::int32_t slices = 1;  ///< S

  constexpr MicrobatchId() = default;
  /// From any integer; one that 32 bits do not hold is a defect.
  template <std::integral Integer>
  constexpr explicit MicrobatchId(Integer v, std::int32_t slices_of_each = 1)
      : value(Id<MicrobatchId>{v}.value), slices(slices_of_each) {}
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  constexpr std::int32_t microbatch() const { return value / slices; }
  constexpr std::int32_t slice() const { return value % slices; }
  friend constexpr auto operator<=>(MicrobatchId, MicrobatchId) = default;
};
/// "2"; of a slice "2.1".
inline std::string to_string(MicrobatchId id) {
  return id.slices == 1 ? std::to_string(id.value)
                        : std::to_string(id.microbatch()) + "." + std::to_string(id.slice());
}

}  // namespace pfeife
