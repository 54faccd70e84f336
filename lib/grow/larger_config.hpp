// The larger sizes in config.json, under the names that the family has for them.
#pragma once

#include <span>

#include "grow/depth_rules.hpp"
#include "store/config.hpp"
#include "surgery/edit/checkpoint_edit.hpp"

namespace masque::grow {

/// Multiplies hidden size, intermediate size and heads by `factor` in the config.json of `edit`,
/// and in the pooling module of sentence-transformers; the embedding size too where it is the
/// hidden size. `config` is the folder's, `before` its design. Throws UsageError as wider_size,
/// InputError for a size that is no number.
void set_widths(surgery::CheckpointEdit& edit, const store::ModelConfig& config,
                const model::Design& before, double factor);

/// What set_layers() has to know of a model besides its design.
struct LayerSettings {
  bool has_decoder = false;  ///< the decoder keeps its number of layers
  /// The family reads layer_types: where its layers have windows by their index, a list says which.
  bool reads_layer_types = false;
};

/// Sets the number of layers in the config.json of `edit` to that of `copies`; lists with an item
/// for each layer follow. `config` is the folder's, `before` its design, `settings` what else
/// counts. Throws UsageError for a number that the config cannot say, and InputError for a config
/// without one or with a list of another length.
void set_layers(surgery::CheckpointEdit& edit, const store::ModelConfig& config,
                const model::Design& before, std::span<const LayerCopy> copies,
                const LayerSettings& settings);

}  // namespace masque::grow
