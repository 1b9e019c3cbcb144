#include "planner/cost/operators/contraction.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>

#include "planner/cost/operators/aliasing.h"

namespace pfeife {
namespace {

/// Indices as numbers: letters by their code; those that "..." stands for are negative.
using Label = int;
using Labels = std::vector<Label>;

struct Term {
  std::size_t number = 0;
  TensorType type;  ///< a dimension a label; strides are known of operands only
  Labels labels;
  bool operand = true;
  std::int64_t size_of(Label label) const {
    const auto at = std::ranges::find(labels, label);
    return at == labels.end() ? 1 : type.sizes[static_cast<std::size_t>(at - labels.begin())];
  }
};

bool among(const Labels& labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}

/// Labels of one term of the equation; "..." becomes as many as are left of `dimensions`.
std::optional<Labels> labels_of(const std::string& text, std::size_t dimensions) {
  Labels labels;
  const auto letters = static_cast<std::size_t>(
      std::ranges::count_if(text, [](unsigned char c) { return std::isalpha(c) != 0; }));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "...") == 0) {
      if (letters > dimensions) return std::nullopt;
      for (std::size_t d = dimensions - letters; d > 0; --d) labels.push_back(-static_cast<int>(d));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      labels.push_back(text[i]);
    } else {
      return std::nullopt;
    }
  }
  return labels;
}

struct Equation {
  std::vector<Term> terms;
  Labels result;
};

/// What the equation without "->" means: indices that occur once, in alphabetical order.
Labels implied_result(const std::vector<Term>& terms) {
  std::map<Label, int> count;
  for (const Term& term : terms)
    for (const Label label : term.labels) ++count[label];
  Labels result;
  for (const auto& [label, times] : count)
    if (label < 0 || times == 1) result.push_back(label);
  return result;
}

std::optional<Equation> read(std::string text, const std::vector<TensorType>& operands) {
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation equation;
  std::size_t ellipsis = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t comma = left.find(',');
    if ((comma == std::string::npos) != (i + 1 == operands.size())) return std::nullopt;
    auto labels = labels_of(left.substr(0, comma), operands[i].sizes.size());
    if (!labels || labels->size() != operands[i].sizes.size()) return std::nullopt;
    ellipsis = std::max(ellipsis, static_cast<std::size_t>(std::ranges::count_if(
                                      *labels, [](Label label) { return label < 0; })));
    equation.terms.push_back({i, operands[i], std::move(*labels)});
    left = comma == std::string::npos ? "" : left.substr(comma + 1);
  }
  if (arrow == std::string::npos) {
    equation.result = implied_result(equation.terms);
    return equation;
  }
  const std::string right = text.substr(arrow + 2);
  const std::size_t letters = static_cast<std::size_t>(
      std::ranges::count_if(right, [](unsigned char c) { return std::isalpha(c) != 0; }));
  auto labels = labels_of(right, letters + ellipsis);
  if (!labels) return std::nullopt;
  equation.result = std::move(*labels);
  return equation;
}

/// Where an index goes in a product of two terms.
struct Roles {
  Labels batch, left, right, summed;
};

/// An index that one term alone has and nobody needs is summed before; one of size 1 is none.
Roles roles(const Term& a, const Term& b, const Labels& needed) {
  Roles roles;
  Labels all = needed;  // those of the result in its order, then the others by their letter
  Labels others;
  for (const Term* term : {&a, &b})
    for (const Label label : term->labels)
      if (!among(all, label) && !among(others, label)) others.push_back(label);
  std::ranges::sort(others);
  all.insert(all.end(), others.begin(), others.end());
  for (const Label label : all) {
    const bool in_a = a.size_of(label) > 1, in_b = b.size_of(label) > 1;
    const bool stays = among(needed, label);
    if (in_a && in_b)
      (stays ? roles.batch : roles.summed).push_back(label);
    else if (in_a && stays)
      roles.left.push_back(label);
    else if (in_b && stays)
      roles.right.push_back(label);
  }
  return roles;
}

std::int64_t extent(const Term& term, const Labels& labels) {
  std::int64_t product = 1;
  for (const Label label : labels) product *= term.size_of(label);
  return product;
}

/// True if the operand's dimensions, in the order of the groups, are no matrices by a mere view.
bool must_copy(const Term& term, const std::vector<Labels>& groups) {
  if (!term.operand) return false;
  TensorType permuted{term.type.dtype, {}, {}, 0};
  std::vector<std::int64_t> folded;
  for (const Labels& group : groups) {
    folded.push_back(extent(term, group));
    for (const Label label : group) {
      const auto at = std::ranges::find(term.labels, label) - term.labels.begin();
      permuted.sizes.push_back(term.type.sizes[static_cast<std::size_t>(at)]);
      permuted.strides.push_back(term.type.strides[static_cast<std::size_t>(at)]);
    }
  }
  return !viewable(permuted, folded);
}

