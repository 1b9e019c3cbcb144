// `pfeife-exp products CONFIG`: the products to measure, for device_kinds.KIND.measured_products.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace pfeife {

struct ProductsQuestion {
  std::filesystem::path config;
  std::vector<std::string> settings;  ///< as --set has them
  std::size_t meshes = 3;             ///< of a config that searches for a mesh: the best ones
  bool missing = false;               ///< without those that the cluster's file has
};

/// The distinct products of the config's cases, a row each. Errors: ConfigError of the config, also
/// if its times are given.
std::string products_of(const ProductsQuestion& question, std::size_t threads);

}  // namespace pfeife
