// NCCL, opened when it is asked for: own declarations of what is used of it, so that building needs
// neither its header nor its library. tests/gpu compares them with nccl.h where that is installed.
#pragma once

#include <cstddef>
#include <string>

namespace pfeife {

namespace nccl {

enum Result : int { kSuccess = 0, kInProgress = 7 };
enum Type : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9
};
constexpr int kSum = 0;
constexpr int kNoColor = -1;
constexpr int kOldest = 21801;  ///< has ncclCommSplit, and Config as it is here
constexpr int kUndefined = -2147483647 - 1;

struct UniqueId {
  char bytes[128];
};

/// ncclConfig_t as it began; later versions take it, by its size and version.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kOldest;
  int blocking = 0;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
};

using Communicator = void*;  ///< ncclComm_t
using Stream = void*;        ///< cudaStream_t

}  // namespace nccl

/// Its functions; all return nccl::Result unless said otherwise. Stays loaded.
struct NcclLibrary {
  std::string path;
  int (*GetVersion)(int*);
  int (*GetUniqueId)(nccl::UniqueId*);
  int (*CommInitRankConfig)(nccl::Communicator*, int ranks, nccl::UniqueId, int rank,
                            nccl::Config*);
  int (*CommSplit)(nccl::Communicator, int color, int key, nccl::Communicator*, nccl::Config*);
  int (*CommGetAsyncError)(nccl::Communicator, int* result);
  int (*CommFinalize)(nccl::Communicator);
  int (*CommDestroy)(nccl::Communicator);
  int (*CommAbort)(nccl::Communicator);
  int (*GroupStart)();
  int (*GroupEnd)();
  int (*Send)(const void*, std::size_t count, int type, int peer, nccl::Communicator, nccl::Stream);
  int (*Recv)(void*, std::size_t count, int type, int peer, nccl::Communicator, nccl::Stream);
  int (*AllReduce)(const void*, void*, std::size_t count, int type, int operation,
                   nccl::Communicator, nccl::Stream);
  const char* (*GetErrorString)(int);
  const char* (*GetLastError)(nccl::Communicator);

  int version() const;
};

/// PFEIFE_NCCL, else libnccl.so.2 as the system finds it: the one beside LibTorch once LibTorch's
/// library for CUDA is loaded. ConfigError with the remedy: none there, a function missing, too
/// old.
NcclLibrary open_nccl();

/// "2.28.9" of 22809.
std::string nccl_version_text(int version);

}  // namespace pfeife
