// Records to sequences of a corpus.
#pragma once

#include <string>

#include "train/data/corpus.hpp"

namespace masque::train {

/// Reads `path` as read_corpus(path, tokenizer, options) does for CorpusFormat::kRecords; messages
/// name the file `name` and the line. `tokenizer` encodes records that have a text. Throws
/// InputError for a file without a record or without anything to predict, a line that is no record,
/// ids and positions out of range, records that are longer than `options.length`, labels that are
/// missing or not of one kind, and fields that the records of this training cannot have.
Corpus read_records(const std::string& path, const std::string& name,
                    const text::Tokenizer& tokenizer, const CorpusOptions& options);

}  // namespace masque::train
