// Do the states of a sequence depend on what must not matter: padding, the other sequences of its
// batch, what was run before?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probe/check/check_run.hpp"

namespace masque::probe {

/// The first row that differs.
struct InvariancePlace {
  std::uint64_t text = 0;
  Index layer = 0;  ///< 0: embeddings; layers + 1: the output
  Index position = 0;
  double difference = 0;
};

/// One way to run the texts again.
struct InvarianceRow {
  std::string name;
  std::uint64_t texts = 0;
  std::uint64_t rows = 0;                ///< compared
  std::uint64_t differing = 0;           ///< rows that differ at some layer
  double largest = 0;                    ///< difference (check_run.hpp)
  std::optional<InvariancePlace> first;  ///< of the first text the lowest layer, then position
};

struct InvarianceReport {
  double tolerance = 0;
  std::vector<InvarianceRow> rows;

  bool clean() const;
  /// Adds what compare_variants says of a text run in the way `name`.
  void add(const std::string& name, std::uint64_t text, const CheckVariant& variant,
           const Matrix<double>& differences);
};

/// A text and its number.
struct NumberedInput {
  std::uint64_t text = 0;
  CheckInput input;
};

struct PaddingRequest {
  Index count = 8;    ///< tokens of padding
  TokenId token = 0;  ///< the padding
};

/// Pads a text at the end and in front, with a mask that hides the padding from every real token
/// and positions that stay ("append", "prepend"), and once more with the positions that the model
/// counts itself ("append, own positions"; "prepend, own positions" where that is promised to
/// change nothing: relative schemes, and RoBERTa's, which passes over padding; not where values are
/// rotated, or angles rounded to float). Ways for which the model has not enough positions are left
/// out. `options` are those with which the model was opened. Throws UsageError for a list of masks
/// in `options`, and as Model::run does.
void check_padding(const model::Model& model, const model::ModelOptions& options,
                   const NumberedInput& text, const PaddingRequest& request, Index batch_tokens,
                   InvarianceReport& report);

/// Runs each text alone, then all together, forwards and backwards, at most `batch_tokens` tokens
/// at a time (a longer text alone).
void check_batch(const model::Model& model, std::span<const NumberedInput> texts,
                 Index batch_tokens, InvarianceReport& report);

/// Runs each text alone, then all again, one by one, in random orders; then the longest, the
/// shortest and the longest again: nothing may be left from one run to the next.
void check_order(const model::Model& model, std::span<const NumberedInput> texts,
                 std::uint64_t seed, InvarianceReport& report);

}  // namespace masque::probe
