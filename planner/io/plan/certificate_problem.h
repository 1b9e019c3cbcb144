// Whether the figures of a certificate make a problem at all: what the costs of stages and the
// bounds of them take for granted.
#pragma once

#include <string>

#include "planner/ir/result/certificate.h"

namespace pfeife {

/// What is wrong: a number that points to nothing, a negative amount, a link on which more bytes
/// take less time, so much time or so many bytes that sums may run over. "" = nothing. Says nothing
/// of the proofs.
std::string problem_fault(const Certificate& certificate);

}  // namespace pfeife
