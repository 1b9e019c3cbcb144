// The captured operator graph of one microbatch's forward pass and loss, static (batch size bound),
// executable.
//
// Nodes are in order of execution. What operators mean (aliasing, FLOPs, what they save) is not
// here but in planner/cost/operators/operators.h; how a graph is read from a .pt2 archive in
// planner/io/model/pt2_reader.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

enum class DType {
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  Float32,
  Float64,
  Complex32,
  Complex64,
  Complex128,
  Bool,
  BFloat16,
  UInt16,
  Float8E4M3,
  Float8E5M2,
};
/// Size of one element.
Bytes element_size(DType dtype);
/// True for the types that carry gradients (floating and complex).
bool is_floating(DType dtype);
/// "float32", "int64", ... as PyTorch prints them without "torch.".
std::string to_string(DType dtype);

/// Shape and layout of a tensor; sizes and strides in elements.
struct TensorType {
  DType dtype = DType::Float32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t storage_offset = 0;

  std::int64_t elements() const;
  Bytes bytes() const;  ///< elements x element size
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

enum class ValueRole { Input, Parameter, Buffer, Constant, Intermediate };

/// A tensor of the graph.
struct Value {
  std::string name;
  ValueRole role = ValueRole::Intermediate;
  TensorType type;
  std::optional<NodeId> producer;        ///< for intermediates
  std::optional<ParameterId> parameter;  ///< for parameters: which distinct one
  bool requires_grad = false;  ///< propagated from trainable parameters through floating outputs
  bool persistent = true;      ///< buffers: part of the state dict
  std::string source_name;     ///< parameters, buffers, constants: the model's own (first) name
  std::optional<std::size_t>
      batch_dimension;  ///< inputs: where the samples are; none = every microbatch gets all of it

  friend bool operator==(const Value&, const Value&) = default;
};

/// A distinct parameter. Tied names (equal storage, offset, shape) are one parameter.
struct Parameter {
  std::vector<std::string> names;  ///< the model's own names, at least one
  ValueId value;                   ///< the value that stands for it in the graph
  TensorType type;
  bool trainable = true;

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

struct Layout {
  std::int64_t code = 0;
  friend bool operator==(Layout, Layout) = default;
};
struct MemoryFormat {
  std::int64_t code = 0;
  friend bool operator==(MemoryFormat, MemoryFormat) = default;
};
struct DeviceArgument {
  std::string type;
  friend bool operator==(const DeviceArgument&, const DeviceArgument&) = default;
};

/// The value of an operator's argument. monostate = None.
using ArgumentValue =
    std::variant<std::monostate, ValueId, std::vector<ValueId>, std::vector<std::optional<ValueId>>,
                 std::int64_t, std::vector<std::int64_t>, double, std::vector<double>, bool,
                 std::vector<bool>, std::string, std::vector<std::string>, DType, Layout,
                 MemoryFormat, DeviceArgument>;

/// A named argument, as the operator's schema names it. Arguments left at their default are absent.
struct Argument {
  std::string name;
  ArgumentValue value;
  friend bool operator==(const Argument&, const Argument&) = default;
};

/// One operator call.
struct Node {
  std::string name;
  std::string op;        ///< "aten::linear"
  std::string overload;  ///< "" = default
  std::vector<Argument> arguments;
  std::vector<ValueId> outputs;  ///< in order; a returned list is laid out flat
  bool returns_list = false;     ///< the operator returns one list of tensors rather than a tuple
  std::string module_path;       ///< "encoder.layer.3.mlp", "" = the model itself
  std::string module_class;      ///< class of that module, as captured

  const Argument* find(const std::string& argument) const;  ///< nullptr if left at its default
  friend bool operator==(const Node&, const Node&) = default;
};

/// Every value the node reads, in argument order, lists included; a value may occur twice.
std::vector<ValueId> inputs_of(const Node& node);

struct Graph {
  std::string name;
  std::int64_t microbatch_size = 1;  ///< samples, in each input's batch_dimension
  bool symbolic_batch = false;       ///< the archive left the batch size open
  std::vector<Value> values;
  std::vector<Node> nodes;  ///< in order of execution
  std::vector<Parameter> parameters;
  std::vector<ValueId> inputs;   ///< values of role Input, in the model's argument order
  std::vector<ValueId> outputs;  ///< the first floating scalar but loss_weight is the loss
  std::optional<ValueId>
      loss_weight;     ///< output by which a microbatch's loss counts; none: by its samples
  std::string digest;  ///< SHA-256 of the archive's bytes, hexadecimal

  const Value& value(ValueId id) const { return values[id.index()]; }
  const Node& node(NodeId id) const { return nodes[id.index()]; }
  friend bool operator==(const Graph&, const Graph&) = default;
};

/// Readable listing, a node a line: "%y : float32[2, 8] = aten::linear(input=%x, weight=%w)  #
/// layers.0".
std::string to_string(const Graph& graph);

}  // namespace pfeife
