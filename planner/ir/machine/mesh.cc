#include "planner/ir/machine/mesh.h"

#include <algorithm>

namespace pfeife {
namespace {

constexpr std::array<Axis, kAxes> kAll = {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data};

}  // namespace

std::string to_string(Axis axis) {
  switch (axis) {
    case Axis::Tensor:
      return "tp";
    case Axis::Context:
      return "cp";
    case Axis::Pipeline:
      return "pp";
    case Axis::Data:
      return "dp";
  }
  return "";
}

std::int64_t Mesh::devices() const {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

std::int64_t Mesh::stride(Axis axis) const {
  std::int64_t stride = 1;
  for (const Axis inner : order) {
    if (inner == axis) break;
    stride *= size(inner);
  }
  return stride;
}

DeviceId device_at(const Mesh& mesh, const Coordinates& at) {
  std::int64_t device = 0;
  for (const Axis axis : kAll) device += at[static_cast<std::size_t>(axis)] * mesh.stride(axis);
  return DeviceId{device};
}

Coordinates coordinates_of(const Mesh& mesh, DeviceId device) {
  Coordinates at{};
  for (const Axis axis : kAll)
    at[static_cast<std::size_t>(axis)] = device.value / mesh.stride(axis) % mesh.size(axis);
  return at;
}

std::vector<DeviceId> group_of(const Mesh& mesh, DeviceId device, const std::vector<Axis>& axes) {
  Coordinates first = coordinates_of(mesh, device);
  for (const Axis axis : axes) first[static_cast<std::size_t>(axis)] = 0;
  std::vector<DeviceId> members = {device_at(mesh, first)};
  for (const Axis axis : axes) {
    const std::vector<DeviceId> before = std::move(members);
    members.clear();
    for (std::int64_t i = 0; i < mesh.size(axis); ++i)
      for (const DeviceId member : before)
        members.emplace_back(member.value + i * mesh.stride(axis));
  }
  std::ranges::sort(members);
  return members;
}

bool hosts_align(const Mesh& mesh, std::int64_t devices_per_host) {
  std::int64_t inner = 1;
  for (const Axis axis : mesh.order) {
    const std::int64_t outer = inner * mesh.size(axis);
    if (devices_per_host <= outer)
      return devices_per_host % inner == 0 && outer % devices_per_host == 0;
    inner = outer;
  }
  return true;  // one host
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const Axis axis : kAll)
    text += to_string(axis) + " " + std::to_string(mesh.size(axis)) + ", ";
  if (mesh.experts > 1) text += "ep " + std::to_string(mesh.experts) + ", ";
  text.resize(text.size() - 2);
  return text + " (" + std::to_string(mesh.devices()) + " devices)";
}

}  // namespace pfeife
