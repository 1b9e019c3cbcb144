#include "runtime/transport/group_transport.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {

GroupTransport::GroupTransport(Transport& all, std::vector<RankId> members)
    : all_(all), members_(std::move(members)) {
  const auto here = std::ranges::find(members_, all.rank());
  PFEIFE_CHECK(here != members_.end(), "a group without this rank");
  rank_ = RankId{static_cast<std::size_t>(here - members_.begin())};
}

void GroupTransport::add_up(const std::vector<RankId>& parties, Tag tag, Tensors tensors) {
  std::vector<RankId> numbers;
  for (const RankId party : parties) numbers.push_back(in_all(party));
  std::ranges::sort(numbers);
  all_.add_up(numbers, tag, std::move(tensors));
}

}  // namespace pfeife
