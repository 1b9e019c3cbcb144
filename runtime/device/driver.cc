#include "runtime/device/driver.h"

#include <dlfcn.h>

#include <cstdio>

namespace pfeife {

Driver::Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {}

template <class Function>
Function Driver::find(const char* name) const {
  return library_ ? reinterpret_cast<Function>(dlsym(library_, name)) : nullptr;
}

int Driver::cards() const {
  int count = 0;
  const auto initialise = find<int (*)(unsigned)>("cuInit");
  const auto number = find<int (*)(int*)>("cuDeviceGetCount");
  return initialise && number && initialise(0) == 0 && number(&count) == 0 ? count : 0;
}

std::string Driver::name(int card) const {
  char text[128] = "";
  const auto name = find<int (*)(char*, int, int)>("cuDeviceGetName");
  return name && name(text, sizeof text, card) == 0 ? text : "";
}

std::string Driver::identity(int card) const {
  unsigned char bytes[16];
  const auto identify = find<int (*)(void*, int)>("cuDeviceGetUuid");
  if (!identify || identify(bytes, card) != 0) return "";
  std::string text = "GPU-";
  for (const unsigned char byte : bytes) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", byte);
    text += hex;
  }
  return text;
}

int Driver::cuda_version() const {
  int version = 0;
  const auto ask = find<int (*)(int*)>("cuDriverGetVersion");
  return ask && ask(&version) == 0 ? version : 0;
}

}  // namespace pfeife
