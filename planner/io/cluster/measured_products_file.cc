// The table of products that were measured on a device, and the list of those to measure.
#include <algorithm>
#include <map>

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/files/csv_table.h"
#include "planner/io/files/quantity.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

const std::vector<std::string> kColumns = {"precision", "operator", "pass", "groups",
                                           "m",         "n",        "k",    "us"};

template <class Value>
Value word_of(const CsvCell& cell, const std::string& column, std::initializer_list<Value> values,
              Value if_empty) {
  if (cell.text.empty()) return if_empty;
  std::vector<std::string> names;
  for (const Value value : values) {
    if (to_string(value) == cell.text) return value;
    names.push_back(to_string(value));
  }
  throw ConfigError(cell.where, "column '" + column + "': unknown word '" + cell.text + "'; use " +
                                    listed_values(names) + ", or leave it empty");
}

std::int64_t size_of(const CsvCell& cell, const std::string& column) {
  const auto number = parse_integer(cell.text);
  if (!number || *number < 1 || *number > std::int64_t{1} << 40)
    throw ConfigError(cell.where, "column '" + column + "': '" + cell.text +
                                      "' is no size; expected a whole number from 1 on");
  return *number;
}

MeasuredProduct read_row(const CsvTable& table, std::size_t row) {
  const auto cell = [&](const std::string& column) -> const CsvCell& {
    return table.at(row, column);
  };
  MeasuredProduct product;
  product.precision = cell("precision").text;
  const std::vector<std::string>& precisions = known_precisions();
  if (std::ranges::find(precisions, product.precision) == precisions.end())
    throw ConfigError(cell("precision").where, "column 'precision': unknown precision '" +
                                                   product.precision + "'; use " +
                                                   listed_values(precisions));
  ProductShape& shape = product.shape;
  using enum ProductOperator;
  if (table.has("operator"))
    shape.op =
        word_of(cell("operator"), "operator", {Product, Attention, CausalAttention}, Product);
  using enum ProductPass;
  shape.pass = word_of(cell("pass"), "pass", {Forward, Input, Weight, WeightSum}, Any);
  const bool grouped = table.has("groups") && !cell("groups").text.empty();
  shape.groups = grouped ? size_of(cell("groups"), "groups") : 1;
  shape.m = size_of(cell("m"), "m"), shape.n = size_of(cell("n"), "n");
  shape.k = size_of(cell("k"), "k");
  product.seconds = number_of(cell("us"), "us") / 1e6;
  if (product.seconds <= 0 || product.seconds > 3600)
    throw ConfigError(cell("us").where,
                      "column 'us': expected the microseconds that the product took, above 0 and "
                      "at most an hour");
  return product;
}

}  // namespace

MeasuredProducts read_measured_products(const std::filesystem::path& file) {
  const CsvTable table = CsvTable::parse(read_text_file(file));
  table.check_columns(kColumns);
  MeasuredProducts products{file.string(), {}};
  std::map<std::pair<std::string, ProductShape>, int> lines;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    products.rows.push_back(read_row(table, row));
    const MeasuredProduct& product = products.rows.back();
    const SourceLocation& where = table.at(row, "precision").where;
    const auto [line, first] = lines.try_emplace({product.precision, product.shape}, where.line);
    if (!first)
      throw ConfigError(where, "line " + std::to_string(line->second) +
                                   " has the same product; keep one of them");
  }
  if (products.rows.empty())
    throw ConfigError(table.where(),
                      "no product is measured here; configs/clusters/measure_device.py --products "
                      "LIST measures those that `pfeife-exp products CONFIG` lists");
  return products;
}

std::string products_text(const std::vector<ProductUse>& uses) {
  std::string text = "precision,operator,pass,groups,m,n,k\n";
  for (const ProductUse& use : uses) {
    const ProductShape& shape = use.shape;
    text += use.precision + "," + to_string(shape.op) + "," + to_string(shape.pass);
    for (const std::int64_t size : {shape.groups, shape.m, shape.n, shape.k})
      text += "," + std::to_string(size);
    text += "\n";
  }
  return text;
}

}  // namespace pfeife
