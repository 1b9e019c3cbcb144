#include "runtime/model/safetensors_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "planner/ir/basics/error.h"
#include "runtime/model/mapped_file.h"
#include "runtime/model/operators.h"

namespace pfeife {

void write_safetensors(const std::filesystem::path& file,
                       const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header{{}, metadata};
  for (const auto& [name, tensor] : tensors)
    header.entries.push_back({name, dtype_of(tensor.scalar_type()), tensor.sizes().vec(), 0, 0});
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << safetensors_header(header);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = tensor.detach().cpu().contiguous();
    out.write(static_cast<const char*>(dense.const_data_ptr()),
              static_cast<std::streamsize>(dense.nbytes()));
  }
  out.close();
  if (!out)
    throw RuntimeFault("cannot write " + file.string() + ": " +
                       (errno ? std::strerror(errno) : "writing failed"));
  flush_to_disk(file);
}

SafetensorsFile::SafetensorsFile(std::filesystem::path file)
    : file_(std::move(file)), header_(read_safetensors_header(file_)) {}

at::Tensor SafetensorsFile::tensor(const SafetensorsEntry& entry) const {
  return map_tensor(file_, entry.begin, scalar_type(entry.dtype), entry.sizes);
}

void flush_to_disk(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int result = file < 0 ? -1 : fsync(file);
  const int code = errno;
  if (file >= 0) close(file);
  if (result != 0 && code != EINVAL)  // EINVAL: a file system that knows no such thing
    throw RuntimeFault("cannot write " + path.string() + ": " + std::strerror(code));
}

}  // namespace pfeife
