// What an objective asks of a model: sequences, and rows of them with a target.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "mask/expression.hpp"

namespace masque::train {

/// A sequence with its loss.
struct Example {
  std::vector<TokenId> ids;              ///< what the model reads
  std::vector<TokenId> source;           ///< of encoder–decoders: what the encoder reads
  std::vector<Index> positions;          ///< one an id; empty: 0, 1, …
  std::vector<Index> segments;           ///< one an id; empty: 0
  std::optional<mask::Mask> mask;        ///< none: the design's
  std::optional<mask::Mask> query_mask;  ///< two streams: what the query stream reads
  std::vector<Index> rows;               ///< with a loss, from 0 in the sequence, ascending
  std::vector<TokenId> targets;          ///< one a row: an id, or the label of another head
  std::vector<double> weights;           ///< weights of the loss, one a row; empty: 1
  /// Added to what a head of one number says, one a row, constants; empty: 0.
  std::vector<double> offsets;
  /// What the example adds to the number that the sum of losses is divided by; none: its weights.
  std::optional<double> divisor;
  /// Only this is left of a longer text, or positions come twice: windows of layers and all
  /// relative positions go by `positions`, not by the places of the tokens.
  bool sparse = false;

  /// Number of tokens.
  Index size() const { return static_cast<Index>(ids.size()); }
  /// Number of tokens that any part of the model reads.
  Index all_tokens() const { return size() + static_cast<Index>(source.size()); }
};

/// Removes the loss of the first row of `example`, which has no row before it: what a shifted head
/// (model::HeadDesign) says there is for the row after it.
void leave_out_first_row(Example& example);

/// Examples one after the other, as an encoder takes them. A row is one token of the chunk.
struct ExampleChunk {
  std::vector<TokenId> ids;                            ///< one a row
  std::vector<Index> begins{0};                        ///< first row of each sequence, and the end
  std::vector<Index> positions;                        ///< one a row
  std::vector<Index> segments;                         ///< one a row; empty: all 0
  std::vector<std::optional<mask::Mask>> masks;        ///< Example::mask, one a sequence
  std::vector<std::optional<mask::Mask>> query_masks;  ///< Example::query_mask, one a sequence
  std::vector<Index> wanted;                           ///< rows of the chunk with a loss
  /// Index in `wanted` of the first one of each sequence, and the end.
  std::vector<Index> wanted_begins{0};
  std::vector<TokenId> targets;  ///< one a wanted row
  std::vector<double> weights;   ///< weights of the loss, one a wanted row
  std::vector<double> divisors;  ///< the sum of losses is divided by the sum of these
  std::vector<double> offsets;   ///< one a target
  /// Rows, ascending, that have a state of another network (Tape::given) in place of their token's.
  std::vector<Index> given;
  bool sparse = false;                  ///< Example::sparse of all examples
  std::vector<TokenId> source_ids;      ///< Example::source of all examples
  std::vector<Index> source_begins{0};  ///< first of these of each sequence, and the end

  /// Wants all rows.
  void want_all();
  /// A chunk of the sources alone, of which all rows are wanted.
  ExampleChunk sources() const;
  /// Whether the sequence number `sequence` of the chunk has a wanted row.
  bool has_loss(Index sequence) const {
    const auto s = static_cast<std::size_t>(sequence);
    return wanted_begins[s] < wanted_begins[s + 1];
  }
  /// Number of sequences.
  Index sequences() const { return static_cast<Index>(begins.size()) - 1; }
  /// Number of rows: the tokens of all sequences.
  Index rows() const { return static_cast<Index>(ids.size()); }
  /// Appends `example`, which is as `sparse` as those before it.
  void add(const Example& example);
};

/// Example::all_tokens of all `examples`.
Index tokens_of(std::span<const Example> examples);

/// Takes examples off the front of `examples`: as many as have at most `rows` tokens
/// together (Example::all_tokens), and at least one. There must be one.
ExampleChunk take_chunk(std::span<const Example>& examples, Index rows);

}  // namespace masque::train
