// How long one message takes: values whose time was published, and values that the link times.
#pragma once

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

class TimedMessage {
 public:
  /// A value that the message carries, as so many bytes. A published time contains the latency.
  void add(const LayerValue& value, Bytes bytes) {
    empty_ = false;
    if (value.transfer_time) {
      published_ += *value.transfer_time;
    } else {
      linked_ = true;
      bytes_ += bytes;
    }
  }
  bool empty() const { return empty_; }
  Nanoseconds time(const Path& path) const {
    return linked_ ? published_ + transfer_time(path, bytes_) : published_;
  }

 private:
  bool empty_ = true, linked_ = false;  // linked: a value has no published time
  Bytes bytes_{0};                      // of those
  Nanoseconds published_{0};
};

}  // namespace pfeife
