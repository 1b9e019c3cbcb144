#include "planner/io/model/measured_layers_file.h"

#include <algorithm>
#include <vector>

#include "planner/io/files/csv_table.h"
#include "planner/io/files/quantity.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/recompute.h"

namespace pfeife {
namespace {

const std::vector<std::string> kColumns = {"kind",
                                           "tp",
                                           "cp",
                                           "ep",
                                           "microbatch",
                                           "sequence",
                                           "recompute",
                                           "precision",
                                           "compiled",
                                           "forward_ms",
                                           "input_ms",
                                           "weight_ms",
                                           "saved_bytes",
                                           "temporary_bytes",
                                           "parameter_bytes",
                                           "output_bytes",
                                           "machine",
                                           "versions"};

class Row {
 public:
  Row(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}

  MeasuredLayer read() const {
    MeasuredLayer layer;
    LayerSetting& setting = layer.setting;
    setting.kind = cell("kind").text;
    if (setting.kind.empty())
      throw ConfigError(cell("kind").where,
                        "column 'kind' is empty; expected embedding, head, or what the layer is "
                        "made of: attention+dense");
    setting.tp = size("tp", 1), setting.cp = size("cp", 1), setting.ep = size("ep", 1);
    setting.microbatch = size("microbatch"), setting.sequence = size("sequence");
    setting.recompute = recompute();
    setting.precision = text("precision");
    layer.forward = time("forward_ms"), layer.input = time("input_ms");
    layer.weight = time("weight_ms");
    layer.saved = bytes("saved_bytes"), layer.temporary = bytes("temporary_bytes");
    layer.parameters = bytes("parameter_bytes");
    bytes("output_bytes");
    layer.line = cell("kind").where.line;
    return layer;
  }
  std::string text(const std::string& column) const {
    return table_.has(column) ? cell(column).text : "";
  }
  const CsvCell& cell(const std::string& column) const { return table_.at(row_, column); }

 private:
  std::int64_t size(const std::string& column, std::optional<std::int64_t> usual = {}) const {
    if (usual && text(column).empty()) return *usual;
    const auto number = parse_integer(cell(column).text);
    if (!number || *number < 1 || *number > std::int64_t{1} << 30)
      throw ConfigError(cell(column).where, "column '" + column + "': '" + cell(column).text +
                                                "' is no size; expected a whole number from 1 on");
    return *number;
  }
  Nanoseconds time(const std::string& column) const {
    return checked_milliseconds(number_of(cell(column), column), cell(column).where,
                                "column '" + column + "'");
  }
  std::optional<Bytes> bytes(const std::string& column) const {
    if (text(column).empty()) return std::nullopt;
    return checked_bytes(number_of(cell(column), column), cell(column).where,
                         "column '" + column + "'");
  }
  /// Modules in the order of all_modules(), as recomputed_text() has them.
  std::string recompute() const {
    const std::string given = text("recompute");
    if (given.empty() || given == "none") return "none";
    std::string ordered;
    std::size_t found = 0;
    for (const Module module : all_modules()) {
      if (("+" + given + "+").find("+" + to_string(module) + "+") == std::string::npos) continue;
      ordered += (ordered.empty() ? "" : "+") + to_string(module);
      ++found;
    }
    if (found == 0 || found != static_cast<std::size_t>(std::ranges::count(given, '+')) + 1)
      throw ConfigError(cell("recompute").where,
                        "column 'recompute': '" + given +
                            "'; use none, or modules that backward computes again, as in "
                            "layernorm+mlp. A layer that is recomputed as a whole, or whose "
                            "attention is, takes its forward of the row with none again");
    return ordered;
  }

  const CsvTable& table_;
  std::size_t row_;
};

/// What all rows say in a column of words; each once.
std::string said_in(const CsvTable& table, const std::string& column) {
  std::vector<std::string> words;
  std::string all;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string word = Row(table, row).text(column);
    if (word.empty() || std::ranges::find(words, word) != words.end()) continue;
    words.push_back(word);
    all += (all.empty() ? "" : ", ") + word;
  }
  return all;
}

void check_compiled(const CsvTable& table) {
  if (!table.has("compiled")) return;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const CsvCell &cell = table.at(row, "compiled"), &first = table.at(0, "compiled");
    if (cell.text != "true" && cell.text != "false" && !cell.text.empty())
      throw ConfigError(cell.where, "column 'compiled': '" + cell.text + "'; use true or false");
    if (cell.text != first.text)
      throw ConfigError(cell.where,
                        "compiled layers and others in one file, of which a plan cannot have "
                        "both; keep two files");
  }
}

}  // namespace

MeasuredLayers read_measured_layers(const std::filesystem::path& file, const std::string& name) {
  TextFile text = read_text_file(file);
  if (!name.empty()) text.name = name;
  const CsvTable table = CsvTable::parse(text);
  table.check_columns(kColumns);
  check_compiled(table);
  MeasuredLayers layers{.file = name.empty() ? file.string() : name, .machine = {}, .rows = {}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    MeasuredLayer layer = Row(table, row).read();
    for (const MeasuredLayer& before : layers.rows)
      if (before.setting == layer.setting)
        throw ConfigError(table.at(row, "kind").where,
                          "line " + std::to_string(before.line) + " has the same layer; keep one");
    layers.rows.push_back(std::move(layer));
  }
  if (layers.rows.empty())
    throw ConfigError(table.where(),
                      "no layer is measured here; pfeife.measure(..., times=\"layers.csv\") writes "
                      "such a file");
  layers.machine = said_in(table, "machine");
  if (const std::string versions = said_in(table, "versions"); !versions.empty())
    layers.machine += (layers.machine.empty() ? "" : ", ") + versions;
  return layers;
}

std::string measured_layers_text(const MeasuredLayers& layers) {
  std::string text =
      "kind,tp,cp,ep,microbatch,sequence,recompute,precision,forward_ms,input_ms,weight_ms,"
      "saved_bytes,temporary_bytes,parameter_bytes,machine\n";
  const auto bytes = [](const std::optional<Bytes>& held) {
    return "," + (held ? std::to_string(held->value) : "");
  };
  for (const MeasuredLayer& row : layers.rows) {
    const LayerSetting& setting = row.setting;
    text += csv_cell(setting.kind);
    for (const std::int64_t size :
         {setting.tp, setting.cp, setting.ep, setting.microbatch, setting.sequence})
      text += "," + std::to_string(size);
    text += "," + setting.recompute + "," + csv_cell(setting.precision);
    for (const Nanoseconds time : {row.forward, row.input, row.weight})
      text += "," + fixed(milliseconds(time), 6);
    text += bytes(row.saved) + bytes(row.temporary) + bytes(row.parameters) + "," +
            csv_cell(layers.machine) + "\n";
  }
  return text;
}

}  // namespace pfeife
