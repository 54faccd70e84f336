// Tokens that may stand for others.
#pragma once

#include <string>

#include "cli/session.hpp"
#include "records/mlm.hpp"

namespace masque::text {
class Tokenizer;
}

namespace masque::commands {

/// How a list may call tokens. What is borrowed must stay.
struct TokenParser {
  const text::Tokenizer* tokenizer = nullptr;  ///< nullptr: ids alone
  const records::TokenTable& table;            ///< of the vocabulary; a size of 0: not known
};

/// The similar tokens of each id; it may be shorter than the vocabulary. From an embedding table,
/// if `path` is a checkpoint (a folder or .safetensors): for each ordinary token the ten nearest
/// rows by cosine, with `threads` threads (0: all processors) and a progress line on `session`.
/// Else from a list of at most 1 GiB: in each line a token, then its similar ones, between tabs or
/// spaces; as `tokens` says, tokens or ids (without a tokenizer ids only, where the vocabulary's
/// size is not known either below 2^21). Throws InputError, naming the line.
records::SimilarTokens read_similar(const std::string& path, const TokenParser& tokens, int threads,
                                    cli::Session& session);

/// Reads weights of `tokens` from a list at `path`, of at most 1 GiB: in each line a token or id as
/// above, and a number. The result has a weight for each id of the vocabulary, or up to the largest
/// listed id where its size is not known; 0 for ids that are not listed. Throws InputError, naming
/// the line.
std::vector<double> read_weights(const std::string& path, const TokenParser& tokens);

}  // namespace masque::commands
