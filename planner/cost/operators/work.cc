#include "planner/cost/operators/work.h"

#include <algorithm>
#include <cmath>

#include "planner/cost/operators/contraction.h"
#include "planner/cost/operators/recurrent.h"
#include "planner/ir/model/architecture.h"
#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

/// Keys of 32 bits, a byte at a time.
constexpr int kSortPasses = 4;

/// Kernels of one node.
class NodeKernels {
 public:
  NodeKernels(const GraphFacts& facts, const SavedMemory& saved, DeviceType device,
              const std::vector<NodeId>& last_reader, NodeId n)
      : facts_(facts),
        saved_(saved),
        device_(device),
        last_reader_(last_reader),
        n_(n),
        node_(facts.node(n)),
        row_(facts.traits[n.index()]),
        back_(facts.gives_gradient(n)) {}

  /// By what the user says of the operator.
  std::vector<Kernel> list(const OperatorCost& cost) {
    const Flops flops{formula_value(cost.flops, facts_.graph, node_)};
    const Bytes bytes = cost.bytes == "io"
                            ? facts_.input_bytes(n_) + out()
                            : Bytes{std::llround(formula_value(cost.bytes, facts_.graph, node_))};
    const ValueId first = first_tensor(node_);
    const DType type = first == kNoValue ? DType::Float32 : product_type(first);
    multiply(Pass::Forward, flops, bytes, type);
    for (const ValueId v : facts_.distinct_inputs(n_)) {
      if (!needs(v)) continue;
      multiply(Pass::BackwardInput, flops, bytes, type);
      accumulate(v);
    }
    list_gradient_sums();
    return std::move(kernels_);
  }

  std::vector<Kernel> list() {
    if (node_.outputs.empty()) return {};
    switch (row_ ? row_->work : OperatorWork::Stream) {
      case OperatorWork::None:
        list_gradients();
        break;
      case OperatorWork::Create:
        move(Pass::Forward, out());
        break;
      case OperatorWork::Stream:
        list_stream();
        break;
      case OperatorWork::LayerNorm:
        list_layer_norm();
        break;
      case OperatorWork::ChannelNorm:
        list_channel_norm();
        break;
      case OperatorWork::Lookup:
        list_lookup();
        break;
      case OperatorWork::Bag:
        list_bag();
        break;
      case OperatorWork::Sort:
        for (int pass = 0; pass < kSortPasses; ++pass)
          move(Pass::Forward, facts_.input_bytes(n_) + out());
        list_gradients();
        break;
      case OperatorWork::Fourier:
        list_fourier();
        break;
      case OperatorWork::Product:
      case OperatorWork::GroupedProduct:
      case OperatorWork::OtherProduct:
        list_product();
        break;
      case OperatorWork::Einsum:
        list_einsum();
        break;
      case OperatorWork::Convolution:
      case OperatorWork::OtherConvolution:
        list_convolution();
        break;
      case OperatorWork::Recurrent:
        list_recurrent();
        break;
      case OperatorWork::Attention:
        attention_by_parts(node_, device_) ? list_attention_parts() : list_attention();
        break;
      case OperatorWork::StateSpace:
        list_state_space();
        break;
    }
    list_operand_copies();
    list_gradient_sums();
    return std::move(kernels_);
  }

