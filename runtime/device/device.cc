#include "runtime/device/device.h"

#include <c10/core/AutogradState.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include "planner/ir/basics/error.h"
#include "runtime/device/driver.h"

namespace pfeife {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw ConfigError({"--device"}, why); }

/// The number in "cuda" and "cuda:N".
std::optional<int> card_number(const std::string& name) {
  if (name == "cuda") return 0;
  const std::string number = name.starts_with("cuda:") ? name.substr(5) : "";
  if (number.empty() || number.size() > 3 || number.find_first_not_of("0123456789") != number.npos)
    return {};
  return std::stoi(number);
}

void load_cuda() {
  if (c10::impl::hasDeviceGuardImpl(at::kCUDA)) return;
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL)) return;
  const char* reason = dlerror();
  refuse(stream_all(
      "LibTorch's library for CUDA cannot be loaded (", reason ? reason : "no reason given",
      "); install all that it needs: pip install torch==2.11.0 without --no-deps, where "
      "LIBTORCH_ROOT or build/venv has LibTorch"));
}

c10::impl::VirtualGuardImpl guard(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

}  // namespace

at::Device open_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const std::optional<int> card = card_number(name);
  if (!card) refuse("unknown device '" + name + "'; use cpu, cuda or cuda:N");
  const Driver driver;
  if (!driver.is_there())
    refuse("no CUDA device found: this machine has no NVIDIA driver (libcuda.so.1); use cpu");
  const int cards = driver.cards();
  if (cards == 0)
    refuse(
        "no CUDA device found: the driver shows none (see nvidia-smi and CUDA_VISIBLE_DEVICES); "
        "use cpu");
  if (*card >= cards)
    refuse(stream_all("there is no ", name, ": the last card is cuda:", cards - 1));
  load_cuda();
  if (guard(at::kCUDA).deviceCount() > 0 && !at::hasCUDA())
    refuse(
        "LibTorch was asked for devices before its library for CUDA was loaded, and keeps the "
        "answer "
        "that there are none; open the card first, in a process of its own");
  if (guard(at::kCUDA).deviceCount() == 0)
    refuse(
        "no CUDA device found by LibTorch, though the driver shows one: is the driver new enough "
        "for CUDA 13.0 (nvidia-smi shows its version)?");
  at::globalContext().lazyInitDevice(at::kCUDA);
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(*card));
}

void allow_tf32(bool allowed) {
  at::globalContext().setAllowTF32CuBLAS(allowed);
  at::globalContext().setAllowTF32CuDNN(allowed);
}

std::string card_name(at::Device device) {
  return device.is_cuda() ? Driver().name(device.index()) : "";
}

at::Tensor copied_ahead(const at::Tensor& on_cpu, at::Device device, at::ScalarType type) {
  const at::Tensor converted = on_cpu.to(type);
  if (device.is_cpu()) return converted;
  return converted.pin_memory().to(device, /*non_blocking=*/true);
}

void finish(at::Device device) {
  if (device.is_cpu()) return;
  const auto on = guard(device);
  on.synchronizeStream(on.getStream(device));
}

void check_streams(std::size_t ranks, at::Device device) {
  constexpr std::size_t kStreams = 32;  // of a priority, c10/cuda/CUDAStream.cpp
  if (device.is_cpu() || ranks <= kStreams) return;
  throw ConfigError({"--device"}, stream_all(ranks, " ranks would share a card, which has ",
                                             kStreams, " streams for them: plan for at most ",
                                             kStreams, " devices, or give each rank a card"));
}

DeviceThread::DeviceThread(at::Device device) {
  auto& autograd = c10::AutogradState::get_tls_state();
  backward_elsewhere_ = autograd.get_multithreading_enabled();
  autograd.set_multithreading_enabled(false);
  if (device.is_cpu()) return;
  guard(device).synchronizeDevice(device.index());
  stream_.emplace(guard(device).getNewStream(device));
}

DeviceThread::~DeviceThread() {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(backward_elsewhere_);
}

}  // namespace pfeife
