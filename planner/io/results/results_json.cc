// Records as JSON, and back. Fields and their names: results_fields.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "planner/io/results/results_fields.h"

namespace pfeife {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The text is no record.
struct NoRecord {};

constexpr std::array kReasons = {std::pair{Why::Chosen, "chosen"},
                                 std::pair{Why::Slower, "slower"},
                                 std::pair{Why::Fuller, "fuller"},
                                 std::pair{Why::RuledOut, "ruled_out"},
                                 std::pair{Why::LacksMemory, "lacks_memory"},
                                 std::pair{Why::NothingFound, "nothing_found"},
                                 std::pair{Why::NotTried, "not_tried"},
                                 std::pair{Why::Impossible, "impossible"}};

constexpr std::array kUnfinished = {std::pair{Unfinished::What::OpenChoices, "open_choices"},
                                    std::pair{Unfinished::What::SharedLinks, "shared_links"}};

constexpr std::array kSelectBy = {std::pair{SelectBy::Estimate, "estimate"},
                                  std::pair{SelectBy::Simulate, "simulate"},
                                  std::pair{SelectBy::P95, "p95"}};

template <class T>
OrderedJson json_of(const T& value);
template <class T>
OrderedJson json_of(const std::optional<T>& value);
template <class T>
OrderedJson json_of(const std::vector<T>& values);

// Divided rather than multiplied, so that the nearest double, and with it the shortest text, comes
// out.
OrderedJson json_of(Nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }
OrderedJson json_of(Bytes bytes) { return bytes.value; }
OrderedJson json_of(FlopsPerSecond rate) { return rate.value; }
OrderedJson json_of(RankId rank) { return rank.value; }
OrderedJson json_of(bool value) { return value ? 1 : 0; }
template <class Kinds>
OrderedJson name_in(const Kinds& kinds, auto kind) {
  return std::ranges::find(kinds, kind, [](const auto& named) { return named.first; })->second;
}
OrderedJson json_of(Why why) { return name_in(kReasons, why); }
OrderedJson json_of(SelectBy by) { return name_in(kSelectBy, by); }
OrderedJson json_of(Unfinished::What what) { return name_in(kUnfinished, what); }

template <class T>
OrderedJson json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : OrderedJson(nullptr);
}

template <class T>
OrderedJson json_of(const std::vector<T>& values) {
  OrderedJson json = OrderedJson::array();
  for (const T& value : values) json.push_back(json_of(value));
  return json;
}

template <class T>
OrderedJson json_of(const T& value) {
  if constexpr (std::is_class_v<T> && !std::same_as<T, std::string>) {
    OrderedJson json;
    each_field(value, [&](const char* name, const auto& field) { json[name] = json_of(field); });
    return json;
  } else {
    return value;
  }
}

template <class T>
void read(const OrderedJson& json, T& value);
template <class T>
void read(const OrderedJson& json, std::optional<T>& value);
template <class T>
void read(const OrderedJson& json, std::vector<T>& values);

void read(const OrderedJson& json, Nanoseconds& time) {
  constexpr double kMost = 1e12;  // ms, of either sign: also sums and negatives stay in 64 bits
  const double ms = json.get<double>();
  if (!(std::abs(ms) <= kMost)) throw NoRecord{};
  time = nanoseconds_from_ms(ms);
}
void read(const OrderedJson& json, Bytes& bytes) { bytes = Bytes{json.get<std::int64_t>()}; }
void read(const OrderedJson& json, FlopsPerSecond& rate) { rate.value = json.get<double>(); }
void read(const OrderedJson& json, RankId& rank) { rank = RankId{json.get<std::int32_t>()}; }
void read(const OrderedJson& json, bool& value) { value = json.get<int>() == 1; }
template <class Kinds>
void read_name(const OrderedJson& json, const Kinds& kinds, auto& kind) {
  for (const auto& [known, name] : kinds)
    if (json.get<std::string>() == name) {
      kind = known;
      return;
    }
  throw NoRecord{};
}
void read(const OrderedJson& json, Why& why) { read_name(json, kReasons, why); }
void read(const OrderedJson& json, SelectBy& by) { read_name(json, kSelectBy, by); }
void read(const OrderedJson& json, Unfinished::What& what) { read_name(json, kUnfinished, what); }

template <class T>
void read(const OrderedJson& json, std::optional<T>& value) {
  value.reset();
  if (!json.is_null()) read(json, value.emplace());
}

template <class T>
void read(const OrderedJson& json, std::vector<T>& values) {
  values.clear();
  for (const OrderedJson& value : json) read(value, values.emplace_back());
}

template <class T>
void read(const OrderedJson& json, T& value) {
  if constexpr (std::is_class_v<T> && !std::same_as<T, std::string>)
    each_field(value, [&](const char* name, auto& field) { read(json.at(name), field); });
  else
    json.get_to(value);
}

std::string dump(const OrderedJson& json) {
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_json(const CaseRecord& record) { return dump(json_of(record)); }

std::optional<CaseRecord> case_from_json(const std::string& text) {
  try {
    auto record = std::make_optional<CaseRecord>();
    read(OrderedJson::parse(text), *record);
    return record;
  } catch (const OrderedJson::exception&) {
    return std::nullopt;
  } catch (const NoRecord&) {
    return std::nullopt;
  }
}

std::string results_json(const std::string& experiment, const std::vector<CaseRecord>& cases) {
  OrderedJson json;
  json["version"] = 1;
  json["experiment"] = experiment;
  json["cases"] = json_of(cases);
  return dump(json);
}

}  // namespace pfeife