 private:
  // ---- bookkeeping ----
  void move(Pass pass, Bytes bytes) { kernels_.push_back({pass, {}, bytes, 1, DType::Float32}); }
  void multiply(Pass pass, Flops flops, Bytes bytes, DType type, std::int64_t times = 1,
                double share = 1) {
    kernels_.push_back({pass, flops, bytes, share, type, times});
  }
  bool needs(ValueId v) const { return back_ && facts_.needs_gradient(v); }
  Bytes out() const { return facts_.output_bytes(n_); }
  Bytes saved_bytes() const { return saved_.node_bytes[n_.index()]; }
  Pass pass_of(ValueId v) const {
    return deferred_to_weight(facts_, n_, v) ? Pass::BackwardWeight : Pass::BackwardInput;
  }
  /// Adds the gradient of a parameter to the sum over the microbatches.
  void accumulate(ValueId v) {
    if (facts_.graph.value(v).role == ValueRole::Parameter) move(pass_of(v), 3 * facts_.bytes(v));
  }
  DType product_type(ValueId v) const {
    return facts_.cast_type(n_, v).value_or(facts_.types[v.index()]);
  }
  /// Bytes of an operand as the operator reads it, casts done.
  Bytes operand(ValueId v) const {
    return facts_.type(v).elements() * element_size(product_type(v));
  }

  // ---- element-wise and the like ----
  void list_stream() {
    const bool works = row_ == nullptr || row_->memory == Memory::InPlace || !facts_.is_view(n_);
    const bool loss = row_ && row_->keeps == Keeps::LogSoftmax;
    if (works) move(Pass::Forward, facts_.input_bytes(n_) + out() + saved_bytes());
    if (works && loss) move(Pass::Forward, out());                // the labels' terms
    if (loss && back_) move(Pass::BackwardInput, saved_bytes());  // zeros, and the labels' places
    list_gradients();
  }

  void list_gradients() {
    if (!back_) return;
    for (const ValueId v : facts_.distinct_inputs(n_)) {
      if (!needs(v)) continue;
      const Gradient rule = row_ == nullptr                                      ? Gradient::Uses
                            : facts_.is_view(n_) && row_->memory != Memory::View ? Gradient::Passes
                                                                                 : row_->gradient;
      list_gradient(v, rule);
    }
  }

  void list_gradient(ValueId v, Gradient rule) {
    if (rule == Gradient::None) return;
    const Bytes gradient = facts_.bytes(v), incoming = out();
    const bool broadcast = broadcasts(v);
    const Bytes full = broadcast ? incoming : gradient;
    if (rule == Gradient::Copies) move(Pass::BackwardInput, incoming + full);
    if (rule == Gradient::Uses) move(Pass::BackwardInput, incoming + kept_for(v) + full);
    if (rule == Gradient::Fills) {
      move(Pass::BackwardInput, gradient);
      move(Pass::BackwardInput, 2 * incoming);
    }
    if (broadcast) move(Pass::BackwardInput, incoming + gradient);
    accumulate(v);
  }
  /// True if operand `v` was repeated to the size of the (only) result.
  bool broadcasts(ValueId v) const {
    if (node_.outputs.size() != 1 || row_ == nullptr) return false;
    const bool widens = row_->autocast == Autocast::Widest || row_->memory == Memory::View ||
                        row_->memory == Memory::InPlace;
    const bool joins = node_.arguments.size() > 0 &&
                       std::holds_alternative<std::vector<ValueId>>(node_.arguments[0].value);
    return widens && !joins && row_->gradient != Gradient::Fills &&
           facts_.type(v).elements() < facts_.type(node_.outputs[0]).elements();
  }
  /// Bytes of what was kept that the gradient of operand `v` reads.
  Bytes kept_for(ValueId v) const {
    if (row_ == nullptr) return facts_.input_bytes(n_);
    switch (row_->keeps) {
      case Keeps::Nothing:
      case Keeps::Indices:
      case Keeps::OutputIndices:
        return Bytes{0};
      case Keeps::OtherOperand:
      case Keeps::Divisor:
        return factor_beside(v);
      case Keeps::Mask:
      case Keeps::Difference:
        return saved_bytes();
      case Keeps::LogSoftmax:
        return 2 * saved_bytes();  // and the gradient of the log-softmax
      case Keeps::InputAndIndices:
        return saved_bytes() + facts_.bytes(v);  // and the zeros that the rest of the operand gets
      case Keeps::Condition:
        return condition();
      case Keeps::BothInputs:
      case Keeps::Extremum:
        return facts_.input_bytes(n_);
      case Keeps::Everything:
        return facts_.input_bytes(n_) + out();
      case Keeps::IndicesAndSource:
        return Bytes{0};
      case Keeps::InputAndOutput:
        return facts_.read_bytes(first_tensor(node_)) + out();
      case Keeps::Output:
        return out();
      default:
        return facts_.read_bytes(first_tensor(node_));
    }
  }
  Bytes factor_beside(ValueId v) const {
    const ValueId self = tensor_argument(node_, "self"), other = tensor_argument(node_, "other");
    const ValueId beside = v == self ? other : self;
    return beside == kNoValue ? Bytes{0} : facts_.read_bytes(beside);
  }
  Bytes condition() const {
    for (const char* name : {"condition", "mask"})
      if (const ValueId v = tensor_argument(node_, name); v != kNoValue)
        return facts_.read_bytes(v);
    return Bytes{0};
  }

