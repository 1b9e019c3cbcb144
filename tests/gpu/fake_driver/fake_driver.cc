// A library that is no driver of NVIDIA's: built as libcuda.so.1 in a folder of its own, for
// LD_LIBRARY_PATH. It shows PFEIFE_FAKE_CARDS cards and runs CUDA PFEIFE_FAKE_CUDA (13000 = 13.0).
#include <cstdlib>
#include <cstring>

namespace {

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int* count) {
  *count = number("PFEIFE_FAKE_CARDS", 1);
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = number("PFEIFE_FAKE_CUDA", 13000);
  return 0;
}
int cuDeviceGetName(char* name, int room, int) {
  std::strncpy(name, "no card at all", static_cast<std::size_t>(room));
  return 0;
}
int cuDeviceGetUuid(void* identity, int card) {
  std::memset(identity, card, 16);
  return 0;
}

}  // extern "C"
