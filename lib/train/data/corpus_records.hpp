// Records to sequences of a corpus.
#pragma once

#include <string>

#include "train/data/corpus.hpp"

namespace masque::train {

/// read_corpus for CorpusFormat::kRecords; messages name the file `name` and the line.
Corpus read_records(const std::string& path, const std::string& name,
                    const text::Tokenizer& tokenizer, const CorpusOptions& options);

}  // namespace masque::train
