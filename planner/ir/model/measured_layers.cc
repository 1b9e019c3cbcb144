#include "planner/ir/model/measured_layers.h"

#include <array>
#include <cmath>
#include <set>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Neighbours that are further apart say nothing of what lies between.
constexpr std::int64_t kFurthest = 4;

using Size = std::int64_t LayerSetting::*;
constexpr std::array<Size, 3> kInterpolated = {&LayerSetting::microbatch, &LayerSetting::sequence,
                                               &LayerSetting::tp};

/// Whether a row of `row` is one of `setting`.
bool stands_for(const LayerSetting& row, LayerSetting setting) {
  if (row.precision.empty()) setting.precision.clear();
  return row == setting;
}

double between(double low, double high, double share) {
  if (low <= 0 || high <= 0) return low + share * (high - low);
  return low * std::pow(high / low, share);
}

MeasuredLayer between(const MeasuredLayer& low, const MeasuredLayer& high, double share) {
  const auto time = [&](Nanoseconds MeasuredLayer::*pass) {
    return Nanoseconds{std::llround(between(static_cast<double>((low.*pass).count()),
                                            static_cast<double>((high.*pass).count()), share))};
  };
  const auto bytes = [&](std::optional<Bytes> MeasuredLayer::*held) -> std::optional<Bytes> {
    if (!(low.*held) || !(high.*held)) return std::nullopt;
    return Bytes{std::llround(between(static_cast<double>((low.*held)->value),
                                      static_cast<double>((high.*held)->value), share))};
  };
  return {low.setting,
          time(&MeasuredLayer::forward),
          time(&MeasuredLayer::input),
          time(&MeasuredLayer::weight),
          bytes(&MeasuredLayer::saved),
          bytes(&MeasuredLayer::temporary),
          bytes(&MeasuredLayer::parameters)};
}

double distance(std::int64_t a, std::int64_t b) {
  return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
}

/// "tp 2, sequence 2048": what a row has instead.
std::string differences(const LayerSetting& row, const LayerSetting& wanted) {
  std::string text;
  const auto add = [&](const char* name, const auto& has, const auto& wants) {
    if (has != wants) text += (text.empty() ? "" : ", ") + stream_all(name, " ", has);
  };
  add("tp", row.tp, wanted.tp), add("cp", row.cp, wanted.cp), add("ep", row.ep, wanted.ep);
  add("microbatch", row.microbatch, wanted.microbatch);
  add("sequence", row.sequence, wanted.sequence);
  add("recompute", row.recompute, wanted.recompute);
  if (!row.precision.empty()) add("precision", row.precision, wanted.precision);
  return text;
}

}  // namespace

std::string to_string(const LayerKind& kind) {
  std::string text;
  if (kind.mixer == MixerKind::Attention) {
    text = "attention";
    if (kind.window > 0) text += " window " + std::to_string(kind.window);
    if (kind.chunk > 0) text += " chunk " + std::to_string(kind.chunk);
    if (!kind.rotary) text += " not rotary";
  }
  if (kind.mixer == MixerKind::Mamba) text = "mamba";
  if (kind.feed_forward == FeedForwardKind::None) return text;
  return text + (text.empty() ? "" : "+") +
         (kind.feed_forward == FeedForwardKind::Dense ? "dense" : "experts");
}

std::string to_string(const LayerSetting& setting) {
  return stream_all(setting.kind, " at tp ", setting.tp, ", cp ", setting.cp, ", ep ", setting.ep,
                    ", microbatch ", setting.microbatch, ", sequence ", setting.sequence,
                    ", recompute ", setting.recompute,
                    setting.precision.empty() ? "" : ", precision ", setting.precision);
}

std::optional<MeasuredLayerFound> MeasuredLayers::find(const LayerSetting& setting) const {
  for (const MeasuredLayer& row : rows)
    if (stands_for(row.setting, setting)) return MeasuredLayerFound{row};
  std::optional<MeasuredLayer> nearest;
  double least = 0;
  for (const Size size : kInterpolated) {
    const MeasuredLayer *below = nullptr, *above = nullptr;
    for (const MeasuredLayer& row : rows) {
      LayerSetting as_wanted = row.setting;
      as_wanted.*size = setting.*size;
      if (!stands_for(as_wanted, setting)) continue;
      const std::int64_t has = row.setting.*size;
      if (has < setting.*size && (!below || has > below->setting.*size)) below = &row;
      if (has > setting.*size && (!above || has < above->setting.*size)) above = &row;
    }
    if (!below || !above) continue;
    const std::int64_t low = below->setting.*size, high = above->setting.*size;
    if (high > kFurthest * low || (nearest && distance(low, high) >= least)) continue;
    least = distance(low, high);
    nearest = between(*below, *above, distance(low, setting.*size) / least);
    nearest->setting = setting;
  }
  if (!nearest) return std::nullopt;
  return MeasuredLayerFound{*nearest, true};
}

std::string MeasuredLayers::missing(const LayerSetting& setting) const {
  std::string text = file + " has no times of " + to_string(setting);
  std::set<std::string> kinds;
  const MeasuredLayer* nearest = nullptr;
  double least = 0;
  for (const MeasuredLayer& row : rows) {
    kinds.insert(row.setting.kind);
    if (row.setting.kind != setting.kind) continue;
    const LayerSetting& has = row.setting;
    double apart = 0;
    for (const Size size : {&LayerSetting::tp, &LayerSetting::cp, &LayerSetting::ep,
                            &LayerSetting::microbatch, &LayerSetting::sequence})
      apart += distance(has.*size, setting.*size);
    if (has.recompute != setting.recompute) apart += 100;
    if (!has.precision.empty() && has.precision != setting.precision) apart += 100;
    if (nearest && apart >= least) continue;
    nearest = &row, least = apart;
  }
  if (nearest)
    return text + "; the nearest row" +
           (nearest->line > 0 ? ", line " + std::to_string(nearest->line) + "," : "") + " has " +
           differences(nearest->setting, setting) +
           ". Measure the layer so, or ask for a mesh that the file has";
  std::string names;
  for (const std::string& kind : kinds) names += (names.empty() ? "" : ", ") + kind;
  return text + ": it has the kinds " + names;
}

}  // namespace pfeife
