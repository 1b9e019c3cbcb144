#include <algorithm>
#include <map>

#include "planner/io/files/csv_table.h"
#include "planner/io/files/digest.h"
#include "planner/io/model/imported_layers.h"

namespace pfeife {
namespace {

const std::vector<std::string> kTableColumns = {"name",
                                                "forward_ms",
                                                "backward_input_ms",
                                                "backward_weight_ms",
                                                "backward_ms",
                                                "output_bytes",
                                                "parameter_bytes",
                                                "saved_bytes",
                                                "weight_saved_bytes",
                                                "temporary_bytes",
                                                "optimizer_ms",
                                                "output_ms",
                                                "words"};
const std::vector<std::string> kSkipColumns = {"value", "from", "to", "bytes"};

Nanoseconds milliseconds_at(const CsvTable& table, std::size_t row, const std::string& column) {
  const CsvCell& cell = table.at(row, column);
  return checked_milliseconds(number_of(cell, column), cell.where, column);
}

Bytes bytes_at(const CsvTable& table, std::size_t row, const std::string& column) {
  const CsvCell& cell = table.at(row, column);
  return checked_bytes(number_of(cell, column), cell.where, column);
}

/// Builds the layers of one table, a step a function.
class TableReader {
 public:
  TableReader(const TextFile& file, const ImportOptions& options)
      : table_(CsvTable::parse(file)), options_(options) {
    table_.check_columns(kTableColumns);
    if (table_.rows() == 0)
      throw ConfigError({file.name}, "has no rows; a model has one layer at least");
    const bool halves = table_.has("backward_ms");
    const bool both = table_.has("backward_input_ms") || table_.has("backward_weight_ms");
    if (halves && both)
      throw ConfigError(table_.where(),
                        "has backward_ms and its parts; give either backward_ms or "
                        "backward_input_ms and backward_weight_ms");
  }

  Layers read() {
    layers_.microbatch_size = options_.training.microbatch_size;
    for (std::size_t row = 0; row < table_.rows(); ++row) add_row(row);
    layers_.notes.push_back(
        "times and bytes as given in the layer table, on every device kind alike");
    if (table_.has("parameter_bytes"))
      layers_.notes.push_back(
          "parameter_bytes count fp32 parameters: gradients take as many bytes, and the "
          "optimizer's "
          "state follows from them");
    if (table_.has("backward_ms"))
      layers_.notes.push_back(
          "backward_ms was split in halves: backward-input and backward-weight take equally long");
    if (layers_.words && layers_.words->layers.back().index() + 1 != table_.rows())
      throw ConfigError(table_.where(),
                        "has an input embedding with words and no output layer; write output in "
                        "the column words of the last row");
    return std::move(layers_);
  }

 private:
  LayerTimes times_of(std::size_t row) const {
    LayerTimes times;
    times.forward = milliseconds_at(table_, row, "forward_ms");
    if (table_.has("backward_ms")) {
      const Nanoseconds backward = milliseconds_at(table_, row, "backward_ms");
      times.backward_input = backward / 2;
      times.backward_weight = backward - times.backward_input;
    } else {
      times.backward_input = milliseconds_at(table_, row, "backward_input_ms");
      times.backward_weight = milliseconds_at(table_, row, "backward_weight_ms");
    }
    if (table_.has("optimizer_ms")) times.optimizer = milliseconds_at(table_, row, "optimizer_ms");
    return times;
  }

  void add_row(std::size_t row) {
    const CsvCell& name = table_.at(row, "name");
    if (name.text.empty()) throw ConfigError(name.where, "a layer needs a name");
    if (!names_.insert({name.text, row}).second)
      throw ConfigError(name.where, "two layers are named '" + name.text + "'; rename one");
    Layer layer;
    layer.name = name.text;
    layer.times.assign(options_.device_kinds, times_of(row));
    layer.saved = bytes_at(table_, row, "saved_bytes");
    layer.weight_saved = bytes_at(table_, row, "weight_saved_bytes");
    layer.temporary = PassBytes::same(bytes_at(table_, row, "temporary_bytes"));
    layers_.layers.push_back(std::move(layer));
    add_parameter(row, name.text);
    add_output(row, name.text);
    if (table_.has("words")) add_words(row);
  }

