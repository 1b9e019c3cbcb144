// The settings of PyTorch's allocator as PYTORCH_ALLOC_CONF spells them:
// "expandable_segments:True", "max_split_size_mb:64,roundup_power2_divisions:4".
#pragma once

#include <optional>
#include <string>

#include "planner/io/files/fields.h"
#include "planner/ir/machine/allocator_settings.h"

namespace pfeife {

/// Errors: ConfigError without a place for what PyTorch refuses, and for settings without a model.
AllocatorSettings parse_allocator(const std::string& text);
/// "" = PyTorch's defaults.
std::string allocator_text(const AllocatorSettings& settings);

/// Such a text; `default`: PyTorch's own; `none`: what is allocated is all that must fit.
Kind<std::optional<AllocatorSettings>> allocator_kind();

}  // namespace pfeife
