// Texts that are being written: the model reads each token only once if it has a cache.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "evaluate/write/generation.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// A text that is being written.
struct OpenText {
  std::vector<TokenId> ids;          ///< with the prompt
  Index prompt = 0;                  ///< tokens of it
  Index source = 0;                  ///< with to_target: tokens that read each other
  Index longest = 0;                 ///< most tokens of it that are read in the end
  Index limit = 0;                   ///< most tokens of it in the model; 0: any number
  std::vector<double> latents = {};  ///< as Prompt has them
  /// As Prompt has them; of a model without an encoder nullptr.
  std::shared_ptr<const std::vector<TokenId>> encoder_ids = {};
};

/// What processors read of `text`, which one of `ends` would end; views of both.
TextSoFar text_so_far(const OpenText& text, std::span<const TokenId> ends);

/// Throws InputError "prompt …: no token is left …" about a text of the prompt `id`, all of whose
/// next tokens are excluded after so many `new_tokens`.
[[noreturn]] void refuse_stuck_text(std::uint64_t id, Index new_tokens);

/// How many tokens a text that begins with `prompt` may have in a model of `design`; 0: any number.
/// The one that stands for points of latent bottlenecks takes no position from the others.
Index text_limit(const model::Design& design, const Prompt& prompt);

/// `prompt`, which is continued by at most `max_new_tokens` ≥ 1 tokens, of which the last one is
/// not read, in a model of `limit` positions (0: unlimited).
OpenText open_text(const Prompt& prompt, Index max_new_tokens, Index limit);

/// Gets the logits of the token after a text, by its number; a view that ends with the call.
/// Several threads may call it at once for different texts.
using TakeNext = std::function<void(std::size_t text, std::span<const double> logits)>;

/// What a model has read of texts. Keeps keys and values of them where the model has a cache, in
/// memory for OpenText::longest tokens of each.
class TextReader {
 public:
  /// `to_target`: UniLM's mask and segments; of texts with latents those of UniVAE, whose second
  /// token has the first one's position. There are `texts` of them at first. `model` must outlive
  /// it.
  TextReader(const model::Model& model, bool to_target, Index texts);

  /// Reads what `texts` have since the last time, at least one token each; in the order of then.
  /// Gives the logits after each to `take`. Throws as Model::run does.
  void read(std::span<const OpenText* const> texts, const TakeNext& take);
  /// Text i goes on where `from`[i] was; those that nobody names are forgotten.
  void select(std::span<const Index> from);

 private:
  const model::Model& model_;
  bool to_target_;
  std::unique_ptr<model::KeyValueCache> cache_;  ///< may be null
};

}  // namespace masque::evaluate
