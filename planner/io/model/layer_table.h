// Layer tables: a model as a CSV file, a row a layer in order of execution, with its times and
// bytes.
//
//   name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes,
//   weight_saved_bytes,temporary_bytes[,optimizer_ms][,output_ms][,words]
//
// Columns may stand in any order. `backward_ms` may replace the two; it is split in halves. A cut
// after row i sends its output forward and as much gradient back; messages of no bytes are waited
// for, too. A second file lists skips, `value,from,to,bytes` by row names: a value of row `from`
// that later rows read; rows of the same value name further readers. Times hold for every device
// kind. `words` says `output` of the last layer, and `input` of the first, if ranks may divide their
// words: Layers::words then names them, and nothing else of them.
#pragma once

#include <filesystem>
#include <optional>

#include "planner/io/files/text_file.h"
#include "planner/io/model/import_options.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// Layers of the table at `table`, with the skips at `skips` if there are any. ConfigError with
/// file, line and column for unknown or missing columns, names that occur twice or nowhere, numbers
/// that are negative or none, and skips that point backwards.
Layers read_layer_table(const std::filesystem::path& table,
                        const std::optional<std::filesystem::path>& skips,
                        const ImportOptions& options = {});

/// The same from text at hand.
Layers layers_of_table(const TextFile& table, const std::optional<TextFile>& skips,
                       const ImportOptions& options = {});

}  // namespace pfeife
