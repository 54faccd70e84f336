// The table that a command looks at: a checkpoint, its names, and the tensor.
#pragma once

#include <optional>
#include <string>

#include "store/tensorflow/tf_plan.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/vocabulary/token_names.hpp"

namespace masque::embed_fix {

/// An opened table. Not movable: `table` points into `checkpoint`.
struct TableArgument {
  TableArgument(const std::string& path, const std::optional<std::string>& tensor)
      : checkpoint(open_checkpoint(path)),
        config(find_config(checkpoint)),
        names(TokenNames::of(checkpoint)),
        table(find_embedding_table(checkpoint, config, tensor)) {}
  TableArgument(const TableArgument&) = delete;
  TableArgument& operator=(const TableArgument&) = delete;

  const TensorInfo& input() const { return *table.input; }

  Checkpoint checkpoint;
  std::optional<ModelConfig> config;
  TokenNames names;
  EmbeddingTable table;
};

}  // namespace masque::embed_fix
