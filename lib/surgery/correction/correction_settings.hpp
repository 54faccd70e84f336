// What a correction will do, from the options, the marker, the tokenizer and the config.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/config.hpp"
#include "surgery/correction/correction_request.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::surgery {

/// Everything that mlm_map needs, settled.
struct CorrectionSettings {
  MlmCorrection correction;
  std::vector<double> weights;  ///< of the mean; empty means all rows
  std::string marks;            ///< for the metadata of the output; empty: none
  std::vector<std::string> notes;
};

/// Settles a request. Throws UsageError and InputError: for a checkpoint with a marker (without
/// `again`), for an inverse of one without a marker, for an unknown [MASK], and for ids beyond the
/// table.
CorrectionSettings correction_settings(const CorrectionRequest& request,
                                       const store::Checkpoint& checkpoint,
                                       const std::optional<store::ModelConfig>& config,
                                       const TokenNames& names, const EmbeddingTable& table);

}  // namespace masque::surgery
