#include <dlfcn.h>

#include <cstdlib>

#include "planner/ir/basics/error.h"
#include "runtime/transport/nccl_transport.h"

namespace pfeife {
namespace {

constexpr const char* kRemedy =
    "name one with PFEIFE_NCCL, or install the one that LibTorch needs: pip install torch==2.11.0 "
    "without --no-deps";

template <class Function>
void find(void* library, const std::string& path, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw ConfigError({path},
                      std::string("is no NCCL, or too old: it has no ") + name + "; " + kRemedy);
}

}  // namespace

int NcclLibrary::version() const {
  int number = 0;
  GetVersion(&number);
  return number;
}

std::string nccl_version_text(int version) {
  return stream_all(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

NcclLibrary open_nccl() {
  const char* given = std::getenv("PFEIFE_NCCL");
  NcclLibrary nccl{};
  nccl.path = given && *given ? given : "libnccl.so.2";
  void* library = dlopen(nccl.path.c_str(), RTLD_NOW);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw ConfigError({nccl.path}, stream_all("NCCL cannot be loaded (",
                                              reason ? reason : "no reason given", "); ", kRemedy));
  }
  find(library, nccl.path, "ncclGetVersion", nccl.GetVersion);
  if (nccl.version() < nccl::kOldest)
    throw ConfigError({nccl.path}, "is NCCL " + nccl_version_text(nccl.version()) + "; at least " +
                                       nccl_version_text(nccl::kOldest) + " is needed: " + kRemedy);
  find(library, nccl.path, "ncclGetUniqueId", nccl.GetUniqueId);
  find(library, nccl.path, "ncclCommInitRankConfig", nccl.CommInitRankConfig);
  find(library, nccl.path, "ncclCommSplit", nccl.CommSplit);
  find(library, nccl.path, "ncclCommGetAsyncError", nccl.CommGetAsyncError);
  find(library, nccl.path, "ncclCommFinalize", nccl.CommFinalize);
  find(library, nccl.path, "ncclCommDestroy", nccl.CommDestroy);
  find(library, nccl.path, "ncclCommAbort", nccl.CommAbort);
  find(library, nccl.path, "ncclGroupStart", nccl.GroupStart);
  find(library, nccl.path, "ncclGroupEnd", nccl.GroupEnd);
  find(library, nccl.path, "ncclSend", nccl.Send);
  find(library, nccl.path, "ncclRecv", nccl.Recv);
  find(library, nccl.path, "ncclAllReduce", nccl.AllReduce);
  find(library, nccl.path, "ncclGetErrorString", nccl.GetErrorString);
  find(library, nccl.path, "ncclGetLastError", nccl.GetLastError);
  return nccl;
}

}  // namespace pfeife
