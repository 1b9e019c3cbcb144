#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "planner/io/files/json_fields.h"
#include "planner/io/model/pt2_parts.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/gradient_flow.h"

namespace pfeife {
namespace {

using json_fields::field;
using json_fields::Json;
using json_fields::Malformed;
using json_fields::tagged;
using json_fields::text;

constexpr std::int64_t kSchemaMajor = 8;
constexpr std::size_t kMostArguments = 1000;
constexpr const char* kPlainExport =
    "; export with torch.export.export alone (no run_decompositions), on a module whose forward "
    "changes no input";

class GraphBuilder {
 public:
  GraphBuilder(const Json& program, const Json& weights, const Json& facts,
               std::optional<std::int64_t> size)
      : program_(program),
        facts_(facts),
        module_(field(program, "graph_module")),
        serialized_(field(module_, "graph")),
        tensor_values_(json_fields::object(field(serialized_, "tensor_values"))),
        places_(weights) {
    names_.sizes = json_fields::optional_field(serialized_, "sym_int_values");
    names_.batch = BatchSymbol(size);
    requested_size_ = size;
  }

  Graph build() {
    check_schema();
    for (const Json& spec : json_fields::array(field(signature(), "input_specs"))) add_input(spec);
    for (const Json& node : json_fields::array(field(serialized_, "nodes"))) add_node(node);
    add_outputs();
    propagate_requires_grad(graph_);
    settle_microbatch_size();
    return std::move(graph_);
  }

 private:
  const Json& signature() const { return field(module_, "signature"); }

  void check_schema() const {
    const std::int64_t major =
        json_fields::integer(field(field(program_, "schema_version"), "major"));
    if (major != kSchemaMajor)
      throw Malformed(stream_all("schema version ", major, ", only ", kSchemaMajor,
                                 " is understood; export with torch 2.11"));
  }

  // A new value under its name; names are unique.
  ValueId add_value(Value value) {
    const ValueId id{graph_.values.size()};
    if (!names_.values.emplace(value.name, id).second)
      throw Malformed("two values are named '" + value.name + "'");
    graph_.values.push_back(std::move(value));
    return id;
  }

  Value described(const std::string& name, ValueRole role) {
    const Json* meta = json_fields::optional_field(tensor_values_, name.c_str());
    if (meta == nullptr) throw Malformed("tensor '" + name + "' has no entry in tensor_values");
    try {
      Value value;
      value.name = name;
      value.role = role;
      value.type = read_tensor_type(*meta, names_.batch);
      value.requires_grad = json_fields::truth(field(*meta, "requires_grad"));
      return value;
    } catch (const Malformed& error) {
      throw Malformed("tensor '" + name + "': " + error.what());
    }
  }

  void add_input(const Json& spec) {
    const auto [kind, content] = tagged(spec);
    if (kind == "constant_input") return;  // a number that the graph already holds
    if (kind == "user_input") {
      const auto [tag, argument] = tagged(field(content, "arg"));
      if (tag == "as_tensor") {
        const std::string& name = text(field(argument, "name"));
        Value value = described(name, ValueRole::Input);
        value.batch_dimension =
            open_batch_dimension(value, field(field(tensor_values_, name.c_str()), "sizes"));
        graph_.inputs.push_back(add_value(std::move(value)));
      } else if (tag == "as_sym_int") {
        throw Malformed(
            "an input is an open integer; export the model with tensors as inputs only");
      }
      return;
    }
    if (kind != "parameter" && kind != "buffer" && kind != "tensor_constant")
      throw Malformed("inputs of kind '" + kind + "' are not understood" + kPlainExport);
    const std::string& name = text(field(field(content, "arg"), "name"));
    if (kind == "parameter") return add_parameter(name, text(field(content, "parameter_name")));
    Value value = described(name, kind == "buffer" ? ValueRole::Buffer : ValueRole::Constant);
    value.source_name =
        text(field(content, kind == "buffer" ? "buffer_name" : "tensor_constant_name"));
    value.persistent = kind == "buffer" && json_fields::truth(field(content, "persistent"));
    add_value(std::move(value));
  }

  // Tied names become one parameter and one value; the other placeholders are further names of that
  // value.
  void add_parameter(const std::string& placeholder, const std::string& name) {
    const ParameterId fresh{graph_.parameters.size()};
    const auto [known, is_new] = parameter_at_.emplace(places_.at(name), fresh);
    if (!is_new) {
      Parameter& parameter = graph_.parameters[known->second.index()];
      parameter.names.push_back(name);
      if (!names_.values.emplace(placeholder, parameter.value).second)
        throw Malformed("two values are named '" + placeholder + "'");
      return;
    }
    Value value = described(placeholder, ValueRole::Parameter);
    value.parameter = fresh;
    value.source_name = name;
    Parameter parameter{{name}, {}, value.type, value.requires_grad};
    parameter.value = add_value(std::move(value));
    graph_.parameters.push_back(std::move(parameter));
  }

