#include "runtime/launch/launch.h"
#include "runtime/launch/meeting.h"

namespace pfeife {
namespace {

class SlotsMeeting final : public Meeting {
 public:
  explicit SlotsMeeting(SharedSlots& slots) : slots_(slots) {}

  void put(Topic topic, RankId rank, const std::string& line) override {
    text(topic, rank).put(line);
  }
  std::optional<std::string> find(Topic topic, RankId rank) override {
    return text(topic, rank).find();
  }
  std::string host() const override { return ""; }

 private:
  OnceText& text(Topic topic, RankId rank) {
    return slots_[rank.index()].lines.at(static_cast<std::size_t>(topic));
  }

  SharedSlots& slots_;
};

}  // namespace

std::unique_ptr<Meeting> meeting_in_slots(SharedSlots& slots) {
  return std::make_unique<SlotsMeeting>(slots);
}

}  // namespace pfeife
