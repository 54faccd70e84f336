// Writes hidden states, logits and attention weights of a model to a file.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evaluate/score/sequence.hpp"
#include "model/model.hpp"
#include "store/tensor_info.hpp"

namespace masque::evaluate {

/// What dump() writes.
struct DumpRequest {
  bool hidden_states = false;  ///< embeddings and every layer, of two streams both
  bool logits = false;         ///< the logits of every token
  bool attentions = false;     ///< weights of every head
  Index batch_tokens = 8192;   ///< most tokens of a batch; a longer item runs alone
  store::Metadata metadata;    ///< metadata of the file
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  ///< sequences
};

/// Sets the parts of `request` that `list` names: "hidden_states,logits". Throws UsageError about
/// `what` for another name.
void parse_dump_parts(std::string_view list, DumpRequest& request);

/// The `items` as a batch. With `two_streams` their masks are those of the query stream, and the
/// content stream also reads itself; without a mask the query stream reads all but its own token.
model::Batch batch_of(std::span<const Sequence> items, bool two_streams);

/// Writes a safetensors file with these tensors of the item of number i, F64 for an f64 `model`,
/// else F32; `request` says which. The numbers of `items` must differ. `path` is replaced as a
/// whole or not at all.
///   i.hidden_states (layers + 1, T, hidden)   i.logits (T, V), (T, 1) of a discriminator
///   i.query_states  (layers + 1, T, hidden)   i.attentions (layers, heads, T, T)
/// Of an encoder–decoder these are the decoder's, and with a source of S tokens in each item there
/// are further ones:
///   i.encoder_hidden_states (its layers + 1, S, hidden)   i.encoder_attentions (layers, heads, S,
///   S) i.cross_attentions (layers, heads, T, S)
/// Only two-stream models give query_states. Without a mask their query stream reads everything but
/// its own token, and the logits are those of the content stream; with a mask they are those of the
/// query stream. Every size is known before the first run; data are in the order of the items.
/// Memory: a batch. Throws InputError as Model::run does, and if the file cannot be written.
void dump(const model::Model& model, std::span<const Sequence> items, const DumpRequest& request,
          const std::string& path);

}  // namespace masque::evaluate