  static std::string name_of(const Json& node) {
    const Json* name = json_fields::optional_field(node, "name");
    return name != nullptr && name->is_string() ? name->get<std::string>() : "";
  }

  void add_node(const Json& node) {
    try {
      add_call(node);
    } catch (const Malformed& error) {
      const std::string name = name_of(node);
      throw Malformed("node " +
                      (name.empty() ? std::to_string(graph_.nodes.size()) : "'" + name + "'") +
                      ": " + error.what());
    }
  }

  // Sizes are bound, so what computes or checks them is not needed.
  static bool only_about_sizes(const std::string& target, const Json& outputs) {
    if (target.starts_with("torch.ops.aten._assert_tensor_metadata") ||
        target.starts_with("torch.ops.aten._assert_scalar"))
      return true;
    if (outputs.empty()) return false;
    for (const Json& output : outputs) {
      const auto [tag, value] = tagged(output);
      if (tag != "as_sym_int" && tag != "as_sym_bool") return false;
    }
    return target.starts_with("torch.ops.aten.sym_size") || target.starts_with("_operator.");
  }

  void add_call(const Json& serialized) {
    const std::string& target = text(field(serialized, "target"));
    const Json& outputs = json_fields::array(field(serialized, "outputs"));
    if (only_about_sizes(target, outputs)) return;
    Node node;
    node.name = name_of(serialized);
    set_operator(node, target);
    set_module(node, serialized);
    for (const Json& input : json_fields::array(field(serialized, "inputs"))) {
      const std::string& name = text(field(input, "name"));
      if (node.arguments.size() == kMostArguments) throw Malformed("more than 1000 arguments");
      if (node.find(name) != nullptr) throw Malformed("argument '" + name + "' is given twice");
      try {
        node.arguments.push_back({name, read_argument(field(input, "arg"), names_)});
      } catch (const Malformed& error) {
        throw Malformed(target + ", argument '" + name + "': " + error.what());
      }
    }
    add_results(node, outputs);
    if (node.name.empty() && !node.outputs.empty()) node.name = graph_.value(node.outputs[0]).name;
    graph_.nodes.push_back(std::move(node));
  }

  // "torch.ops.aten.add.Tensor" -> "aten::add", "Tensor".
  static void set_operator(Node& node, const std::string& target) {
    if (target == "torch.ops.higher_order.wrap_with_set_grad_enabled")
      throw Malformed(
          "a torch.no_grad block is a graph of its own; export with "
          "configs/models/export_models.py --module, which makes plain operators of it");
    if (target == "torch.ops.higher_order.wrap_with_autocast")
      throw Malformed(
          "a torch.autocast block; export without it and set training.precision of the experiment "
          "(bf16_amp, fp16_amp)");
    if (target.starts_with("torch.ops.higher_order."))
      throw Malformed("'" + target.substr(0, 100) +
                      "' contains graphs of its own; write the model without control flow "
                      "that depends on values of tensors (torch.cond, while_loop, ...)");
    const std::string_view prefix = "torch.ops.";
    const std::size_t dot = target.find('.', prefix.size());
    const std::size_t last = dot == std::string::npos ? dot : target.find('.', dot + 1);
    if (!target.starts_with(prefix) || last == std::string::npos ||
        target.find('.', last + 1) != std::string::npos)
      throw Malformed("target '" + target.substr(0, 100) +
                      "' is not an operator (torch.ops.NAMESPACE.NAME.OVERLOAD)");
    node.op = target.substr(prefix.size(), dot - prefix.size()) +
              "::" + target.substr(dot + 1, last - dot - 1);
    node.overload = target.substr(last + 1);
    if (node.overload == "default") node.overload.clear();
  }

