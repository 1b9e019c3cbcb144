#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/error.h"
#include "runtime/launch/launch.h"

namespace pfeife {

void OnceText::put(const std::string& text) {
  PFEIFE_CHECK(text.size() < sizeof text_);
  std::uint32_t empty = kEmpty;
  if (!state_.compare_exchange_strong(empty, kBeingWritten)) return;
  std::ranges::copy(text, text_);
  text_[text.size()] = '\0';
  state_ = kThere;
}

std::optional<std::string> OnceText::find() const {
  if (state_ != kThere) return {};
  return std::string(text_, strnlen(text_, sizeof text_));
}

SharedSlots::SharedSlots(std::size_t ranks)
    : file_(memfd_create("pfeife", MFD_CLOEXEC)), ranks_(ranks) {
  if (!file_.is_open() || ftruncate(file_.get(), static_cast<off_t>(ranks * sizeof(Slot))) != 0)
    throw RuntimeFault("cannot share memory with the ranks: " + cause_and_remedy(errno));
  map();
}

SharedSlots::SharedSlots(int descriptor, std::size_t ranks) : ranks_(ranks) {
  struct stat found {};
  if (fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode) ||
      static_cast<std::size_t>(found.st_size) != ranks * sizeof(Slot))
    throw ConfigError({"environment"}, stream_all("PFEIFE_MEETING=", descriptor,
                                                  " is no memory shared with a pfeife-run; unset "
                                                  "PFEIFE_MEETING"));
  file_ = Socket(descriptor);
  map();
  file_ = Socket();
}

SharedSlots::~SharedSlots() { munmap(slots_, ranks_ * sizeof(Slot)); }

int SharedSlots::hand_over() const {
  fcntl(file_.get(), F_SETFD, 0);
  return file_.get();
}

void SharedSlots::map() {
  void* start =
      mmap(nullptr, ranks_ * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (start == MAP_FAILED)
    throw RuntimeFault("cannot share memory with the ranks: " + cause_and_remedy(errno));
  slots_ = static_cast<Slot*>(start);
}

}  // namespace pfeife
