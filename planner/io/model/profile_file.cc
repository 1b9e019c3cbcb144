#include "planner/io/model/profile_file.h"

#include <algorithm>
#include <map>

#include "planner/io/files/yaml.h"
#include "planner/io/model/training_yaml.h"

namespace pfeife {
namespace {

using Entries = std::vector<YamlEntry>;

/// A time, or [median, spread] if a spread was measured.
YamlValue time_and_spread(Nanoseconds median, Nanoseconds spread) {
  if (spread == Nanoseconds{0}) return yaml_amount(median);
  return yaml_sequence({yaml_amount(median), yaml_amount(spread)});
}

/// One figure if that is all there is to say, otherwise [F, B, I, W].
YamlValue pass_bytes(const PassBytes& bytes) {
  if (bytes == PassBytes::same(bytes.forward)) return yaml_amount(bytes.forward);
  return yaml_sequence({yaml_amount(bytes.forward), yaml_amount(bytes.backward),
                        yaml_amount(bytes.input), yaml_amount(bytes.weight)});
}

YamlValue names(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<YamlValue> items;
  for (const NodeId id : nodes) items.push_back(yaml_string(graph.node(id).name));
  return yaml_sequence(std::move(items));
}

/// Finds what a file calls by name; refuses unknown names and, where told to, repeated ones.
class Names {
 public:
  void add(const std::string& name, std::size_t index) {
    index_.emplace(name, index);
    all_.push_back(name);
  }
  std::size_t find(const YamlNode& node) const {
    const std::string name = node.as_string();
    const auto at = index_.find(name);
    if (at != index_.end()) return at->second;
    const std::string nearest = nearest_spelling(name, all_);
    node.fail("the graph has no '" + name + "'" +
              (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  }

 private:
  std::map<std::string, std::size_t> index_;
  std::vector<std::string> all_;
};

Nanoseconds read_time(const YamlNode& node) {
  const Nanoseconds time = node.as_duration();
  if (time < Nanoseconds{0}) node.fail("a time cannot be negative");
  return time;
}
void read_time_and_spread(const YamlNode& node, Nanoseconds& median, Nanoseconds& spread) {
  const std::vector<YamlNode> items = node.items_or_self();
  if (items.empty() || items.size() > 2) node.fail("expected a time, or [median, spread]");
  median = read_time(items[0]);
  if (items.size() == 2) spread = read_time(items[1]);
}

PassBytes read_pass_bytes(const YamlNode& node) {
  const std::vector<YamlNode> items = node.items_or_self();
  if (items.size() == 1) return PassBytes::same(items[0].as_bytes());
  if (items.size() != 4) node.fail("expected an amount, or those of [F, B, I, W]");
  return {items[0].as_bytes(), items[1].as_bytes(), items[2].as_bytes(), items[3].as_bytes()};
}

/// A time and how much it varied.
Field<NodeProfile> timing(const char* key, Nanoseconds NodeProfile::*median,
                          Nanoseconds NodeProfile::*spread) {
  return Field<NodeProfile>{
      key, "", "",
      [=](const YamlNode& node, NodeProfile& cost) {
        read_time_and_spread(node, cost.*median, cost.*spread);
      },
      [=](const NodeProfile& cost) { return time_and_spread(cost.*median, cost.*spread); }}
      .always()
      .needed();
}

/// `name` is the graph's.
const FieldList<NodeProfile>& node_fields() {
  using Of = NodeProfile;
  static const FieldList<NodeProfile> fields = {
      Field<Of>{"name", "", "", [](const YamlNode&, Of&) {}, [](const Of&) { return YamlValue{}; }},
      timing("forward", &Of::forward, &Of::forward_spread),
      timing("backward_input", &Of::backward_input, &Of::backward_input_spread),
      timing("backward_weight", &Of::backward_weight, &Of::backward_weight_spread),
      field("saved", &Of::saved, memory(), "").always().needed(),
      field("weight_saved", &Of::weight_saved, memory(), "").always().needed(),
      field("temporary", &Of::temporary, Kind<PassBytes>{"", read_pass_bytes, pass_bytes}, "")
          .always()
          .needed()};
  return fields;
}

/// Reads a list with one entry for each of `count` named things into `out`.
template <class T, class Read>
void read_each(const YamlNode& list, const Names& names, std::size_t count, const char* what,
               std::vector<T>& out, const Read& read) {
  std::vector<bool> seen(count, false);
  out.resize(count);
  for (const YamlNode& item : list.items()) {
    const std::size_t index = names.find(item.at("name"));
    if (seen[index]) item.at("name").fail("listed twice");
    seen[index] = true;
    out[index] = read(item);
  }
  const auto missing = std::ranges::count(seen, false);
  if (missing > 0)
    list.fail(stream_all(missing, " ", what, " of the graph are missing; profile the model again"));
}

std::vector<NodeId> read_savers(const YamlNode& list, const Names& nodes) {
  std::vector<NodeId> savers;
  for (const YamlNode& item : list.items())
    savers.emplace_back(static_cast<std::int64_t>(nodes.find(item)));
  std::ranges::sort(savers);
  if (std::ranges::adjacent_find(savers) != savers.end()) list.fail("a node is listed twice");
  return savers;
}

Kind<StageOverheads> overheads_map() {
  using Of = StageOverheads;
  return map_of<Of>(
      {field("forward", &Of::forward, duration(), "").always().needed(),
       field("backward_input", &Of::backward_input, duration(), "").always().needed(),
       field("backward_weight", &Of::backward_weight, duration(), "").always().needed()});
}

Kind<MeasuredVariation> variation_map() {
  using Of = MeasuredVariation;
  return map_of<Of>({field("cv", &Of::cv, real(0, 1), "").always().needed(),
                     field("drift", &Of::drift, real(0, 1), "").always().needed()});
}

/// What the file says of the runtime that made it.
template <class Of>
const FieldList<Of>& runtime_fields() {
  static const FieldList<Of> fields = {
      field("executor_overhead", &Of::executor_overhead, duration(), "").always(),
      field("stage_overheads", &Of::stage_overheads, overheads_map(), ""),
      field("message_overhead", &Of::message_overhead, duration(), ""),
      field("variation", &Of::variation, variation_map(), "")};
  return fields;
}

/// All that stands before the graph's nodes, storages and parameters.
const FieldList<Profile>& head_fields() {
  static const FieldList<Profile> head =
      FieldList<Profile>{
          version_field<Profile>(1),
          field("graph", &Profile::graph_digest, any_text(), "").always().needed(),
          field("device_kind", &Profile::device_kind, any_text(), "").always().needed(),
          field("training", &Profile::training, training_map(), "").always().needed(),
          field("source", &Profile::source,
                word(words_of<FigureSource>(
                    {FigureSource::Measured, FigureSource::Roofline, FigureSource::Imported})),
                "")
              .always()
              .needed(),
          field("origin", &Profile::origin, any_text(), "").always().needed()} +
      runtime_fields<Profile>();
  return head;
}

}  // namespace

std::string profile_text(const Profile& profile, const Graph& graph) {
  std::vector<YamlValue> nodes, storages, parameters;
  for (std::size_t n = 0; n < profile.nodes.size(); ++n) {
    YamlValue& node = nodes.emplace_back(node_fields().value(profile.nodes[n]));
    node.entries.insert(node.entries.begin(), {"name", yaml_string(graph.nodes[n].name), {}});
  }
  for (const SavedStorage& storage : profile.storages)
    storages.push_back(yaml_map({{"value", yaml_string(graph.value(storage.value).name), {}},
                                 {"bytes", yaml_amount(storage.bytes), {}},
                                 {"savers", names(graph, storage.savers), {}},
                                 {"weight_savers", names(graph, storage.weight_savers), {}}}));
  for (std::size_t p = 0; p < profile.parameters.size(); ++p)
    parameters.push_back(yaml_map({{"name", yaml_string(graph.parameters[p].names.front()), {}},
                                   {"optimizer", yaml_amount(profile.parameters[p].optimizer), {}},
                                   {"state", yaml_amount(profile.parameters[p].state), {}}}));
  Entries entries = head_fields().value(profile).entries;
  entries.push_back({"nodes", yaml_sequence(std::move(nodes)), {}});
  entries.push_back({"storages", yaml_sequence(std::move(storages)), {}});
  entries.push_back({"parameters", yaml_sequence(std::move(parameters)), {}});
  return to_text(yaml_map(std::move(entries)));
}

Profile read_profile(const std::filesystem::path& file, const Graph& graph) {
  const YamlDocument document = YamlDocument::read(file);
  const YamlNode root = document.root();
  const FieldList<Profile>& head = head_fields();
  std::vector<std::string> keys = head.keys();
  keys.insert(keys.end(), {"nodes", "storages", "parameters"});
  root.check_keys(keys);
  root.check_version(1);
  Profile profile;
  head.read_known(root, profile);
  if (profile.graph_digest != graph.digest)
    root.at("graph").fail("this profile was made for another graph than '" + graph.name +
                          "' (digest " + graph.digest.substr(0, 12) + "...); profile that model");
  Names nodes, values, parameters;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) nodes.add(graph.nodes[n].name, n);
  for (std::size_t v = 0; v < graph.values.size(); ++v) values.add(graph.values[v].name, v);
  for (std::size_t p = 0; p < graph.parameters.size(); ++p)
    parameters.add(graph.parameters[p].names.front(), p);
  read_each(root.at("nodes"), nodes, graph.nodes.size(), "nodes", profile.nodes,
            [](const YamlNode& item) {
              NodeProfile cost;
              node_fields().read(item, cost);
              return cost;
            });
  read_each(root.at("parameters"), parameters, graph.parameters.size(), "parameters",
            profile.parameters, [](const YamlNode& item) {
              item.check_keys({"name", "optimizer", "state"});
              return ParameterProfile{read_time(item.at("optimizer")), item.at("state").as_bytes()};
            });
  for (const YamlNode& item : root.at("storages").items()) {
    item.check_keys({"value", "bytes", "savers", "weight_savers"});
    SavedStorage storage;
    storage.value = ValueId{values.find(item.at("value"))};
    storage.bytes = item.at("bytes").as_bytes();
    storage.savers = read_savers(item.at("savers"), nodes);
    storage.weight_savers = read_savers(item.at("weight_savers"), nodes);
    if (storage.savers.empty()) item.fail("a saved storage needs a saver");
    if (!std::ranges::includes(storage.savers, storage.weight_savers))
      item.at("weight_savers").fail("weight_savers must be among savers");
    profile.storages.push_back(std::move(storage));
  }
  return profile;
}

ProfiledRuntime read_profiled_runtime(const std::filesystem::path& file) {
  const YamlDocument document = YamlDocument::read(file);
  ProfiledRuntime found;
  runtime_fields<ProfiledRuntime>().read_known(document.root(), found);
  return found;
}

void check_profile(const Profile& profile, const std::filesystem::path& file,
                   const Training& training, const std::string& device_kind) {
  const auto refuse = [&](const std::string& what, const std::string& found,
                          const std::string& wanted) {
    throw ConfigError({file.string()},
                      "this profile is for " + what + " " + found + ", asked for is " + wanted +
                          "; profile again, or leave `profile` out to use the roofline");
  };
  if (profile.device_kind != device_kind) refuse("device kind", profile.device_kind, device_kind);
  if (profile.training.precision != training.precision)
    refuse("precision", to_string(profile.training.precision), to_string(training.precision));
  if (profile.training.microbatch_size != training.microbatch_size)
    refuse("microbatch size", std::to_string(profile.training.microbatch_size),
           std::to_string(training.microbatch_size));
  if (profile.training.optimizer != training.optimizer)
    refuse("optimizer", to_string(profile.training.optimizer), to_string(training.optimizer));
}

}  // namespace pfeife
