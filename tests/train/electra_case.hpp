// Two small networks of ELECTRA with their loss, and sequences for them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "train/loss/electra_loss.hpp"
#include "train_case.hpp"

namespace masque::test {

inline constexpr Index kVocabulary = 40;

inline records::TokenTable small_tokens() {
  records::TokenTable tokens;
  tokens.size = kVocabulary;
  tokens.mask = kMaskToken;
  tokens.special.assign(5, 1);
  tokens.begins_word.assign(static_cast<std::size_t>(kVocabulary), 1);
  return tokens;
}

inline train::Corpus small_corpus() {
  train::Corpus corpus;
  for (Index s = 0; s < 12; ++s) {
    std::vector<TokenId> ids{2};
    for (Index i = 0; i < 10 + s % 5; ++i)
      ids.push_back(static_cast<TokenId>(5 + (s * 7 + i * 3) % 35));
    ids.push_back(3);
    corpus.add(ids);
  }
  return corpus;
}

struct Setting {
  std::string_view variant = "electra";
  double size = 0.5;
  std::int64_t switch_step = 0;
  double weight = 50;
  bool adversarial = false;
  Index chunk_rows = 2048;
};

/// Two networks with their loss.
template <class T>
struct Pair {
  train::ElectraModel model;
  train::Parameters<T> parameters;
  std::unique_ptr<train::ElectraLoss<T>> loss;

  explicit Pair(const Setting& setting) {
    train::DesignRecipe recipe;
    recipe.vocab_size = kVocabulary;
    recipe.num_hidden_layers = 2;
    recipe.hidden_size = 16;
    recipe.num_attention_heads = 2;
    recipe.max_position_embeddings = 20;
    train::ObjectiveOptions requested;
    requested.tokens = small_tokens();
    model.variant = train::find_electra(setting.variant);
    REQUIRE(model.variant != nullptr);
    model.second = design_of(recipe);
    model.second.type_vocab_size = 2;
    adapt_electra(*model.variant, requested, model.second);
    model.generator =
        generator_design(*model.variant, recipe, setting.size, requested, model.second);
    model.adversarial = setting.adversarial;
    add_electra(model, setting.switch_step == 0, parameters);
    const train::StartOptions start{.seed = 3, .initializer_range = 0.2};
    initialize_parameters(model.generator, model.generator_map, start, parameters);
    initialize_parameters(model.second, model.second_map, start, parameters);
    train::ElectraLossOptions options;
    options.selection.selection.rate = 0.3;
    options.selection.seed = 11;
    options.selection.tokens = small_tokens();
    options.weight = setting.weight;
    options.switch_step = setting.switch_step;
    options.chunk_rows = setting.chunk_rows;
    options.precision =
        std::is_same_v<T, double> ? kernel::Precision::kF64 : kernel::Precision::kF32;
    loss = std::make_unique<train::ElectraLoss<T>>(options, model, parameters);
  }

  std::vector<T> gradient(Index i) {
    const MatrixView<T> g = parameters.gradient(i);
    return {g.data, g.data + parameters[i].size()};
  }
  std::vector<T> value(Index i) {
    const MatrixView<T> g = parameters.value(i);
    return {g.data, g.data + parameters[i].size()};
  }
};

inline std::vector<train::StepItem> items_of(const train::Corpus& corpus, std::uint64_t epoch = 0) {
  std::vector<train::StepItem> items;
  for (Index i = 0; i < corpus.size(); ++i) items.push_back({corpus.item(i), epoch});
  return items;
}

}  // namespace masque::test