  // Last entry of "key,module.path,class;key,module.path,class". A second call of a module is
  // called "path@1".
  static void set_module(Node& node, const Json& serialized) {
    const Json* metadata = json_fields::optional_field(serialized, "metadata");
    const Json* stack =
        metadata ? json_fields::optional_field(*metadata, "nn_module_stack") : nullptr;
    if (stack == nullptr) return;
    std::string_view entry = text(*stack);
    if (const std::size_t semicolon = entry.rfind(';'); semicolon != std::string::npos)
      entry.remove_prefix(semicolon + 1);
    const std::size_t first = entry.find(',');
    const std::size_t second = first == std::string::npos ? first : entry.find(',', first + 1);
    if (second == std::string::npos) return;
    const std::string_view path = entry.substr(first + 1, second - first - 1);
    if (path.starts_with("_empty_nn_module_stack")) return;
    node.module_path = path.substr(0, path.find('@'));
    node.module_class = entry.substr(second + 1);
  }

  void add_results(Node& node, const Json& outputs) {
    for (const Json& output : outputs) {
      const auto [tag, content] = tagged(output);
      if (tag == "as_tensor") {
        node.outputs.push_back(add_result(content));
      } else if (tag == "as_tensors" && outputs.size() == 1) {
        node.returns_list = true;
        for (const Json& item : json_fields::array(content))
          node.outputs.push_back(add_result(item));
      } else if (tag != "as_none" || outputs.size() != 1) {
        throw Malformed("results of kind " + tag +
                        " are not understood; its value would steer the graph, write this part "
                        "of the model without it");
      }
    }
  }

  ValueId add_result(const Json& argument) {
    Value value = described(text(field(argument, "name")), ValueRole::Intermediate);
    value.producer = NodeId{graph_.nodes.size()};
    return add_value(std::move(value));
  }

  void add_outputs() {
    bool has_loss = false;
    const Json& specs = json_fields::array(field(signature(), "output_specs"));
    const std::int64_t weight = loss_weight_among(specs.size());
    for (std::int64_t position = 0; const Json& spec : specs) {
      const bool is_weight = position++ == weight;
      const auto [kind, content] = tagged(spec);
      if (kind != "user_output" && kind != "loss_output")
        throw Malformed("outputs of kind '" + kind + "' are not understood" + kPlainExport);
      const Json& arg = field(content, "arg");
      const bool bare = kind == "loss_output";
      if (!bare && tagged(arg).first != "as_tensor") {  // a constant
        if (is_weight) refuse_weight("is a constant");
        continue;
      }
      graph_.outputs.push_back(names_.tensor(bare ? arg : tagged(arg).second));
      const Value& value = graph_.value(graph_.outputs.back());
      if (is_weight && (value.type.elements() != 1 || !value.producer))
        refuse_weight("'" + value.name + "' is not one number computed from the inputs");
      if (is_weight)
        graph_.loss_weight = graph_.outputs.back();
      else
        has_loss |= is_floating(value.type.dtype) && value.type.sizes.empty();
    }
    if (!has_loss)
      throw Malformed(
          "no output is a floating-point scalar; the exported module must return its loss");
  }

  /// Position of the output that is the loss's weight; -1 if the archive names none.
  std::int64_t loss_weight_among(std::size_t outputs) const {
    const Json* position_field = json_fields::optional_field(facts_, "loss_weight");
    if (position_field == nullptr) return -1;
    const std::int64_t position = json_fields::integer(*position_field);
    if (position < 0 || position >= static_cast<std::int64_t>(outputs))
      refuse_weight(stream_all("is output ", position, ", the model has ", outputs));
    return position;
  }
  [[noreturn]] static void refuse_weight(const std::string& why) {
    throw Malformed("the loss's weight " + why +
                    "; return it from forward as a scalar tensor, such as (labels != -100).sum()");
  }

  void settle_microbatch_size() {
    graph_.symbolic_batch = names_.batch.found();
    if (graph_.symbolic_batch) {
      graph_.microbatch_size = *names_.batch.size();
      return;
    }
    settle_fixed_batch(graph_, facts_);
    if (requested_size_ && *requested_size_ != graph_.microbatch_size)
      throw Malformed(stream_all(
          "the graph holds for ", graph_.microbatch_size, " samples only, but microbatch_size is ",
          *requested_size_, "; ask for ", graph_.microbatch_size,
          " or export again with an open batch size (export_models.py without --microbatch)"));
  }

  const Json& program_;
  const Json& facts_;
  const Json& module_;
  const Json& serialized_;
  const Json& tensor_values_;
  ParameterPlaces places_;
  Pt2Names names_;
  std::optional<std::int64_t> requested_size_;
  std::map<std::string, ParameterId> parameter_at_;
  Graph graph_;
};

}  // namespace

Graph build_pt2_graph(const Json& program, const Json& weights, const Json& facts,
                      std::optional<std::int64_t> microbatch_size) {
  return GraphBuilder(program, weights, facts, microbatch_size).build();
}

}  // namespace pfeife
