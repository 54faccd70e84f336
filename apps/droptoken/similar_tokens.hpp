// Tokens that may stand for others.
#pragma once

#include <string>

#include "records/mlm.hpp"
#include "stream.hpp"

namespace masque::droptoken {

/// Reads a list: in each line a token, then its similar ones, between tabs or spaces; tokens or
/// ids (without a tokenizer ids only). Throws InputError naming the line.
records::SimilarTokens read_similar(const std::string& path, const Tokens& tokens);

/// Reads weights of tokens: in each line a token or id, and a number. Ids that are not listed have
/// weight 0.
std::vector<double> read_weights(const std::string& path, const Tokens& tokens);

}  // namespace masque::droptoken
