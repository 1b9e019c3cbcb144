#include "runtime/model/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "planner/io/files/open_file.h"
#include "planner/ir/basics/error.h"

namespace pfeife {

at::Tensor map_file(const std::filesystem::path& path, std::uint64_t offset, std::uint64_t bytes) {
  const OpenFile file(path);
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t before = offset % page;
  void* start = mmap(nullptr, bytes + before, PROT_READ | PROT_WRITE, MAP_PRIVATE,
                     file.descriptor(), static_cast<off_t>(offset - before));
  if (start == MAP_FAILED) throw RuntimeFault(path.string() + " cannot be mapped into memory");
  return at::from_blob(
      static_cast<char*>(start) + before, {static_cast<std::int64_t>(bytes)},
      [start, length = bytes + before](void*) { munmap(start, length); }, at::kByte);
}

at::Tensor map_tensor(const std::filesystem::path& path, std::uint64_t offset, c10::ScalarType type,
                      at::IntArrayRef sizes) {
  const std::int64_t elements = c10::multiply_integers(sizes);
  if (elements == 0) return at::empty(sizes, type);
  const std::size_t width = c10::elementSize(type);
  at::Tensor bytes = map_file(path, offset, static_cast<std::uint64_t>(elements) * width);
  if (offset % width != 0) bytes = bytes.clone();  // tensors start at a multiple of their element
  return at::empty({0}, type).set_(bytes.storage(), 0, sizes);
}

}  // namespace pfeife