  /// Marks the layer as one whose words ranks may divide.
  void add_words(std::size_t row) {
    const CsvCell& cell = table_.at(row, "words");
    if (cell.text.empty()) return;
    const bool input = cell.text == "input";
    if (!input && cell.text != "output")
      throw ConfigError(cell.where, "'" + cell.text +
                                        "' is no kind of layer with words; write input, output, "
                                        "or nothing");
    if (row != (input ? 0 : table_.rows() - 1))
      throw ConfigError(cell.where, input ? "the input embedding is the first layer"
                                          : "the output layer, with the loss, is the last layer");
    if (!layers_.words) layers_.words = WordShare{};
    layers_.words->layers.push_back(LayerId{row});
  }

  void add_parameter(std::size_t row, const std::string& name) {
    const Bytes bytes = bytes_at(table_, row, "parameter_bytes");
    if (bytes == Bytes{0}) return;
    const Bytes state = optimizer_state(options_.training.optimizer, bytes);
    layers_.parameters.push_back({name,
                                  bytes,
                                  bytes,
                                  state,
                                  {LayerId{row}},
                                  std::vector<Nanoseconds>(options_.device_kinds, Nanoseconds{0})});
  }

  void add_output(std::size_t row, const std::string& name) {
    const Bytes bytes = bytes_at(table_, row, "output_bytes");
    std::optional<Nanoseconds> time;
    if (table_.has("output_ms") && !table_.at(row, "output_ms").text.empty())
      time = milliseconds_at(table_, row, "output_ms");
    if (row + 1 == table_.rows()) return;  // nobody reads it
    layers_.values.push_back({name, LayerId{row}, {LayerId{row + 1}}, bytes, bytes, time});
  }

  CsvTable table_;
  const ImportOptions& options_;
  std::map<std::string, std::size_t> names_;
  Layers layers_;
};

LayerId layer_named(const std::map<std::string, LayerId>& names, const CsvCell& cell) {
  const auto found = names.find(cell.text);
  if (found != names.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, id] : names) known.push_back(name);
  const std::string nearest = nearest_spelling(cell.text, known);
  throw ConfigError(cell.where, "there is no layer '" + cell.text + "'" +
                                    (nearest.empty() ? "" : ", did you mean '" + nearest + "'?"));
}

void add_reader(LayerValue& value, LayerId to) {
  const auto at = std::lower_bound(value.consumers.begin(), value.consumers.end(), to);
  if (at == value.consumers.end() || *at != to) value.consumers.insert(at, to);
}

void add_skips(Layers& layers, const CsvTable& table) {
  table.check_columns(kSkipColumns);
  std::map<std::string, LayerId> names;
  for (std::size_t i = 0; i < layers.size(); ++i) names.emplace(layers.layers[i].name, LayerId{i});
  std::map<std::string, std::size_t> value_named;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const CsvCell& name = table.at(row, "value");
    if (name.text.empty()) throw ConfigError(name.where, "a skip needs the name of its value");
    const CsvCell& from_cell = table.at(row, "from");
    const CsvCell& to_cell = table.at(row, "to");
    const LayerId from = layer_named(names, from_cell), to = layer_named(names, to_cell);
    const Bytes bytes = bytes_at(table, row, "bytes");
    if (to <= from)
      throw ConfigError(to_cell.where, "the skip '" + name.text + "' points backwards, from '" +
                                           from_cell.text + "' to '" + to_cell.text +
                                           "'; a value is read by later layers only");
    const auto [known, fresh] = value_named.emplace(name.text, layers.values.size());
    if (fresh) {
      layers.values.push_back({name.text, from, {to}, bytes, bytes, std::nullopt});
      continue;
    }
    LayerValue& value = layers.values[known->second];
    if (value.producer != from || value.bytes != bytes)
      throw ConfigError(name.where,
                        "the value '" + name.text +
                            "' has another layer or other bytes further up; rows of one "
                            "value differ in 'to' only");
    add_reader(value, to);
  }
}

}  // namespace

Layers layers_of_table(const TextFile& table, const std::optional<TextFile>& skips,
                       const ImportOptions& options) {
  Layers layers = TableReader(table, options).read();
  if (skips) add_skips(layers, CsvTable::parse(*skips));
  layers.name = std::filesystem::path(table.name).stem().string();
  layers.digest = sha256(sha256(table.text) + (skips ? sha256(skips->text) : ""));
  return layers;
}

Layers read_layer_table(const std::filesystem::path& table,
                        const std::optional<std::filesystem::path>& skips,
                        const ImportOptions& options) {
  std::optional<TextFile> skip_file;
  if (skips) skip_file = read_text_file(*skips);
  return layers_of_table(read_text_file(table), skip_file, options);
}

}  // namespace pfeife
