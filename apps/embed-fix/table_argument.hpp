// The table that a command looks at: a checkpoint, its names, and the tensor.
#pragma once

#include <optional>
#include <string>

#include "cli/session.hpp"
#include "store/quantized/decoded_checkpoint.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::embed_fix {

/// An opened table. Not movable: `table` points into `checkpoint`.
struct TableArgument {
  TableArgument(const std::string& path, const std::optional<std::string>& tensor,
                cli::Session& session)
      : checkpoint(store::open_decoded(path)),
        config(store::find_config(checkpoint)),
        names(surgery::TokenNames::of(checkpoint)),
        table(surgery::find_embedding_table(checkpoint, config, tensor)) {
    if (checkpoint.has_adapter()) session.note(store::kAdapterNote);
  }
  TableArgument(const TableArgument&) = delete;
  TableArgument& operator=(const TableArgument&) = delete;

  const store::TensorInfo& input() const { return *table.input; }

  store::Checkpoint checkpoint;
  std::optional<store::ModelConfig> config;
  surgery::TokenNames names;
  surgery::EmbeddingTable table;
};

}  // namespace masque::embed_fix
