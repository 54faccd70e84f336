// The files of a tokenizer, after its vocabulary has changed.
#pragma once

#include <string>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// Carries `change` to the files of the tokenizer in the folder of the checkpoint of `edit`, with
/// the names `before` it, whichever are there: vocab.txt, tokenizer.json (the model's vocabulary,
/// added_tokens, the ids in its post-processor and padding), vocab.json, added_tokens.json,
/// tokenizer_config.json, special_tokens_map.json. Not the ids in config.json. Nothing happens for
/// a lone file. Every byte that need not change stays; cost linear in the files. Of a row that is
/// copied the first id keeps the token.
///
/// New tokens go where transformers reads them:
///   WordPiece, WordLevel  into the model's vocabulary. A token that the pre-tokenizer would split
///                         ("[E1]", "New York") is listed as an added token besides, with the flags
///                         of transformers' add_tokens (normalized, not special); that holds for
///                         new names of old tokens, too.
///   BPE, Unigram          to the added tokens only: no merge makes them, and a piece would need a
///                         score that nobody learned. A renamed token of BPE is listed besides; a
///                         renamed piece keeps its score, and is listed if text would not come to
///                         the model as it is spelled.
/// transformers numbers added tokens that a vocabulary lacks itself, one after the other. Where
/// that is not what they must have, they become entries of the vocabulary (score 0 in Unigram).
///
/// Merges that produce or use a removed token go with it.
///
/// Throws InputError, before anything is written, for changes that the tokenizer files do not
/// allow: a token that merges of a byte-pair model produce or use is renamed; a special
/// token is removed; a token would have two ids; an id changes and two files disagree about its
/// token; ids of added tokens in the file differ from those that readers assign; a SentencePiece
/// model would change. Returns notes for people, one line each.
std::vector<std::string> change_vocabulary_files(CheckpointEdit& edit, const TokenNames& before,
                                                 const VocabularyChange& change);

/// Throws InputError if the only tokenizer next to `checkpoint` is a SentencePiece model, which is
/// not edited: nothing can be added to it. `names` are those of the checkpoint, empty() if there
/// are none.
void check_editable(const store::Checkpoint& checkpoint, const TokenNames& names);

}  // namespace masque::surgery
