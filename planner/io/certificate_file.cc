#include "planner/io/certificate_file.h"

#include <algorithm>
#include <charconv>
#include <concepts>

#include "planner/io/atomic_file.h"
#include "planner/io/certificate_problem.h"
#include "planner/io/digest.h"
#include "planner/io/repeats.h"
#include "planner/ir/error.h"

namespace pfeife {
namespace {

const std::string kTitle = "pfeife certificate 7, sha256 ";

/// Writing and reading go through the same description of the format (`describe` below): words
/// apart by blanks, a keyword at the begin of a line.
class Writer {
 public:
  std::string text;

  void line(const char* keyword) { text += std::string(text.empty() ? "" : "\n") + keyword; }
  void word(const std::string& value) { text += " " + (value.empty() ? "-" : value); }
  void turns(std::string& value) { word(fold_repeats(value)); }
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

class Reader {
 public:
  Reader(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError({name_, line_, 0}, message + "; write the certificate anew");
  }
  void line(const char* keyword) {
    if (const std::string found(next()); found != keyword)
      fail(std::string("expected '") + keyword + "', found '" + found + "'");
  }
  void word(std::string& value) {
    value = next();
    if (value == "-") value.clear();
  }
  void turns(std::string& value) {
    std::string folded;
    word(folded);
    const std::size_t most = kMostTurns + kMostRepeats * text_.size();
    const auto found = unfold_repeats(folded, most - turns_);
    if (!found) fail("expected the turns of a path, found '" + folded.substr(0, 40) + "'");
    turns_ += found->size();
    value = *found;
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
  // All paths together may unfold to so much, as the entries of an archive may.
  static constexpr std::size_t kMostTurns = std::size_t{1} << 23, kMostRepeats = 200;
  std::size_t at_ = 0, turns_ = 0;
  int line_ = 2;
};

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
  a.line("weights");
  describe(a, weights.paths), describe(a, weights.moments);
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
  describe(a, proof.any_order);
  describe(a, proof.paths), describe(a, proof.moments), describe(a, proof.tree);
}
/// Most pairs of devices share a path: each one is listed once.
template <class Archive>
void describe(Archive& a, Cluster& cluster) {
  describe(a, cluster.kinds), describe(a, cluster.kind_of_device);
  std::vector<Path> distinct;
  std::vector<std::size_t> index;
  for (const Path& path : cluster.paths) {
    const auto at = std::ranges::find(distinct, path) - distinct.begin();
    if (at == static_cast<std::ptrdiff_t>(distinct.size())) distinct.push_back(path);
    index.push_back(static_cast<std::size_t>(at));
  }
  a.line("paths");
  describe(a, distinct), describe(a, index);
  cluster.paths.clear();
  for (const std::size_t at : index) {
    if constexpr (std::same_as<Archive, Reader>)
      if (at >= distinct.size()) a.fail("there is no path " + std::to_string(at));
    cluster.paths.push_back(distinct[at]);
  }
}
template <class Archive>
void describe(Archive& a, Certificate& c) {
  a.line("bound"), describe(a, c.bound);
  a.line("model"), a.word(c.layers.digest), a.word(c.layers.order), describe(a, c.layers.layers);
  a.line("values"), describe(a, c.layers.values);
  a.line("storages"), describe(a, c.layers.storages);
  a.line("parameters"), describe(a, c.layers.parameters);
  a.line("cluster"), a.word(c.cluster.digest), describe(a, c.cluster);
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
    throw ConfigError({name, 1, 0}, "this is no certificate of version 7");
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
