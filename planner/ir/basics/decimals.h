// Numbers as text for files and tables.
#pragma once

#include <string>

namespace pfeife {

/// Fixed notation with `decimals` digits after the point, trailing zeros kept, independent of the
/// locale; a dash if the value is not finite.
std::string fixed(double value, int decimals);
/// The shortest text that reads back as the same number.
std::string shortest(double value);

}  // namespace pfeife
