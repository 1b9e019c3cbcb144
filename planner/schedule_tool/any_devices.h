// Claims that hold whichever device runs which rank.
#pragma once

#include <vector>

#include "planner/ir/certificate.h"

namespace pfeife::tool {

/// The problem of a certificate with devices that are all as good as the best of its ranks: the
/// shortest time of each layer, the largest limit, and between any two devices the lowest latency
/// and, at every size, the highest rate. None of its plans is slower, and each fits that fits, as
/// the same plan of the certificate's problem, in whatever order its ranks have the devices.
Certificate alike_devices(const Certificate& certificate);

/// Whether the shares of a proof prove its certificate's bound: with weights y of the devices, the
/// slowest takes at least the weighted mean of what all of them work, in which each layer counts at
/// the device where weight times time is least. Whatever the cuts, the order and the devices.
bool shared_work_suffices(const Certificate& certificate, const CertifiedProof& proof);

/// Whether every order of the devices of `cluster` is one of `orders`, but for devices of equal
/// kinds, limits ([device]) and paths: no estimate tells two such orders apart. False also if there
/// are too many to look at.
bool every_order_listed(const Cluster& cluster, const std::vector<Bytes>& limit,
                        const std::vector<std::vector<DeviceId>>& orders);

}  // namespace pfeife::tool
