// Documents packed into sequences of a fixed length.
#pragma once

#include <functional>
#include <optional>

#include "records/record.hpp"

namespace masque::records {

/// How documents are packed.
struct PackOptions {
  std::size_t length = 512;    ///< most tokens of a sequence
  std::int32_t pos_start = 0;  ///< position of a document's first token: 2 for RoBERTa
  bool cut = false;            ///< a document may be cut at the end of a sequence
};

/// Packs documents into sequences in their order: the next one is added to the open sequence if it
/// fits, otherwise a new sequence begins. Fields of the result: `ids`, `pos` (restarted), `doc`,
/// `cu_seqlens`, `mask` (document(…)), and `labels`, `original`, `seg`, `words` (numbered on) and
/// `dropped` if every document has them; other fields are removed. Gaps in a document's positions
/// are kept.
class Packer {
 public:
  /// Takes a sequence, which is valid during the call and numbered from 0.
  using Emit = std::function<void(const Record& sequence)>;

  /// Copies `options`. Throws UsageError for a length of 0.
  explicit Packer(const PackOptions& options);

  /// Adds `document` and calls `emit` with each sequence that is full by then; a document without
  /// ids is passed over. Throws InputError (message only) for a document that is longer than a
  /// sequence, unless it may be cut, for one that is packed, has weights, a mask (but `full`) or an
  /// original without labels, and where only some have labels or another field that stays; the
  /// document is left out then.
  void add(const Record& document, const Emit& emit);
  /// Calls `emit` with the open sequence, if it has a token.
  void finish(const Emit& emit);

 private:
  void check(const Record& document);
  void append_lists(const Record& document, std::size_t begin, std::size_t end);
  void append_words(const Record& document, std::size_t begin, std::size_t end);
  void append_dropped(const Record& document, std::size_t begin, std::size_t end);
  void append(const Record& document, std::size_t begin, std::size_t end);
  void close(const Emit& emit);

  PackOptions options_;
  Record open_;
  std::optional<Record> fields_;  ///< which ones the first document has, and so all
  std::int32_t documents_ = 0;
  std::uint64_t sequences_ = 0;
};

}  // namespace masque::records
