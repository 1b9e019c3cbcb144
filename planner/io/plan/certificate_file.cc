#include "planner/io/plan/certificate_file.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/plan/certificate_problem.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

// The words of a certificate file: apart by blanks, a keyword at the begin of a line. Writer and
// reader have the same functions, so that one description of the format serves both.

class CertificateWriter {
 public:
  std::string text;

  void line(const char* keyword) { text += std::string(text.empty() ? "" : "\n") + keyword; }
  /// The keyword of what is not always there; whether it is.
  bool line_if(const char* keyword, bool there) {
    if (there) line(keyword);
    return there;
  }
  void word(const std::string& value) { text += " " + (value.empty() ? "-" : value); }
  void number(std::int64_t& value) { text += " " + std::to_string(value); }
  void number(double& value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text += " " + std::string(digits, end);
  }
  template <class T>
  void size(std::vector<T>& values) {
    auto count = static_cast<std::int64_t>(values.size());
    number(count);
  }
};

class CertificateReader {
 public:
  CertificateReader(std::string_view text, std::string name)
      : text_(text), name_(std::move(name)) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError({name_, line_, 0}, message + "; write the certificate anew");
  }
  void line(const char* keyword) {
    if (const std::string found(next()); found != keyword)
      fail(std::string("expected '") + keyword + "', found '" + found + "'");
  }
  bool line_if(const char* keyword, bool) {
    const std::size_t at = at_;
    const int line = line_;
    if (next() == keyword) return true;
    at_ = at, line_ = line;
    return false;
  }
  void word(std::string& value) {
    value = next();
    if (value == "-") value.clear();
  }
  template <class T>
  void number(T& value) {
    const std::string_view found = next();
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (error != std::errc() || end != found.data() + found.size())
      fail("expected a number, found '" + std::string(found) + "'");
  }
  template <class T>
  void size(std::vector<T>& values) {
    std::int64_t count = 0;
    number(count);
    if (count < 0 || static_cast<std::size_t>(count) > text_.size() - at_)
      fail("a list of " + std::to_string(count) + " entries does not fit in the file");
    values.resize(static_cast<std::size_t>(count));
  }
  void finish() {
    if (!next().empty()) fail("expected the end");
  }

 private:
  std::string_view next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      line_ += text_[at_++] == '\n';
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\n') ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string_view text_;
  std::string name_;
  std::size_t at_ = 0;
  int line_ = 2;
};

const std::string kTitle = "pfeife certificate 15, sha256 ";

// Types of this namespace, so that a list finds the description of its entries below.
struct Writer : CertificateWriter {};
struct FileReader : CertificateReader {
  using CertificateReader::CertificateReader;
};

/// Writing and reading go through the same description of the format: `describe`, of each type. A
/// list of fields (fields.h) would be longer: the file has numbers in their order, and no keys that
/// could be unknown, have defaults or be explained.
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
  if constexpr (std::same_as<Archive, FileReader>)
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
/// The gradient is its bytes; 0 is no gradient, and -1 a gradient of no bytes.
template <class Archive>
void describe(Archive& a, LayerValue& value) {
  constexpr Bytes kNone{0}, kEmpty{-1};
  a.line("value");
  describe(a, value.producer), describe(a, value.consumers), describe(a, value.bytes);
  Bytes gradient = !value.has_gradient                ? kNone
                   : value.gradient_bytes == Bytes{0} ? kEmpty
                                                      : value.gradient_bytes;
  describe(a, gradient), describe(a, value.transfer_time);
  value.has_gradient = gradient != kNone;
  value.gradient_bytes = gradient == kEmpty ? Bytes{0} : gradient;
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
void describe(Archive& a, LayerReduction& reduction) {
  describe(a, reduction.time), describe(a, reduction.beside);
}
template <class Archive>
void describe(Archive& a, DeviceKind& kind) {
  describe(a, kind.stage_overhead), describe(a, kind.iteration_overhead);
  describe(a, kind.type), describe(a, kind.kernel_overhead);
  a.number(kind.memory_bandwidth.value), a.number(kind.memory_efficiency);
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
  describe(a, spec.ranks), describe(a, spec.microbatches), describe(a, spec.stages_per_rank);
  describe(a, spec.loop_batch), describe(a, spec.prefetch);
}
template <class Archive>
void describe(Archive& a, CertifiedPath& path) {
  a.line("path");
  describe(a, path.rank), a.word(path.turns);
}
template <class Archive>
void describe(Archive& a, CertifiedMoment& moment) {
  describe(a, moment.rank), describe(a, moment.action);
}
template <class Archive>
void describe(Archive& a, CertifiedWeight& weight) {
  describe(a, weight.fact), describe(a, weight.weight);
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
template <class Archive>
void describe(Archive& a, Cluster& cluster) {
  a.line("cluster"), a.word(cluster.digest);
  describe(a, cluster.kinds), describe(a, cluster.kind_of_device);
  a.line("paths"), describe(a, cluster.paths);
}
template <class Archive>
void describe(Archive& a, Layers& layers) {
  a.line("model"), a.word(layers.digest), a.word(layers.order);
  a.line("layers"), describe(a, layers.layers);
  a.line("values"), describe(a, layers.values);
  a.line("storages"), describe(a, layers.storages);
  a.line("parameters"), describe(a, layers.parameters);
  const auto exchanged = [](const LayerParameter& p) { return p.exchanged > Bytes{0}; };
  if (a.line_if("exchanged", std::ranges::any_of(layers.parameters, exchanged)))
    for (LayerParameter& parameter : layers.parameters) describe(a, parameter.exchanged);
  if (a.line_if("reductions", !layers.reductions.empty())) describe(a, layers.reductions);
  if (a.line_if("mode", layers.mode != Mode::Train)) describe(a, layers.mode);
}
template <class Archive>
void describe(Archive& a, Certificate& c) {
  describe(a, c.layers), describe(a, c.cluster);
  a.line("bound"), describe(a, c.bound);
  a.line("ranks"), describe(a, c.device_of_rank), describe(a, c.memory_limit);
  a.line("recompute"), describe(a, c.recompute);
  if (a.line_if("norm", c.norm != StepNorm::None)) describe(a, c.norm);
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
    throw ConfigError({name, 1, 0},
                      "this is no certificate of the version that this program reads, which begins "
                      "with \"" +
                          std::string(kTitle) +
                          "\"; take the pfeife that wrote it, or plan again with this one");
  const std::string_view body = std::string_view(text).substr(title + 1);
  if (sha256(body) != text.substr(kTitle.size(), 64))
    throw ConfigError({name, 1, 0}, "the certificate is damaged: it has another digest");
  FileReader reader(body, name);
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
