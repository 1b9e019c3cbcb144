// NCCL as it is beside LibTorch, with one rank: does it load, start, and move bytes?
//
// Its functions are found by name, so nothing of NCCL is needed to build.
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include "planner/ir/basics/error.h"
#include "tests/gpu/card/probe.h"

namespace pfeife::card {
namespace {

using nlohmann::json;

struct UniqueId {
  char bytes[128];
};
constexpr int kFloat32 = 7, kSum = 0;  // of nccl.h

class Nccl {
 public:
  Nccl() : library_(dlopen("libnccl.so.2", RTLD_NOW)) {
    const char* reason = library_ ? nullptr : dlerror();
    if (reason) throw RuntimeFault(stream_all("libnccl.so.2 cannot be loaded: ", reason));
  }
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    if (function == nullptr) throw RuntimeFault(stream_all("libnccl.so.2 has no ", name));
    const int code = function(arguments...);
    if (code != 0) throw RuntimeFault(stream_all(name, " answered with error ", code));
  }

 private:
  void* library_;
};

}  // namespace

void probe_nccl(const Probe& probe) {
  json answer;
  try {
    const Nccl nccl;
    int version = 0;
    nccl.call("ncclGetVersion", &version);
    answer["version"] = version;
    probe.write(answer);
    UniqueId id{};
    void* communicator = nullptr;
    nccl.call("ncclGetUniqueId", &id);
    const Nanoseconds begin = now();
    nccl.call("ncclCommInitRank", &communicator, 1, id, 0);
    answer["init_ms"] = milliseconds(now() - begin);
    const at::Tensor from = at::arange(1 << 20, at::kFloat).to(probe.device);
    at::Tensor sum = at::zeros_like(from), received = at::zeros_like(from);
    finish(probe.device);
    void* const stream = nullptr;  // CUDA's default stream
    const auto count = static_cast<std::size_t>(from.numel());
    nccl.call("ncclAllReduce", static_cast<const void*>(from.data_ptr()), sum.data_ptr(), count,
              kFloat32, kSum, communicator, stream);
    nccl.call("ncclGroupStart");
    nccl.call("ncclSend", static_cast<const void*>(from.data_ptr()), count, kFloat32, 0,
              communicator, stream);
    nccl.call("ncclRecv", received.data_ptr(), count, kFloat32, 0, communicator, stream);
    nccl.call("ncclGroupEnd");
    c10::impl::VirtualGuardImpl(probe.device.type()).synchronizeDevice(probe.device.index());
    answer["all_reduce_right"] = at::equal(sum, from);
    answer["send_to_itself_right"] = at::equal(received, from);
    nccl.call("ncclCommDestroy", communicator);
  } catch (const std::exception& error) {
    answer["error"] = error.what();
  }
  probe.write(answer);
  if (!probe.stand_in && answer.contains("error")) throw RuntimeFault(answer["error"]);
}

}  // namespace pfeife::card
