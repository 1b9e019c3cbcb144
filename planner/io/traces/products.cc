#include "planner/io/traces/products.h"

#include <algorithm>
#include <map>

#include "planner/io/traces/profiler_events.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// 2 m n k of a product with operands of these dimensions; none if they do not fit each other.
std::optional<Flops> work_of(const std::string& name,
                             const std::vector<std::vector<std::int64_t>>& dims) {
  const bool added = name == "aten::addmm" || name == "aten::baddbmm";
  const std::size_t rank = name == "aten::mm" || name == "aten::addmm" ? 2 : 3;
  const std::size_t first = added ? 1 : 0;
  if (dims.size() < first + 2) return std::nullopt;
  const auto &a = dims[first], &b = dims[first + 1];
  if (a.size() != rank || b.size() != rank || a[rank - 1] != b[rank - 2]) return std::nullopt;
  double work = 2 * static_cast<double>(b[rank - 1]);
  for (const std::int64_t size : a) work *= static_cast<double>(size);
  if (!(work > 0)) return std::nullopt;
  return Flops{work};
}

bool is_product(const std::string& name) {
  return name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" ||
         name == "aten::baddbmm";
}

std::string precision_of(const std::string& type) {
  if (type == "float") return "fp32";
  if (type == "c10::BFloat16") return "bf16";
  return type == "c10::Half" ? "fp16" : "";
}

struct Found {
  ObservedProduct product;
  Nanoseconds start{0};
  std::int64_t external = -1;
};

/// Reads a file, then says what was in it.
class Products {
 public:
  explicit Products(const std::filesystem::path& file) : file_(file) {}

  void see(const ProfilerEvent& event) {
    if (event.phase != 'X' || !event.start) return;
    constexpr std::size_t kMost = 5'000'000;  // whatever a small packed file may unpack to
    if (found_.size() + steps_.size() + kernels_.size() >= kMost)
      throw ConfigError({file_.string()}, "has more than " + std::to_string(kMost) +
                                              " products, steps and kernels; record fewer steps");
    if (event.category == "kernel") {
      kernels_[event.external] += event.duration;
    } else if (event.category == "cpu_op" && is_product(event.name)) {
      const auto work = work_of(event.name, event.dims);
      const std::string precision = precision_of(event.type);
      if (work && !precision.empty())
        found_.push_back({{0, precision, *work, event.duration}, *event.start, event.external});
    } else if (event.name.starts_with("ProfilerStep#") && event.category == "user_annotation") {
      steps_.push_back({*event.start, *event.start + event.duration});
    }
  }

  std::vector<ObservedProduct> result() {
    std::ranges::sort(steps_);
    std::vector<ObservedProduct> products;
    for (Found& found : found_) {
      const auto behind = std::ranges::upper_bound(steps_, found.start, {}, &Step::first);
      if (behind == steps_.begin() || found.start >= (behind - 1)->second) continue;
      found.product.step = static_cast<std::size_t>(behind - 1 - steps_.begin());
      if (!kernels_.empty()) {
        const auto kernel = kernels_.find(found.external);
        if (found.external < 0 || kernel == kernels_.end()) continue;
        found.product.time = kernel->second;
      }
      if (found.product.time > Nanoseconds{0}) products.push_back(std::move(found.product));
    }
    return products;
  }

 private:
  using Step = std::pair<Nanoseconds, Nanoseconds>;  // begin, end
  const std::filesystem::path& file_;
  std::vector<Found> found_;
  std::vector<Step> steps_;
  std::map<std::int64_t, Nanoseconds> kernels_;  // by the operator that launched them
};

}  // namespace

std::vector<ObservedProduct> read_products(const std::filesystem::path& file) {
  Products products(file);
  read_profiler_events(file, [&](const ProfilerEvent& event) { products.see(event); });
  return products.result();
}

}  // namespace pfeife
