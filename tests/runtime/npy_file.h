// A .npy file as numpy.save writes it: for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace pfeife::testing {

template <class T>
void write_npy(const std::filesystem::path& file, const std::string& type,
               const std::vector<std::int64_t>& sizes, const std::vector<T>& values) {
  std::string shape;
  for (const std::int64_t size : sizes) shape += std::to_string(size) + ", ";
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::ofstream out(file, std::ios::binary);
  out << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(header.size() & 0xff)
      << static_cast<char>(header.size() >> 8) << header;
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
}

}  // namespace pfeife::testing
