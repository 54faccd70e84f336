// Writes hidden states, logits and attention weights of a model to a file.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.hpp"
#include "probe/score/sequence.hpp"
#include "store/tensor_info.hpp"

namespace masque::probe {

struct DumpRequest {
  bool hidden_states = false;
  bool logits = false;
  bool attentions = false;
  Index batch_tokens = 8192;
  store::Metadata metadata;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  ///< sequences
};

/// "hidden_states,logits". Throws UsageError about `what`.
void parse_dump_parts(std::string_view list, DumpRequest& request);

/// The items as a batch; with `two_streams` their masks are those of the query stream.
model::Batch batch_of(std::span<const Sequence> items, bool two_streams);

/// Writes a safetensors file with these tensors of item i, F64 for an f64 model, else F32. `path`
/// is replaced as a whole or not at all.
///   i.hidden_states (layers + 1, T, hidden)   i.logits (T, V), (T, 1) of a discriminator
///   i.query_states  (layers + 1, T, hidden)   i.attentions (layers, heads, T, T)
/// Only two-stream models give query_states. Without a mask their query stream reads everything but
/// its own token, and the logits are those of the content stream; with a mask they are those of the
/// query stream. Every size is known before the first run; data are in the order of the items.
/// Memory: a batch. Throws InputError as Model::run does, and if the file cannot be written.
void dump(const model::Model& model, std::span<const Sequence> items, const DumpRequest& request,
          const std::string& path);

}  // namespace masque::probe
