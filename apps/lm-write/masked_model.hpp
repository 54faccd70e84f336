// What the commands that hide tokens need of a model.
#pragma once

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "commands/open_model.hpp"
#include "evaluate/write/fill.hpp"

namespace masque::lm_write {

/// Throws InputError with the model's path as evaluate::check_filling().
inline void need_masked_head(const commands::OpenedModel& opened) {
  const auto problem =
      input_error_message([&] { evaluate::check_filling(opened.model->design()); });
  if (problem) throw InputError(opened.path, *problem);
}

/// The token that hides others. Throws InputError with the model's path if there is none.
inline TokenId need_mask_token(const commands::OpenedModel& opened) {
  const std::optional<TokenId> mask = opened.tokenizer->roles().mask;
  if (!mask) throw InputError(opened.path, "the tokenizer has no mask token, expected one");
  return *mask;
}

}  // namespace masque::lm_write
