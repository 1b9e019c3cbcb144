#include "planner/io/plan/certificate_file.h"

#include <algorithm>
#include <concepts>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/plan/certificate_distances.h"
#include "planner/io/plan/certificate_problem.h"
#include "planner/io/plan/certificate_words.h"
#include "planner/ir/error.h"

namespace pfeife {
namespace {

const std::string kTitle = "pfeife certificate 13, sha256 ";

// Types of this namespace, so that a list finds the description of its entries below.
struct Writer : CertificateWriter {};
struct Reader : CertificateReader {
  using CertificateReader::CertificateReader;
};

/// Writing and reading go through the same description of the format: `describe`, of each type.
template <class Archive>
void describe(Archive& a, Bytes& bytes) {
  a.number(bytes.value);
}
template <class Archive>
void describe(Archive& a, Nanoseconds& time) {
  std::int64_t count = time.count();
  a.number(count);
  time = Nanoseconds{count};
}
template <class Archive, std::integral T>
void describe(Archive& a, T& value) {
  auto wide = static_cast<std::int64_t>(value);
  a.number(wide);
  value = static_cast<T>(wide);
  if constexpr (std::same_as<Archive, Reader>)
    if (static_cast<std::int64_t>(value) != wide) a.fail("a number is too large");
}
template <class Archive, class T>
requires std::is_enum_v<T>
void describe(Archive& a, T& value) {
  auto number = static_cast<std::underlying_type_t<T>>(value);
  describe(a, number);
  value = static_cast<T>(number);
}
template <class Archive, class Tag>
void describe(Archive& a, Id<Tag>& id) {
  describe(a, id.value);
}
template <class Archive, class T>
void describe(Archive& a, std::vector<T>& values) {
  a.size(values);
  for (T& value : values) describe(a, value);
}
/// An empty one is a number below all that it may have.
template <class Archive, class T>
void describe(Archive& a, std::optional<T>& value) {
  std::int64_t code = -1;
  if constexpr (std::same_as<T, Nanoseconds>) {
    if (value) code = value->count();
  } else {
    if (value) code = static_cast<std::int64_t>(*value);
  }
  a.number(code);
  value.reset();
  if (code >= 0) value = T(code);
}

template <class Archive>
void describe(Archive& a, PassBytes& bytes) {
  describe(a, bytes.forward), describe(a, bytes.backward);
  describe(a, bytes.input), describe(a, bytes.weight);
}
template <class Archive>
void describe(Archive& a, LayerTimes& t) {
  describe(a, t.forward), describe(a, t.backward_input), describe(a, t.backward_weight);
  describe(a, t.optimizer);
}
template <class Archive>
void describe(Archive& a, Layer& layer) {
  a.line("layer");
  bool cut = layer.no_cut_after.empty();
  describe(a, cut);
  layer.no_cut_after = cut ? "" : "no cut";
  describe(a, layer.times), describe(a, layer.saved), describe(a, layer.weight_saved);
  describe(a, layer.temporary);
}
template <class Archive>
void describe(Archive& a, LayerValue& value) {
  a.line("value");
  describe(a, value.producer), describe(a, value.consumers), describe(a, value.bytes);
  describe(a, value.gradient_bytes), describe(a, value.transfer_time);
}
template <class Archive>
void describe(Archive& a, LayerStorage& storage) {
  a.line("storage");
  describe(a, storage.bytes), describe(a, storage.savers), describe(a, storage.weight_savers);
  describe(a, storage.value);
}
template <class Archive>
void describe(Archive& a, LayerParameter& parameter) {
  a.line("parameter");
  describe(a, parameter.bytes), describe(a, parameter.gradient), describe(a, parameter.state);
  describe(a, parameter.users), describe(a, parameter.optimizer);
}
template <class Archive>
void describe(Archive& a, DeviceKind& kind) {
  describe(a, kind.stage_overhead), describe(a, kind.iteration_overhead);
}
template <class Archive>
void describe(Archive& a, BandwidthCurve::Point& point) {
  describe(a, point.size), a.number(point.rate.value);
}
template <class Archive>
void describe(Archive& a, Path& path) {
  bool linked = !path.links.empty();
  describe(a, linked), describe(a, path.latency), describe(a, path.bandwidth.points);
  path.links.assign(linked, 0);
}
template <class Archive>
void describe(Archive& a, ScheduleSpec& spec) {
  a.word(spec.family);
  describe(a, spec.ranks), describe(a, spec.microbatches), describe(a, spec.loops);
  describe(a, spec.loop_batch), describe(a, spec.prefetch);
}
template <class Archive>
void describe(Archive& a, CertifiedPath& path) {
  a.line("path");
  describe(a, path.rank), a.turns(path.turns);
}
template <class Archive>
void describe(Archive& a, CertifiedMoment& moment) {
  describe(a, moment.rank), describe(a, moment.action);
}
template <class Archive>
void describe(Archive& a, CertifiedWeight& weight) {
  describe(a, weight.of), describe(a, weight.weight);
}
template <class Archive>
void describe(Archive& a, CertifiedWeights& weights) {
  a.line("weights"), a.size(weights);
  for (CertifiedWeight& weight : weights) describe(a, weight);
}
template <class Archive>
void describe(Archive& a, CertifiedNode& node) {
  a.line("node");
  describe(a, node.then), describe(a, node.stage), describe(a, node.threshold),
      describe(a, node.weights);
}
template <class Archive>
void describe(Archive& a, CertifiedProof& proof) {
  a.line("schedule");
  describe(a, proof.spec), describe(a, proof.least_load), describe(a, proof.linked);
  describe(a, proof.any_order), describe(a, proof.moments), describe(a, proof.paths),
      describe(a, proof.tree);
}
/// Numbers in an entry: what one more of it takes.
std::size_t length(const Layer& layer) { return layer.times.size(); }
std::size_t length(const LayerValue& value) { return value.consumers.size(); }
std::size_t length(const LayerStorage& s) { return s.savers.size() + s.weight_savers.size(); }
std::size_t length(const LayerParameter& p) { return p.users.size() + p.optimizer.size(); }
std::size_t length(const auto&) { return 1; }
/// Values of which many are equal: each is listed once, and then which ones are meant, `most` of
/// them.
template <class Archive, class T>
void describe_distinct(Archive& a, std::vector<T>& values, std::size_t most) {
  std::vector<T> distinct;
  std::vector<std::size_t> index;
  for (const T& value : values) {
    const auto at = std::ranges::find(distinct, value) - distinct.begin();
    if (at == static_cast<std::ptrdiff_t>(distinct.size())) distinct.push_back(value);
    index.push_back(static_cast<std::size_t>(at));
  }
  describe(a, distinct);
  if (!distinct.empty()) a.line("which");
  describe(a, index);
  if constexpr (std::same_as<Archive, Reader>)
    if (index.size() > most) a.fail("a list of more than " + std::to_string(most) + " entries");
  values.clear();
  for (const std::size_t at : index) {
    if constexpr (std::same_as<Archive, Reader>)
      if (at >= distinct.size()) a.fail("there is no number " + std::to_string(at) + " of these");
    if constexpr (std::same_as<Archive, Reader>) a.unfold(1 + length(distinct[at]));
    values.push_back(distinct[at]);
  }
}
template <class Archive>
void describe(Archive& a, Cluster& cluster) {
  a.line("cluster"), a.word(cluster.digest);
  describe(a, cluster.kinds), describe(a, cluster.kind_of_device);
  a.line("paths");
  describe_distinct(a, cluster.paths, cluster.devices() * cluster.devices());
}
template <class Archive>
void describe(Archive& a, Layers& layers) {
  constexpr std::size_t kAny = ~std::size_t{0};  // as many as the file has numbers for
  if constexpr (!std::same_as<Archive, Reader>) to_distances(layers);
  a.line("model"), a.word(layers.digest), a.word(layers.order);
  a.line("layers"), describe_distinct(a, layers.layers, kAny);
  a.line("values"), describe_distinct(a, layers.values, kAny);
  a.line("storages"), describe_distinct(a, layers.storages, kAny);
  a.line("parameters"), describe_distinct(a, layers.parameters, kAny);
  if constexpr (std::same_as<Archive, Reader>) from_distances(layers);
}
template <class Archive>
void describe(Archive& a, Certificate& c) {
  describe(a, c.layers), describe(a, c.cluster);
  a.line("bound"), describe(a, c.bound);
  a.line("ranks"), describe(a, c.device_of_rank), describe(a, c.memory_limit);
  a.line("recompute"), describe(a, c.recompute);
  a.line("schedules"), describe(a, c.proofs);
}
}  // namespace

std::string certificate_text(const Certificate& certificate) {
  Writer writer;
  Certificate copy = certificate;
  describe(writer, copy);
  writer.text += "\n";
  return kTitle + sha256(writer.text) + "\n" + writer.text;
}

Certificate read_certificate_text(const std::string& text, const std::string& name) {
  const std::size_t title = kTitle.size() + 64;
  if (text.size() < title + 1 || !text.starts_with(kTitle) || text[title] != '\n')
    throw ConfigError({name, 1, 0}, "this is no certificate of version 13");
  const std::string_view body = std::string_view(text).substr(title + 1);
  if (sha256(body) != text.substr(kTitle.size(), 64))
    throw ConfigError({name, 1, 0}, "the certificate is damaged: it has another digest");
  Reader reader(body, name);
  Certificate certificate;
  describe(reader, certificate);
  reader.finish();
  if (const std::string fault = problem_fault(certificate); !fault.empty())
    throw ConfigError({name, 0, 0}, "the certificate speaks of " + fault);
  return certificate;
}

Certificate read_certificate(const std::filesystem::path& file) {
  return read_certificate_text(read_file(file), file.string());
}

}  // namespace pfeife
