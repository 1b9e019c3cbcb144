#include "runtime/model/safetensors_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/open_file.h"
#include "planner/ir/basics/error.h"
#include "runtime/device/tensor_bytes.h"
#include "runtime/model/operators.h"

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

void write_safetensors(const std::filesystem::path& file,
                       const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata,
                       std::string_view option) {
  SafetensorsHeader header{{}, metadata};
  for (const auto& [name, tensor] : tensors)
    header.entries.push_back({name, dtype_of(tensor.scalar_type()), tensor.sizes().vec(), 0, 0});
  const std::string head = safetensors_header(header);
  const auto content = [&](const FileSink& write) {
    write(head);
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor row_major = as_stored(tensor).cpu().contiguous();
      const std::span<const char> bytes = stored_bytes(row_major);
      write({bytes.data(), bytes.size()});
    }
  };
  write_pieces(file, content, option);
  flush_to_disk(file, option);
}

SafetensorsFile::SafetensorsFile(std::filesystem::path file)
    : file_(std::move(file)), header_(read_safetensors_header(file_)) {}

at::Tensor SafetensorsFile::tensor(const SafetensorsEntry& entry) const {
  return map_tensor(file_, entry.begin, scalar_type(entry.dtype), entry.sizes);
}

void flush_to_disk(const std::filesystem::path& path, std::string_view option) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int result = file < 0 ? -1 : fsync(file);
  const int code = errno;
  if (file >= 0) close(file);
  if (result != 0 && code != EINVAL)  // EINVAL: a file system that knows no such thing
    throw write_failure(path, code, option);
}

}  // namespace pfeife