  // ---- norms ----
  /// Rows stay in the cores: one read, one write. Backward: dI in one kernel, the parameters' in
  /// another, both read gradient and input.
  void list_layer_norm() {
    const ValueId input = first_tensor(node_), weight = tensor_argument(node_, "weight");
    const Bytes size = operand(input);
    move(Pass::Forward, size + out());
    if (!back_) return;
    if (needs(input)) move(Pass::BackwardInput, 2 * size + out());
    if (needs(weight)) move(Pass::BackwardInput, size + out());
    list_norm_parameters();
  }
  /// Sums over a whole channel or group first, forward and backward; the sums give the parameters'
  /// gradients.
  void list_channel_norm() {
    const ValueId input = first_tensor(node_);
    const Bytes size = operand(input);
    move(Pass::Forward, size);
    move(Pass::Forward, size + out());
    if (!back_) return;
    move(Pass::BackwardInput, size + out());
    if (needs(input)) move(Pass::BackwardInput, 2 * size + out());
    list_norm_parameters();
  }
  void list_norm_parameters() {
    for (const char* name : {"weight", "bias"})
      if (const ValueId v = tensor_argument(node_, name); needs(v)) accumulate(v);
  }

  // ---- look-ups ----
  void list_lookup() {
    const ValueId table = first_tensor(node_);
    Bytes indices;
    for (const ValueId v : facts_.distinct_inputs(n_))
      if (v != table) indices += facts_.read_bytes(v);
    move(Pass::Forward, 2 * out() + indices);
    if (!needs(table)) return;
    // A dense gradient: zeros of the table's size, then the rows added to it.
    move(pass_of(table), facts_.bytes(table));
    move(pass_of(table), 3 * out() + indices);
    accumulate(table);
  }

  /// The rows are read, added up and written as one; their gradients are as for a look-up.
  void list_bag() {
    const ValueId table = tensor_argument(node_, "weight");
    if (table == kNoValue) return list_stream();
    Bytes indices, rows;
    for (const ValueId v : facts_.distinct_inputs(n_)) {
      if (v == table) continue;
      indices += facts_.read_bytes(v);
      if (v == tensor_argument(node_, "indices"))
        rows = facts_.type(v).elements() * extent_from_back(facts_.type(table), 1) *
               element_size(facts_.types[table.index()]);
    }
    const Bytes result = facts_.bytes(node_.outputs.front());
    move(Pass::Forward, rows + indices + result);
    if (!needs(table)) return;
    move(Pass::BackwardInput, facts_.bytes(table));
    move(Pass::BackwardInput, 2 * rows + result + indices);
    accumulate(table);
  }

