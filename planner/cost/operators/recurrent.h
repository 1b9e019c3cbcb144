// Sizes of recurrent operators: lstm, gru, rnn_tanh, rnn_relu, and their cells.
#pragma once

#include <vector>

#include "planner/ir/model/graph.h"

namespace pfeife {

struct RecurrentShape {
  /// One direction of one layer.
  struct Cell {
    ValueId from_input;  ///< its weight [gates x width, inputs]
    std::vector<ValueId>
        every_step;  ///< [gates x width, hidden], and the projection if there is one
    std::int64_t width = 0;
    bool reads_input = false;  ///< of the first layer
  };
  std::int64_t rows = 0;   ///< steps x samples
  std::int64_t steps = 1;  ///< products that wait for one another
  std::int64_t gates = 1;  ///< 4 of an LSTM, 3 of a GRU
  std::int64_t directions = 1;
  std::vector<Cell> cells;
};

/// No cells if the node names no weights.
RecurrentShape recurrent_shape(const Graph& graph, const Node& node);

}  // namespace pfeife