/// Multiplies `a` and `b`; `needed`: the indices that the result or a later product has.
Contraction contract(const Term& a, const Term& b, const Labels& needed, Term& result) {
  const Roles to = roles(a, b, needed);
  const std::int64_t batch = extent(a, to.batch), rows = extent(a, to.left),
                     columns = extent(b, to.right), inner = extent(a, to.summed);
  Contraction contraction;
  contraction.result = batch * rows * columns;
  const bool product = !to.summed.empty();
  contraction.left = {a.number, batch * rows * inner,
                      product && must_copy(a, {to.batch, to.left, to.summed})};
  contraction.right = {b.number, batch * columns * inner,
                       product && must_copy(b, {to.batch, to.summed, to.right})};
  if (product)
    contraction.flops = 2.0 * static_cast<double>(contraction.result) * static_cast<double>(inner);
  for (const Labels* group : {&to.batch, &to.left, &to.right})
    for (const Label label : *group) {
      result.labels.push_back(label);
      result.type.sizes.push_back(std::max(a.size_of(label), b.size_of(label)));
    }
  result.operand = false;
  return contraction;
}

/// The indices that remain needed beside `terms`.
Labels needed_by(const std::vector<Term>& terms, const Labels& result) {
  Labels needed = result;
  for (const Term& term : terms)
    for (const Label label : term.labels)
      if (!among(needed, label)) needed.push_back(label);
  return needed;
}

}  // namespace

std::vector<Contraction> einsum_contractions(const std::string& equation,
                                             const std::vector<TensorType>& operands,
                                             const std::vector<std::int64_t>& path) {
  const auto parsed = read(equation, operands);
  std::vector<Contraction> contractions;
  if (!parsed) return contractions;
  std::vector<Term> open = parsed->terms;
  const bool ordered = path.size() + 2 == 2 * operands.size();
  while (open.size() > 1) {
    const std::size_t at = 2 * contractions.size();
    auto i = ordered ? static_cast<std::size_t>(path[at]) : 0;
    auto j = ordered ? static_cast<std::size_t>(path[at + 1]) : 1;
    if (i > j) std::swap(i, j);
    if (i == j || j >= open.size()) return {};
    const Term a = open[i], b = open[j];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(j));
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    Term result;
    result.number = operands.size() + contractions.size();
    contractions.push_back(contract(a, b, needed_by(open, parsed->result), result));
    open.insert(ordered ? open.end() : open.begin(), std::move(result));
  }
  return contractions;
}

std::vector<Contraction> chain_contractions(const std::vector<TensorType>& operands) {
  const std::size_t count = operands.size();
  if (count < 2) return {};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t dimensions = operands[i].sizes.size();
    const bool end = i == 0 || i + 1 == count;
    if (dimensions != 2 && !(end && dimensions == 1)) return {};
  }
  // Matrix i is [size[i], size[i + 1]].
  std::vector<double> size;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& sizes = operands[i].sizes;
    size.push_back(i == 0 && sizes.size() == 1 ? 1 : static_cast<double>(sizes[0]));
  }
  const auto& last = operands.back().sizes;
  size.push_back(last.size() == 1 ? 1 : static_cast<double>(last[1]));
  std::vector<std::vector<double>> least(count, std::vector<double>(count, 0));
  std::vector<std::vector<std::size_t>> split(count, std::vector<std::size_t>(count, 0));
  for (std::size_t length = 1; length < count; ++length)
    for (std::size_t i = 0; i + length < count; ++i) {
      const std::size_t j = i + length;
      least[i][j] = std::numeric_limits<double>::infinity();
      for (std::size_t k = i; k < j; ++k) {
        const double cost = least[i][k] + least[k + 1][j] + size[i] * size[k + 1] * size[j + 1];
        if (cost < least[i][j]) least[i][j] = cost, split[i][j] = k;
      }
    }
  std::vector<Contraction> contractions;
  const auto multiply = [&](auto&& self, std::size_t i, std::size_t j) -> std::size_t {
    if (i == j) return i;
    const std::size_t k = split[i][j];
    Contraction product;
    product.left.number = self(self, i, k);
    product.right.number = self(self, k + 1, j);
    product.left.elements = static_cast<std::int64_t>(size[i] * size[k + 1]);
    product.right.elements = static_cast<std::int64_t>(size[k + 1] * size[j + 1]);
    product.result = static_cast<std::int64_t>(size[i] * size[j + 1]);
    product.flops = 2 * size[i] * size[k + 1] * size[j + 1];
    contractions.push_back(product);
    return count + contractions.size() - 1;
  };
  multiply(multiply, 0, count - 1);
  return contractions;
}

std::vector<Contraction> contractions_of(const Graph& graph, const Node& node) {
  std::vector<TensorType> operands;
  for (const ValueId v : inputs_of(node)) operands.push_back(graph.value(v).type);
  const Argument* equation = node.find("equation");
  if (equation == nullptr) return chain_contractions(operands);
  const auto* text = std::get_if<std::string>(&equation->value);
  const Argument* path = node.find("path");
  const auto* pairs = path ? std::get_if<std::vector<std::int64_t>>(&path->value) : nullptr;
  return text ? einsum_contractions(*text, operands, pairs ? *pairs : std::vector<std::int64_t>{})
              : std::vector<Contraction>{};
}

}  // namespace pfeife
