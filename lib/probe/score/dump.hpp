// What a model computes, as tensors of a file.
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

/// Writes a safetensors file, replacing `path` as a whole or not at all, with these tensors of item
/// i, F64 of an f64 model, else F32:
///   i.hidden_states (layers + 1, T, hidden)   i.logits (T, V), (T, 1) of a discriminator
///   i.query_states  (layers + 1, T, hidden)   i.attentions (layers, heads, T, T)
/// Two-stream models also give query_states; without a mask their query stream reads everything but
/// its own token, and the logits are those of the content stream; with one those of the query
/// stream. Every size is known before the first run; the file's data are in the order of the items.
/// Memory: a batch. Throws InputError as Model::run does, and if the file cannot be written.
void dump(const model::Model& model, std::span<const Sequence> items, const DumpRequest& request,
          const std::string& path);

}  // namespace masque::probe
