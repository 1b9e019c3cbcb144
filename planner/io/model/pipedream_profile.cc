#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "planner/io/files/digest.h"
#include "planner/io/files/quantity.h"
#include "planner/io/model/imported_layers.h"

namespace pfeife {
namespace {

constexpr std::string_view kDashes = " -- ";

struct Entry {
  ProfileNode node;
  std::vector<Bytes> outputs;   // sizes of the activations
  std::optional<int> selected;  // i of __getitem__(i)
};

/// A piece of a line that still knows its place.
struct Piece {
  std::string_view text;
  SourceLocation where;

  Piece from(std::size_t at, std::size_t count = std::string_view::npos) const {
    Piece part{text.substr(at, count), where};
    part.where.column += static_cast<int>(at);
    return part;
  }
  [[noreturn]] void fail(const std::string& message) const { throw ConfigError(where, message); }
};

/// The number behind "node".
int node_number(const Piece& piece) {
  int number = 0;
  const std::string_view text = piece.text;
  const char* end = text.data() + text.size();
  if (!text.starts_with("node")) piece.fail("expected a node such as 'node7'");
  const auto [rest, error] = std::from_chars(text.data() + 4, end, number);
  if (error != std::errc{} || rest != end || number < 0)
    piece.fail("expected a node such as 'node7'");
  return number;
}

/// The text between "key=" and the next comma outside of brackets.
Piece field(const Piece& fields, const std::string& key) {
  const std::size_t at = fields.text.find(key + "=");
  if (at == std::string_view::npos) fields.fail("'" + key + "=' is missing in this node");
  const std::size_t begin = at + key.size() + 1;
  const bool list = fields.text.substr(begin).starts_with('[');
  std::size_t end = fields.text.find(list ? ']' : ',', begin);
  if (list && end == std::string_view::npos) fields.from(begin).fail("'[' is not closed");
  if (list) ++end;
  Piece piece = fields.from(begin, end == std::string_view::npos ? end : end - begin);
  while (piece.text.ends_with(' ')) piece.text.remove_suffix(1);
  return piece;
}

double number_in(const Piece& piece, const std::string& key) {
  const std::optional<double> number = parse_number(piece.text);
  if (!number || *number < 0)
    piece.fail(key + " is '" + std::string(piece.text.substr(0, 40)) +
               "', expected a decimal number that is not negative");
  return *number;
}

std::vector<Bytes> activations(const Piece& piece) {
  const std::string key = "activation_size";
  std::vector<Bytes> sizes;
  if (!piece.text.starts_with('[')) return {checked_bytes(number_in(piece, key), piece.where, key)};
  for (std::size_t at = 1; at < piece.text.size();) {
    std::size_t end = piece.text.find_first_of(";]", at);
    Piece item = piece.from(at, end - at);
    while (item.text.starts_with(' ')) item = item.from(1);
    sizes.push_back(checked_bytes(number_in(item, key), item.where, key));
    at = end + 1;
  }
  return sizes;
}

std::optional<int> selected_output(std::string_view description) {
  const std::string_view prefix = "__getitem__(";
  if (!description.starts_with(prefix)) return std::nullopt;
  int index = 0;
  const char* begin = description.data() + prefix.size();
  const auto [rest, error] = std::from_chars(begin, description.data() + description.size(), index);
  return error == std::errc{} ? std::optional(index) : std::nullopt;
}

Entry read_node(const Piece& line, std::size_t first_dashes) {
  const std::size_t begin = first_dashes + kDashes.size();
  const std::size_t times = line.text.find(" -- forward_compute_time=", first_dashes);
  if (times == std::string_view::npos || times < begin)
    line.fail("expected 'nodeK -- description -- forward_compute_time=..., ...'");
  const std::string_view description = line.text.substr(begin, times - begin);
  const std::size_t start = times + kDashes.size();
  const std::size_t more = line.text.find(kDashes, start);  // "stage_id=0", of PipeDream's planner
  const Piece fields = line.from(start, more == std::string_view::npos ? more : more - start);
  const auto milliseconds_of = [&](const std::string& key) {
    const Piece piece = field(fields, key);
    return checked_milliseconds(number_in(piece, key), piece.where, key);
  };
  Entry entry;
  entry.node.name = std::string(line.text.substr(0, first_dashes)) + " " +
                    std::string(description.substr(0, description.find('(')));
  entry.node.times = split_backward(milliseconds_of("forward_compute_time"),
                                    milliseconds_of("backward_compute_time"));
  entry.outputs = activations(field(fields, "activation_size"));
  for (const Bytes bytes : entry.outputs) entry.node.saved += bytes;
  const Piece parameters = field(fields, "parameter_size");
  entry.node.parameters =
      checked_bytes(number_in(parameters, "parameter_size"), parameters.where, "parameter_size");
  entry.node.gradients = entry.node.parameters;
  entry.selected = selected_output(description);
  return entry;
}

struct Edge {
  int from = 0, to = 0;
  Piece from_piece, to_piece;
};

/// Nodes by number, and edges between numbers, as the lines have them.
struct Lines {
  std::map<int, Entry> nodes;
  std::vector<Edge> edges;
};

Lines read_lines(const TextFile& file) {
  Lines lines;
  for (const TextLine& text : lines_of(file.text)) {
    const Piece line{text.text, {file.name, text.number, 1}};
    if (line.text.find_first_not_of(" \t") == std::string_view::npos) continue;
    const std::size_t dashes = line.text.find(kDashes);
    if (dashes == std::string_view::npos) line.fail("expected a node or an edge, found no ' -- '");
    if (line.text.starts_with('\t')) {
      const Piece from = line.from(1, dashes - 1), to = line.from(dashes + kDashes.size());
      lines.edges.push_back({node_number(from), node_number(to), from, to});
      continue;
    }
    const int number = node_number(line.from(0, dashes));
    if (!lines.nodes.emplace(number, read_node(line, dashes)).second)
      line.fail("node" + std::to_string(number) + " is there twice");
  }
  return lines;
}

/// What `reader` gets of `producer`: one output of a list if it selects one, else all of them.
ProfileEdge edge_between(const Entry& producer, const Entry& reader) {
  ProfileEdge edge;
  const bool selects = reader.selected && producer.outputs.size() > 1 && *reader.selected >= 0 &&
                       static_cast<std::size_t>(*reader.selected) < producer.outputs.size();
  edge.output = selects ? *reader.selected : -1;
  edge.bytes =
      selects ? producer.outputs[static_cast<std::size_t>(*reader.selected)] : producer.node.saved;
  return edge;
}

ProfileGraph graph_of(const TextFile& file) {
  const Lines lines = read_lines(file);
  ProfileGraph graph;
  graph.file = file.name;
  std::map<int, std::size_t> index_of;
  for (const auto& [number, entry] : lines.nodes) {
    index_of[number] = graph.nodes.size();
    graph.nodes.push_back(entry.node);
  }
  for (const Edge& edge : lines.edges) {
    const auto from = lines.nodes.find(edge.from), to = lines.nodes.find(edge.to);
    if (from == lines.nodes.end()) edge.from_piece.fail("this node is nowhere described");
    if (to == lines.nodes.end()) edge.to_piece.fail("this node is nowhere described");
    ProfileEdge renumbered = edge_between(from->second, to->second);
    renumbered.from = index_of[edge.from];
    renumbered.to = index_of[edge.to];
    graph.edges.push_back(renumbered);
  }
  return graph;
}

}  // namespace

Layers layers_of_pipedream(const TextFile& file, const ImportOptions& options) {
  require_plain_text(file);
  Layers layers = layers_of_profile(graph_of(file), options);
  layers.digest = sha256(file.text);
  layers.notes = {
      "times and sizes as published (PipeDream profile), on every device kind alike",
      "the profile has one backward time per node; it was split in halves: backward-input and "
      "backward-weight take equally long",
      "every node keeps its output for backward, as PipeDream's planner counts it"};
  return layers;
}

Layers read_pipedream_profile(const std::filesystem::path& path, const ImportOptions& options) {
  return layers_of_pipedream(read_text_file(path), options);
}

}  // namespace pfeife
