// A mesh of devices: ordered axes, each a way to divide the work; the device of every coordinate.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"

namespace pfeife {

/// What an axis divides. Experts lie over context and data: a view of both, no axis of its own.
enum class Axis {
  Tensor,    ///< matrices of a layer (tp)
  Context,   ///< the sequence (cp)
  Pipeline,  ///< the layers (pp)
  Data,      ///< the batch (dp)
};
/// "tp", "cp", "pp", "dp".
std::string to_string(Axis axis);

inline constexpr std::size_t kAxes = 4;

struct Mesh {
  std::array<std::int64_t, kAxes> sizes = {1, 1, 1, 1};  ///< [axis]
  /// The first axis has neighbouring devices, the last one the furthest apart.
  std::array<Axis, kAxes> order = {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data};
  std::int64_t experts = 1;  ///< ep: experts are divided by so much, within context x data

  std::int64_t size(Axis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  std::int64_t& size(Axis axis) { return sizes[static_cast<std::size_t>(axis)]; }
  std::int64_t devices() const;
  /// Distance between the numbers of two devices that are neighbours on the axis.
  std::int64_t stride(Axis axis) const;
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

using Coordinates = std::array<std::int64_t, kAxes>;  ///< [axis]

/// Sum of coordinate x stride.
DeviceId device_at(const Mesh& mesh, const Coordinates& at);
Coordinates coordinates_of(const Mesh& mesh, DeviceId device);

/// The devices that differ from `device` in the given axes only, sorted; itself among them.
std::vector<DeviceId> group_of(const Mesh& mesh, DeviceId device, const std::vector<Axis>& axes);

/// The border of a host is one of the mesh: a host has all coordinates of the inner axes, an equal
/// part of one axis, and one coordinate of each outer axis. All devices then see the same.
bool hosts_align(const Mesh& mesh, std::int64_t devices_per_host);

/// "tp 8, cp 1, pp 16, dp 4 (512 devices)".
std::string to_string(const Mesh& mesh);

}  // namespace pfeife