  // ---- transforms ----
  /// 5 log2(length) FLOPs an element are less than what its bytes take on any device here.
  void list_fourier() {
    std::size_t dimensions = 1;
    if (node_.op.ends_with("fft2")) dimensions = 2;
    if (node_.op.ends_with("fftn")) dimensions = facts_.type(node_.outputs.front()).sizes.size();
    if (const Argument* dim = node_.find("dim"))
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&dim->value))
        dimensions = list->size();
    for (std::size_t d = 0; d < dimensions; ++d) {
      move(Pass::Forward, facts_.input_bytes(n_) + out());
      for (const ValueId v : facts_.distinct_inputs(n_))
        if (needs(v)) move(Pass::BackwardInput, out() + facts_.bytes(v));
    }
  }

  // ---- products ----
  void list_product() {
    const auto [left, right, bias] = factors_of(node_);
    const double inner = summed(left);
    list_factors(left, right, bias, inner, 1, forward_product(right, inner));
  }
  /// None where the factors are no matrices, or stacks of them.
  ProductShape forward_product(ValueId right, double inner) const {
    const bool grouped = row_->work == OperatorWork::GroupedProduct;
    if (row_->work != OperatorWork::Product && !grouped) return {};
    const TensorType &by = facts_.type(right), &result = facts_.type(node_.outputs.front());
    const auto k = static_cast<std::int64_t>(inner);
    const std::int64_t matrix =
        by.sizes.size() < 2 ? by.elements() : extent_from_back(by, 1) * extent_from_back(by, 2);
    if (k <= 0 || matrix <= 0 || result.elements() <= 0) return {};
    ProductShape shape{.pass = ProductPass::Forward, .groups = by.elements() / matrix};
    shape.n = matrix / k, shape.k = k;
    if (shape.n == 0 || shape.n * k != matrix) return {};
    const std::int64_t columns = shape.groups * shape.n;
    shape.m = (result.elements() + columns - 1) / columns;  // rows of a group, on average
    return grouped || shape.m * columns == result.elements() ? shape : ProductShape{};
  }
  /// The product that makes the gradient of a factor: its left one, or its right one.
  static ProductShape gradient_product(const ProductShape& forward, bool left) {
    const auto [op, pass, groups, m, n, k] = forward;
    if (left) return {op, ProductPass::Input, groups, m, k, n};
    return {op, ProductPass::Weight, groups, n, k, m};
  }
  /// Terms of the sum that makes one element of the result.
  double summed(ValueId left) const {
    const TensorType& by = facts_.type(left);
    const auto last = static_cast<double>(extent_from_back(by, 1));
    if (node_.op == "aten::addbmm") return last * static_cast<double>(extent_from_back(by, 3));
    if (const ValueId second = tensor_argument(node_, "input2"); second != kNoValue)  // bilinear
      return last * static_cast<double>(extent_from_back(facts_.type(second), 1));
    if (node_.op == "aten::_grouped_mm") return last / groups_summed(by);
    if (node_.op != "aten::tensordot") return last;
    double product = 1;
    if (const Argument* dims = node_.find("dims_self"))
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&dims->value))
        for (std::int64_t d : *list) {
          const auto count = static_cast<std::int64_t>(by.sizes.size());
          if (d < 0) d += count;
          if (d >= 0 && d < count)
            product *= static_cast<double>(by.sizes[static_cast<std::size_t>(d)]);
        }
    return product;
  }
  /// Two matrices make one result a group where the summed dimension is what is grouped.
  double groups_summed(const TensorType& left) const {
    const TensorType& result = facts_.type(node_.outputs.front());
    return left.sizes.size() == 2 && result.sizes.size() == 3
               ? static_cast<double>(std::max<std::int64_t>(result.sizes[0], 1))
               : 1;
  }
  void list_convolution() {
    const auto [left, right, bias] = factors_of(node_);
    double window = 1;
    for (std::size_t d = 1; d < facts_.type(right).sizes.size(); ++d)
      window *= static_cast<double>(facts_.type(right).sizes[d]);
    if (transposed()) {  // each element of the input is multiplied by the window
      const auto in = static_cast<double>(facts_.type(left).elements());
      window *= in / static_cast<double>(
                         std::max<std::int64_t>(facts_.type(node_.outputs.front()).elements(), 1));
    }
    list_factors(left, right, bias, window, kConvolutionShare);
  }
  bool transposed() const {
    return node_.op.find("conv_transpose") != std::string::npos ||
           flag_argument(node_, "transposed", false);
  }
  /// A product, or as many kernels as the node says: some run at a time, and are as efficient as
  /// one of their size; each is launched by itself.
  void list_one_product(Pass pass, Flops flops, Bytes moved, DType type, double share,
                        const ProductShape& product) {
    const auto kernels = static_cast<std::int64_t>(number_argument(node_, "kernels", 1));
    const std::int64_t times = (kernels + kExpertStreams - 1) / kExpertStreams;
    const double part = 1.0 / static_cast<double>(times);
    multiply(pass, part * flops, Bytes{moved.value / times}, type, times, share);
    if (kernels == 1) kernels_.back().product = product;
    if (kernels > times) multiply(pass, {}, {}, type, kernels - times);
  }
  /// Forward once, and once more for each factor that needs a gradient.
  void list_factors(ValueId left, ValueId right, ValueId bias, double inner, double share = 1,
                    const ProductShape& product = {}) {
    const double elements = static_cast<double>(facts_.type(node_.outputs.front()).elements());
    const Flops flops{2.0 * elements * inner};
    const Bytes moved = operand(left) + operand(right) + out();
    list_one_product(Pass::Forward, flops, moved, product_type(left), share, product);
    for (const ValueId v : {left, right, tensor_argument(node_, "input2")}) {
      if (!needs(v)) continue;
      list_one_product(pass_of(v), flops, moved, product_type(left), share,
                       gradient_product(product, v == left));
      const ProductShape gradient = kernels_.back().product;
      accumulate(v);
      if (facts_.is_parameter(v))
        kernels_.back().product = gradient, kernels_.back().type = product_type(left);
    }
    if (bias == kNoValue || !needs(bias)) return;
    move(pass_of(bias), out() + facts_.bytes(bias));  // the sum over the rows
    accumulate(bias);
  }

  // ---- einsum ----
  /// One product after the other; of each, one more for each factor that needs a gradient.
  void list_einsum() {
    const std::vector<ValueId> operands = inputs_of(node_);
    const std::vector<Contraction> products = contractions_of(facts_.graph, node_);
    if (products.empty()) {
      move(Pass::Forward, facts_.input_bytes(n_) + out());
      for (const ValueId v : operands)
        if (needs(v)) move(Pass::BackwardInput, out() + facts_.bytes(v));
      return;
    }
    const DType type = product_type(operands.front());
    std::vector<bool> needed;
    for (const ValueId v : operands) needed.push_back(needs(v));
    for (const Contraction& product : products) {
      const Bytes moved =
          (product.left.elements + product.right.elements + product.result) * element_size(type);
      multiply(Pass::Forward, Flops{product.flops}, moved, type);
      for (const Contraction::Factor& factor : {product.left, product.right}) {
        if (factor.copied)  // read, written
          move(Pass::Forward, 2 * factor.elements * element_size(type));
        if (!needed[factor.number]) continue;
        const bool own = factor.number >= operands.size();
        multiply(own ? Pass::BackwardInput : pass_of(operands[factor.number]), Flops{product.flops},
                 moved, type);
        if (!own) accumulate(operands[factor.number]);
      }
      needed.push_back(needed[product.left.number] || needed[product.right.number]);
    }
  }

  // ---- lstm, gru ----
  /// The input's product is one for all steps; the hidden state's is one a step, each with a kernel
  /// for the gates. Their weights' gradients are one product for all steps.
  void list_recurrent() {
    const RecurrentShape shape = recurrent_shape(facts_.graph, node_);
    ValueId input = tensor_argument(node_, "input");
    if (input == kNoValue) input = tensor_argument(node_, "data");
    const DType type = product_type(input);
    const bool state_needs = needs_state();
    for (const RecurrentShape::Cell& cell : shape.cells) {
      list_weight(cell.from_input, shape.rows, 1, !cell.reads_input || needs(input), type);
      for (std::size_t i = 0; i < cell.every_step.size(); ++i)
        list_weight(cell.every_step[i], shape.rows, shape.steps, i > 0 || state_needs, type);
      // The first state mostly needs no gradient; those that steps made do.
      if (back_ && !state_needs)
        list_states(cell.every_step.front(), shape.rows / shape.steps, shape.steps - 1, type);
      const Bytes step = shape.rows / shape.steps * cell.width * element_size(type);
      multiply(Pass::Forward, {}, (2 * shape.gates + 2) * step, type, shape.steps);
      if (back_) multiply(Pass::BackwardInput, {}, (2 * shape.gates + 4) * step, type, shape.steps);
    }
    for (const ValueId v : facts_.distinct_inputs(n_))
      if (needs(v)) accumulate(v);
  }
  bool needs_state() const {
    const Argument* hx = node_.find("hx");
    const auto* states = hx ? std::get_if<std::vector<ValueId>>(&hx->value) : nullptr;
    return states ? std::ranges::any_of(*states, [&](ValueId v) { return needs(v); })
                  : needs(tensor_argument(node_, "hx"));
  }
  void list_states(ValueId weight, std::int64_t rows, std::int64_t steps, DType type) {
    const TensorType& matrix = facts_.type(weight);
    const Flops flops{2.0 * static_cast<double>(rows) * static_cast<double>(matrix.elements())};
    const Bytes bytes =
        (matrix.elements() + rows * (matrix.sizes[0] + matrix.sizes[1])) * element_size(type);
    if (steps > 0) multiply(Pass::BackwardInput, flops, bytes, type, steps);
  }
  void list_weight(ValueId weight, std::int64_t rows, std::int64_t steps, bool input_needs,
                   DType type) {
    const TensorType& matrix = facts_.type(weight);
    const auto flops_of = [&](std::int64_t count) {
      return Flops{2.0 * static_cast<double>(count) * static_cast<double>(matrix.elements())};
    };
    const auto bytes_of = [&](std::int64_t count) {
      return (matrix.elements() + count * (matrix.sizes[0] + matrix.sizes[1])) * element_size(type);
    };
    const std::int64_t part = rows / steps;
    multiply(Pass::Forward, flops_of(part), bytes_of(part), type, steps);
    if (back_ && input_needs)
      multiply(Pass::BackwardInput, flops_of(part), bytes_of(part), type, steps);
    if (needs(weight)) multiply(Pass::BackwardInput, flops_of(rows), bytes_of(rows), type);
  }

  // ---- attention ----
  struct Scores {
    Flops flops;            // both products
    std::int64_t elements;  // of the matrix between them
    bool all;               // scores count, none is hidden by a window or by chunks
    bool masked;            // half of the FLOPs are of what a causal mask hides
    double side;            // of a square of as many scores: queries may be a part (cp)
  };
  Scores scores() const {
    const TensorType &q = facts_.type(tensor_argument(node_, "query")),
                     &k = facts_.type(tensor_argument(node_, "key")),
                     &v = facts_.type(tensor_argument(node_, "value"));
    const std::int64_t rows = q.elements() / extent_from_back(q, 1);
    const auto queries = static_cast<double>(extent_from_back(q, 2)),
               keys = static_cast<double>(extent_from_back(k, 2));
    const auto tokens = [&](const char* name) {
      return static_cast<std::int64_t>(number_argument(node_, name, 0));
    };
    const double counted =
        counted_scores({.window = tokens("window"), .chunk = tokens("chunk")}, queries, keys);
    const bool all = counted == queries * keys;
    const std::int64_t elements = std::llround(static_cast<double>(rows) / queries * counted);
    const auto depth = static_cast<double>(extent_from_back(q, 1) + extent_from_back(v, 1));
    return {{2.0 * static_cast<double>(elements) * depth},
            elements,
            all,
            all && flag_argument(node_, "is_causal", false),
            std::sqrt((all ? 1 : 2) * counted)};
  }
  /// One kernel each way. It passes over what a causal mask hides, half of the FLOPs, which count
  /// all the same; what a window or chunks hide counts none.
  void list_attention() {
    const Scores work = scores();
    const DType type = product_type(tensor_argument(node_, "query"));
    const double share = (work.masked ? 2 : 1) * kAttentionShare;
    Bytes operands;
    for (const ValueId v : facts_.distinct_inputs(n_)) operands += operand(v);
    const ProductShape shape = work.all ? attention_shape(work.masked) : ProductShape{};
    multiply(Pass::Forward, work.flops, operands + out(), type, 1, share);
    kernels_.back().sequence = work.side;
    kernels_.back().product = shape;
    if (!back_) return;
    multiply(Pass::BackwardInput, kAttentionBackward * work.flops, 2 * operands + 2 * out(), type,
             1, share);
    kernels_.back().sequence = work.side;
    kernels_.back().product = shape;
    kernels_.back().product.pass = ProductPass::Input;
    if (const ValueId sinks = tensor_argument(node_, "sinks"); needs(sinks)) accumulate(sinks);
  }
  ProductShape attention_shape(bool causal) const {
    const TensorType &q = facts_.type(tensor_argument(node_, "query")),
                     &k = facts_.type(tensor_argument(node_, "key")),
                     &v = facts_.type(tensor_argument(node_, "value"));
    const std::int64_t queries = extent_from_back(q, 2), size = extent_from_back(q, 1);
    if (queries * size == 0) return {};
    return {causal ? ProductOperator::CausalAttention : ProductOperator::Attention,
            ProductPass::Forward,
            q.elements() / (queries * size),
            queries,
            extent_from_back(k, 2),
            (size + extent_from_back(v, 1)) / 2};
  }
  /// Products and passes over the matrix of scores as separate kernels.
  void list_attention_parts() {
    const Scores all = scores();
    const Flops flops = all.flops;
    const std::int64_t elements = all.elements;
    const DType type = product_type(tensor_argument(node_, "query"));
    const Bytes matrix = elements * element_size(type);
    for (int product = 0; product < 2; ++product)
      multiply(Pass::Forward, 0.5 * flops, matrix + out(), type);
    for (const int passes : {2, 3, 3})  // softmax; dropout's mask; its product
      move(Pass::Forward, passes * matrix);
    if (!back_) return;
    for (int product = 0; product < 4; ++product)
      multiply(Pass::BackwardInput, 0.5 * flops, matrix + out(), type);
    for (const int passes : {3, 3}) move(Pass::BackwardInput, passes * matrix);
  }

  // ---- Mamba-2 ----
  /// The kernels of mamba_split_conv1d_scan_combined (github.com/state-spaces/mamba 2.2): a
  /// convolution; in chunks of Q tokens, for each group the products of C and B (Q x N x Q), for
  /// each head what a chunk adds to the state (N x Q x P), what its values give (Q x Q x P) and
  /// what the state gives (Q x N x P); states from chunk to chunk; gate and norm. Backward makes
  /// the convolution, C B and the states again. Products at the efficiency of fused attention.
  void list_state_space() {
    const auto number = [&](const char* name) { return number_argument(node_, name, 1); };
    const double heads = number("heads"), size = number("head_size"), groups = number("groups"),
                 state = number("state"), chunk = number("chunk");
    const TensorType& result = facts_.type(node_.outputs.front());
    const auto tokens =
        static_cast<double>(result.elements()) / static_cast<double>(extent_from_back(result, 1));
    const ValueId input = first_tensor(node_);
    const DType type = product_type(input);
    const double by_group = 2 * tokens * groups * chunk * state,
                 by_state = 2 * tokens * heads * state * size,
                 by_chunk = 2 * tokens * heads * chunk * size;
    const auto bytes = [](double elements, std::int64_t each) {
      return Bytes{std::llround(elements * static_cast<double>(each))};
    };
    const std::int64_t narrow = element_size(type).value, wide = 4;
    const Bytes values = bytes(tokens * heads * size, narrow),
                convolved = bytes(tokens * (heads * size + 2 * groups * state), narrow),
                products = bytes(tokens * groups * chunk, wide),
                states = bytes(tokens / chunk * heads * state * size, wide);
    const auto multiplied = [&](Pass pass, double flops, Bytes moved) {
      multiply(pass, Flops{flops}, moved, type, 1, kAttentionShare);
    };
    const auto make_states = [&](Pass pass) {
      move(pass, 2 * convolved);
      multiplied(pass, by_group, convolved - values + products);
      multiplied(pass, by_state, convolved + states);
      move(pass, 2 * states);
    };
    make_states(Pass::Forward);
    multiplied(Pass::Forward, by_chunk + by_state, products + convolved + states + values);
    move(Pass::Forward, 3 * values);
    if (!back_) return;
    const Pass back = Pass::BackwardInput;
    make_states(back);
    move(back, 5 * values);                                   // gate and norm
    multiplied(back, by_state, convolved + values + states);  // of the states
    move(back, 2 * states);
    multiplied(back, by_chunk + by_state, products + convolved + states + 2 * values);  // values
    multiplied(back, by_state, convolved + states);           // B by the states
    multiplied(back, by_state, convolved + values + states);  // C by the states
    multiplied(back, by_chunk, 2 * values + products);        // of the products of C and B
    multiplied(back, 2 * by_group, 2 * (convolved - values) + products);
    move(back, 3 * convolved);
    for (const ValueId v : facts_.distinct_inputs(n_))
      if (needs(v)) accumulate(v);
  }

  // ---- around the operator ----
  /// Casts and copies of operands; the gradient of a cast is cast back.
  void list_operand_copies() {
    for (const ValueId v : facts_.distinct_inputs(n_)) {
      const Bytes copy = facts_.operand_copy(n_, v);
      if (copy == Bytes{0}) continue;
      move(Pass::Forward, facts_.read_bytes(v) + copy);
      if (needs(v) && facts_.cast_type(n_, v)) move(pass_of(v), copy + facts_.bytes(v));
    }
  }
  void list_gradient_sums() {
    if (!back_) return;
    for (const ValueId v : facts_.distinct_inputs(n_))
      if (needs(v) && !facts_.is_parameter(v) && last_reader_[v.index()] != n_)
        move(Pass::BackwardInput, 3 * facts_.bytes(v));
  }

  const GraphFacts& facts_;
  const SavedMemory& saved_;
  DeviceType device_;
  const std::vector<NodeId>& last_reader_;
  NodeId n_;
  const Node& node_;
  const OperatorTraits* row_;
  bool back_;
  std::vector<Kernel> kernels_;
};

}  // namespace

KernelList::KernelList(const GraphFacts& facts, const SavedMemory& saved, DeviceType device,
                       std::span<const OperatorCost> costs)
    : facts_(facts), saved_(saved), device_(device), costs_(costs) {
  last_reader_.resize(facts.graph.values.size());
  for (const NodeId n : nodes_of(facts.graph)) {
    if (!facts.gives_gradient(n)) continue;
    for (const ValueId v : facts.inputs(n)) last_reader_[v.index()] = n;
  }
}

std::vector<Kernel> KernelList::at(NodeId n) const {
  NodeKernels kernels(facts_, saved_, device_, last_reader_, n);
  const auto cost = std::ranges::find(costs_, facts_.node(n).op, &OperatorCost::op);
  return cost == costs_.end() ? kernels.list() : kernels.list(*cost);
}

}  // namespace pfeife
