// What a profile was computed from, kept between calls: so a profile can be taken in several shares
// over the time that it is to speak for.
//
// The first line is a title, the second says what was timed; then come the times, ns, as text.
#pragma once

#include <optional>
#include <string>

#include "runtime/profile/profile_samples.h"

namespace pfeife {

/// Writes the samples. `timed`: one line that says what they are of. Errors: RuntimeFault.
void write_samples(const std::string& file, const std::string& timed,
                   const ProfileSamples& samples);

/// The samples of a model of so many nodes and parameters; nothing if there is no such file.
/// Errors: ConfigError if they are of something else than `timed`, or the file is not whole.
std::optional<ProfileSamples> read_samples(const std::string& file, const std::string& timed,
                                           std::size_t nodes, std::size_t parameters);

}  // namespace pfeife
