// GGUF files with a vocabulary of their own, and what is in them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "support/make_gguf.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"

namespace masque::surgery {

using Texts = std::vector<std::string>;

/// The tokens as the file has them.
inline Texts texts_of(const store::Checkpoint& checkpoint) {
  return store::gguf_texts(*store::find_gguf_value(checkpoint, store::kGgufTokens)).value();
}

/// A metadata value; "none" if there is none.
inline std::string json_of(const store::Checkpoint& checkpoint, std::string_view key) {
  const store::TypedValue* value = store::find_gguf_value(checkpoint, key);
  return value == nullptr ? "none" : value->json;
}

/// The tokens as people name them.
inline Texts names_of(const store::Checkpoint& checkpoint) {
  const TokenNames names = TokenNames::of(checkpoint);
  Texts out;
  for (std::uint64_t id = 0; id < names.size(); ++id) out.push_back(names.token(id));
  return out;
}

/// A BERT with rows of 8 numbers, and more metadata.
inline std::string encoder(const Texts& texts, const std::vector<int>& types,
                           const Texts& more = {}) {
  std::string tokens;
  std::string numbers;
  std::string data;
  for (const std::string& text : texts) tokens += test::gguf_text(text);
  for (const int type : types) numbers += test::le(type);
  for (std::size_t i = 0; i < texts.size() * 8; ++i)
    data += test::le(static_cast<float>(i * i % 13));
  Texts metadata{test::gguf_value("general.architecture", 8, test::gguf_text("bert")),
                 test::gguf_value("tokenizer.ggml.model", 8, test::gguf_text("bert")),
                 test::gguf_array(store::kGgufTokens, 8, texts.size(), tokens),
                 test::gguf_array(store::kGgufTokenTypes, 5, types.size(), numbers)};
  metadata.insert(metadata.end(), more.begin(), more.end());
  return test::make_gguf(metadata,
                         {test::gguf_tensor("token_embd.weight", {8, texts.size()}, 0, 0)}, data);
}

/// Writes a vocabulary after `plan`, and compares what was written.
inline VocabularyReport change(const std::string& in, const std::string& out,
                               const VocabularyPlan& plan) {
  VocabularyRequest request;
  request.verify = true;
  return change_vocabulary(in, out, plan, request);
}

}  // namespace masque::surgery
