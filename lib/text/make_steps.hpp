// Normalizers and pre-tokenizers from tokenizer.json.
#pragma once

#include <memory>

#include "base/json.hpp"
#include "text/normalizer.hpp"
#include "text/pre_tokenizer.hpp"

namespace masque::text {

std::shared_ptr<const Normalizer> make_normalizer(const JsonValue& json, const std::string& path);
std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonValue& json,
                                                       const std::string& path);

}  // namespace masque::text
