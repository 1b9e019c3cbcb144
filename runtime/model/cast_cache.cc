#include "runtime/model/cast_cache.h"

#include <set>
#include <string>

namespace pfeife {
namespace {

/// With "aten::", without overloads.
const std::set<std::string>& narrow_operators() {
#define PFEIFE_NARROW(name, ...) "aten::" #name,
  static const std::set<std::string> kNames{AT_FORALL_LOWER_PRECISION_FP(PFEIFE_NARROW)};
#undef PFEIFE_NARROW
  return kNames;
}

}  // namespace

bool reads_narrow(const c10::OperatorHandle& op, at::DeviceType device) {
  const auto key = at::autocast::get_autocast_dispatch_key_from_device_type(device);
  return narrow_operators().contains(op.schema().name()) && op.hasKernelForDispatchKey(key);
}

CastCache::Forward::Forward(CastCache& casts) : casts_(casts) {
  if (!casts_.to_) return;
  was_on_ = at::autocast::is_autocast_enabled(casts_.device_);
  was_to_ = at::autocast::get_autocast_dtype(casts_.device_);
  used_cache_ = at::autocast::is_autocast_cache_enabled();
  at::autocast::set_autocast_enabled(casts_.device_, true);
  at::autocast::set_autocast_dtype(casts_.device_, *casts_.to_);
  at::autocast::set_autocast_cache_enabled(false);
}

CastCache::Forward::~Forward() {
  if (!casts_.to_) return;
  casts_.kept_.clear();
  at::autocast::set_autocast_enabled(casts_.device_, was_on_);
  at::autocast::set_autocast_dtype(casts_.device_, was_to_);
  at::autocast::set_autocast_cache_enabled(used_cache_);
}

at::Tensor CastCache::narrow(const at::Tensor& parameter) {
  if (!to_ || parameter.scalar_type() != at::kFloat) return parameter;
  at::Tensor& cast = kept_[{parameter.unsafeGetTensorImpl(), at::GradMode::is_enabled()}];
  if (!cast.defined()) cast = parameter.to(*to_);
  return cast;
}

}  // namespace pfeife
