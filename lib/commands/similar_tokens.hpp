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
  const records::TokenTable& table;
};

/// From an embedding table, if `path` is a checkpoint (a folder or .safetensors): for each ordinary
/// token the ten nearest rows by cosine. Else from a list: in each line a token, then its similar
/// ones, between tabs or spaces; tokens or ids (without a tokenizer ids only, where the
/// vocabulary's size is not known either below 2^21). Throws InputError, naming the line.
records::SimilarTokens read_similar(const std::string& path, const TokenParser& tokens, int threads,
                                    cli::Session& session);

/// Reads weights of tokens: in each line a token or id as above, and a number. Ids that are not
/// listed have weight 0.
std::vector<double> read_weights(const std::string& path, const TokenParser& tokens);

}  // namespace masque::commands
