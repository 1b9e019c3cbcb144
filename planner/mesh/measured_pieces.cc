#include "planner/mesh/measured_pieces.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "planner/ir/basics/error.h"
#include "planner/mesh/activation_memory.h"
#include "planner/mesh/repeat_layer.h"

namespace pfeife {
namespace {

/// Embedding, head and some layers at the ends of a run in a format stay in 16 bits.
std::string precision_at(MeshRun run, bool wide) {
  if (wide) run.format = Format::Wide;
  return precision_of(run);
}

LayerSetting setting_at(const MeshRun& run, std::string kind, bool experts, bool wide) {
  return {.kind = std::move(kind),
          .tp = run.mesh.size(Axis::Tensor),
          .cp = run.mesh.size(Axis::Context),
          .ep = experts ? run.mesh.experts : 1,
          .microbatch = run.microbatch_size,
          .sequence = run.architecture.sequence,
          .precision = precision_at(run, wide)};
}

LayerSetting setting_of_layer(const MeshRun& run, std::int64_t layer) {
  const LayerKind kind = layer_kind(run.architecture, layer);
  const Recipe* const recipe = find_recipe(run.format);
  const std::int64_t ends = recipe ? recipe->wide_layers : 0;
  const bool wide = layer < ends || layer + ends >= run.architecture.layers;
  LayerSetting setting =
      setting_at(run, to_string(kind), kind.feed_forward == FeedForwardKind::Experts, wide);
  MeshRun modules = run;
  modules.recomputation = Recompute::None;
  setting.recompute = recomputed_text(modules);
  return setting;
}

/// The embedding, the transformer layers, the head.
std::vector<LayerSetting> settings_of(const MeshRun& run) {
  std::vector<LayerSetting> all = {setting_at(run, kEmbeddingKind, false, true)};
  for (std::int64_t l = 0; l < run.architecture.layers; ++l)
    all.push_back(setting_of_layer(run, l));
  all.push_back(setting_at(run, kHeadKind, false, true));
  return all;
}

/// The layers of one row.
class Pieces {
 public:
  Pieces(Layers& layers, std::size_t begin, std::size_t end)
      : layers_(layers), begin_(begin), end_(end) {}

  void take(const MeasuredLayer& row, const MeasuredLayers& from) {
    check_parameters(row, from);
    const auto no_collectives = [](const LayerCollectives&) { return Nanoseconds{0}; };
    share(&LayerTimes::forward, row.forward,
          [](const LayerCollectives& both) { return both.forward; });
    share(&LayerTimes::backward_input, row.input,
          [](const LayerCollectives& both) { return both.backward; });
    share(&LayerTimes::backward_weight, row.weight, no_collectives);
    const auto over = [](const std::optional<Bytes>& bytes, Bytes formula) {
      if (!bytes || formula == Bytes{0}) return 1.0;
      return static_cast<double>(bytes->value) / static_cast<double>(formula.value);
    };
    scale_activations(layers_, begin_, end_, over(row.saved, kept_bytes(layers_, begin_, end_)),
                      over(row.temporary, temporary_bytes(layers_, begin_, end_)));
  }

 private:
  /// Gives the pieces `all` of a pass as they have it, beside the pass's collectives.
  template <class Collectives>
  void share(Nanoseconds LayerTimes::*pass, Nanoseconds all, const Collectives& collectives) {
    const auto beside = [&](std::size_t l) {
      return layers_.collectives.empty() ? Nanoseconds{0} : collectives(layers_.collectives[l]);
    };
    Nanoseconds sum{0};
    for (std::size_t l = begin_; l < end_; ++l) sum += time(l).*pass - beside(l);
    Nanoseconds roofline{0}, given{0};  // of the pieces so far
    const std::size_t middle = begin_ + (end_ - begin_) / 2;
    for (std::size_t l = begin_; l < end_; ++l) {
      roofline += time(l).*pass - beside(l);
      const double share_so_far = sum > Nanoseconds{0} ? static_cast<double>(roofline.count()) /
                                                             static_cast<double>(sum.count())
                                                       : (l >= middle ? 1 : 0);
      const Nanoseconds so_far{std::llround(static_cast<double>(all.count()) * share_so_far)};
      time(l).*pass = so_far - given + beside(l);
      given = so_far;
    }
  }
  LayerTimes& time(std::size_t l) { return layers_.layers[l].times.front(); }

  /// Rows of another model have other parameters; those held in 32 bits have twice the bytes.
  void check_parameters(const MeasuredLayer& row, const MeasuredLayers& from) const {
    if (!row.parameters) return;
    Bytes has;
    for (const LayerParameter& parameter : layers_.parameters)
      if (std::ranges::any_of(parameter.users, [&](LayerId user) {
            return user.index() >= begin_ && user.index() < end_;
          }))
        has += parameter.bytes;
    const auto near = [&](std::int64_t bytes) {
      return std::abs(row.parameters->value - bytes) * 100 <= bytes;
    };
    if (near(has.value) || near(2 * has.value)) return;
    throw ConfigError({from.file, row.line},
                      stream_all(row.setting.kind, " has ", row.parameters->value,
                                 " bytes of parameters there, and on a rank of this mesh ",
                                 has.value, " in 16 bits, ", 2 * has.value,
                                 " in 32; the file is of another model or another tp"));
  }

  Layers& layers_;
  std::size_t begin_, end_;
};

}  // namespace

std::optional<std::string> missing_layers(const MeshRun& run, const MeasuredLayers& measured) {
  std::vector<LayerSetting> checked;
  for (const LayerSetting& setting : settings_of(run)) {
    if (std::ranges::find(checked, setting) != checked.end()) continue;
    if (!measured.find(setting)) return measured.missing(setting);
    checked.push_back(setting);
  }
  return std::nullopt;
}

void take_measured_layers(Layers& layers, const MeshRun& run, const MeasuredLayers& measured) {
  if (measured.empty()) return;
  std::size_t begin = 0;
  const std::vector<LayerSetting> settings = settings_of(run);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const bool end = i == 0 || i + 1 == settings.size();
    const auto found = measured.find(settings[i]);
    if (!found) throw ConfigError({}, measured.missing(settings[i]));
    Pieces pieces(layers, begin, begin + (end ? 1 : kPiecesOfLayer));
    pieces.take(found->layer, measured);
    begin += end ? 1 : kPiecesOfLayer;
  }
  PFEIFE_CHECK(begin == layers.size(), begin, " of ", layers.size(), " layers");
}

std::string coverage_text(const MeshRun& run, const MeasuredLayers& measured) {
  std::int64_t as_measured = 0, interpolated = 0;
  for (const LayerSetting& setting : settings_of(run))
    if (const auto found = measured.find(setting))
      ++(found->interpolated ? interpolated : as_measured);
  return stream_all("of a microbatch's ", as_measured + interpolated, " layers ", as_measured,
                    " with times as measured (", measured.file,
                    measured.machine.empty() ? "" : ", " + measured.machine, "), ", interpolated,
                    " interpolated between measured ones; collectives modelled");
}

}  // namespace pfeife
