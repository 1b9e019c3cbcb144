#include "planner/io/plan/certificate_distances.h"

#include <cstdint>

namespace pfeife {
namespace {

/// `code` turns a number and what it is counted from into the other form, and the latter into what
/// the next one is counted from.
template <class Code>
void recode(Layers& layers, const Code& code) {
  const auto recode_id = [&](LayerId& id, std::int64_t& base) {
    std::int64_t number = id.value;
    code(number, base);
    id.value = static_cast<decltype(id.value)>(number);
  };
  const auto recode_list = [&](std::vector<LayerId>& ids, std::int64_t& base) {
    std::int64_t before = base;
    for (LayerId& id : ids) {
      recode_id(id, before);
      if (&id == &ids.front()) base = before;
    }
  };
  std::int64_t producer = 0, saver = 0, weight_saver = 0, user = 0, crossing = 0;
  for (LayerValue& value : layers.values) {
    recode_id(value.producer, producer);
    std::int64_t first = producer;
    recode_list(value.consumers, first);
  }
  for (LayerStorage& storage : layers.storages) {
    recode_list(storage.savers, saver);
    recode_list(storage.weight_savers, weight_saver);
    if (!storage.value) continue;
    // A distance may be negative: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...
    auto number = static_cast<std::int64_t>(*storage.value);
    *storage.value = static_cast<std::size_t>(code.of_value(number, crossing));
  }
  for (LayerParameter& parameter : layers.parameters) recode_list(parameter.users, user);
}

struct ToDistance {
  void operator()(std::int64_t& number, std::int64_t& base) const {
    const std::int64_t old = number;
    number -= base, base = old;
  }
  std::int64_t of_value(std::int64_t number, std::int64_t& base) const {
    (*this)(number, base);
    return number < 0 ? -2 * number - 1 : 2 * number;
  }
};

struct FromDistance {
  void operator()(std::int64_t& number, std::int64_t& base) const {
    number = base = static_cast<std::int32_t>(base + number);
  }
  std::int64_t of_value(std::int64_t number, std::int64_t& base) const {
    number = number % 2 == 0 ? number / 2 : -(number / 2) - 1;
    (*this)(number, base);
    return number;
  }
};

}  // namespace

void to_distances(Layers& layers) { recode(layers, ToDistance{}); }
void from_distances(Layers& layers) { recode(layers, FromDistance{}); }

}  // namespace pfeife
