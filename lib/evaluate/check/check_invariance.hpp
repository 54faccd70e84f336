// Do the states of a sequence depend on what must not matter: padding, the other sequences of its
// batch, what was run before?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evaluate/check/check_run.hpp"

namespace masque::evaluate {

/// The first row that differs.
struct InvariancePlace {
  std::uint64_t text = 0;  ///< number of the text
  Index layer = 0;         ///< 0: embeddings; N: after N layers; layers + 1: output
  Index position = 0;      ///< in the text, from 0
  double difference = 0;   ///< as compare_variants has it
};

/// One way to run the texts again.
struct InvarianceRow {
  std::string name;                      ///< name of the way: "append", "together"
  std::uint64_t texts = 0;               ///< that were run so
  std::uint64_t rows = 0;                ///< compared
  std::uint64_t differing = 0;           ///< rows that differ at some layer
  double largest = 0;                    ///< difference (check_run.hpp)
  std::optional<InvariancePlace> first;  ///< in the first text, the lowest layer, then position
};

/// What was found over all texts.
struct InvarianceReport {
  double tolerance = 0;             ///< differences up to it do not count
  std::vector<InvarianceRow> rows;  ///< one a way, in the order in which they were first used

  /// Whether no row of any text differs.
  bool clean() const;
  /// Adds `differences`, what compare_variants says of `variant`: the text of number `text`, run in
  /// the way `name`.
  void add(const std::string& name, std::uint64_t text, const CheckVariant& variant,
           const Matrix<double>& differences);
};

/// A text and its number.
struct NumberedInput {
  std::uint64_t text = 0;  ///< its number
  CheckInput input;        ///< its tokens
};

/// The padding of check_padding.
struct PaddingRequest {
  Index count = 8;    ///< tokens of padding
  TokenId token = 0;  ///< the padding
};

/// Whether a model of `design` reads the first row of a sequence whatever the mask: latent
/// bottlenecks make their point from its state, and a shifted head predicts its token from it.
/// Padding in front of a text takes its place.
bool reads_first_row(const model::Design& design);

/// Pads `text` by `request` at the end and in front, with a mask that hides the padding from every
/// real token and positions that stay ("append", "prepend"), and once more with the positions that
/// the model counts itself ("append, own positions"; "prepend, own positions" where that is
/// promised to change nothing: relative schemes, and RoBERTa's, which passes over padding; not
/// where values are rotated, or angles rounded to float). Ways for which the model has not enough
/// positions are left out, and for models that reads_first_row() those with padding in front. Adds
/// the differences to `report`. `options` are those with which `model` was opened; at most
/// `batch_tokens` tokens run at a time. Memory: a bit for each pair of tokens. Throws UsageError
/// for a list of masks in `options`, and as Model::run does.
void check_padding(const model::Model& model, const model::ModelOptions& options,
                   const NumberedInput& text, const PaddingRequest& request, Index batch_tokens,
                   InvarianceReport& report);

/// Runs `model` on each of `texts` alone, then on all together, forwards and backwards, at most
/// `batch_tokens` tokens at a time (a longer text alone), and adds the differences to `report`.
/// Memory: the states of all texts. Throws as Model::run does.
void check_batch(const model::Model& model, std::span<const NumberedInput> texts,
                 Index batch_tokens, InvarianceReport& report);

/// Runs `model` on each of `texts` alone, then on all again, one by one, in an order that `seed`
/// and the first text's number draw; then on the longest, the shortest and the longest again:
/// nothing may be left from one run to the next. Adds the differences to `report`. Memory: the
/// states of all texts. Throws as Model::run does.
void check_order(const model::Model& model, std::span<const NumberedInput> texts,
                 std::uint64_t seed, InvarianceReport& report);

}  // namespace masque::evaluate
