// What is said of a mistake, for tests of messages.
#pragma once

#include <string>

#include "planner/ir/basics/error.h"

namespace pfeife {

/// The message of the error that `act` throws; "" if it throws nothing. Errors of another type go
/// on.
template <class Error = ConfigError, class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace pfeife
