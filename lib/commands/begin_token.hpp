// The token in front of texts whose tokenizer puts none there: one rule for all commands that read
// text with a model.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "commands/open_model.hpp"

namespace masque::commands {

/// What the options say about that token.
struct BeginOptions {
  bool bos = false;     ///< --bos: in front of texts for any model
  bool no_bos = false;  ///< --no-bos: never
  /// Whether one of the two was given.
  bool given() const { return bos || no_bos; }
};

/// Declares --bos and --no-bos of `command`, with `options` as their targets. `without` ends the
/// help of --no-bos: what follows from it.
void add_begin(cli::Command& command, BeginOptions& options, std::string_view without = "");

/// Whether texts for the model of `design` begin with such a token by default: causal models of one
/// stream, which cannot predict the first token of a text without one, but not decoders of
/// encoder–decoders, whose targets begin otherwise. A model without a head counts by its own mask.
bool begins_texts(const model::Design& design);

/// The token for SentenceOptions::begin: the bos token of the tokenizer of `opened`, else its eos
/// token, where `options` say so or, without them, where `by_default` holds (begins_texts(), or a
/// score of that kind); encode_sentence() puts it where the template puts nothing. Says on
/// `session` what it does. Throws UsageError if both options are given, for --bos with a tokenizer
/// that has neither token, and for --no-bos where the template puts a token there or `by_default`
/// is false; its message calls the model `what`. Without `special` texts are read without the
/// template.
std::optional<TokenId> begin_token_of(const BeginOptions& options, bool by_default,
                                      const OpenedModel& opened, std::string_view what,
                                      cli::Session& session, bool special = true);

/// Throws UsageError for --bos in `options`: targets of encoder–decoders begin otherwise.
void refuse_begin(const BeginOptions& options);

/// The options as members of a result: "bos" or "no_bos".
std::vector<Given> given_begin(const BeginOptions& options);

}  // namespace masque::commands
