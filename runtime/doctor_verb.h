// pfeife-run doctor: what a run would find on this machine, on a page of text.
#pragma once

#include <string>

#include "runtime/launch/start_ranks.h"

namespace pfeife {

struct DoctorRequest {
  std::string device;  ///< "cpu" or "cuda": what runs are to use; "" = cuda where there is a driver
  LaunchOptions launch;
};

/// Prints driver, libraries, cards with their free memory, and measured links: between cards by
/// NCCL where there are several, between host and card, between two processes by sockets. Returns
/// 0 if runs on `device` can start, 4 if not; the last lines say why and what helps.
int doctor_verb(const DoctorRequest& request);

}  // namespace pfeife
