// What a broken conversion looks like: heads that are uniform, stuck or zero, numbers that are not
// finite, rows of special tokens that were never trained, norms that erase everything.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluate/check/check_run.hpp"
#include "model/weights.hpp"
#include "store/checkpoint.hpp"

namespace masque::evaluate {

/// One thing that was checked, in all its places.
struct SaneRow {
  std::string check;                     ///< its name: "uniform_head"
  std::uint64_t checked = 0;             ///< places
  std::uint64_t found = 0;               ///< the bad ones of these places
  double value = 0;                      ///< the most suspicious of all; what it is says the check
  std::vector<std::string> places = {};  ///< the bad ones, each a few words
};

/// Heads and states over texts. For one thread.
class SaneHeads final : public model::Observer {
 public:
  /// `model` must outlive it. `tolerance`: a head is uniform if all weights of all rows with n ≥ 2
  /// weights above 0 are (1 ± tolerance) / n; stuck if in every text of two rows or more all rows
  /// give 1 − tolerance of their sum or more to the same key. `source`: the heads are those of the
  /// attention to the source (model::SourceDesign).
  SaneHeads(const model::Model& model, double tolerance, bool source = false);

  /// Runs the text `input`, if it has tokens. Throws InputError as Model::run does, but not where a
  /// state of this text is not finite: such states are counted.
  void add(const CheckInput& input);

  /// "uniform_head" (value: the smallest largest deviation of n · weight from 1), "stuck_head" (the
  /// largest smallest share of one key), "dead_head" (no weight above 0 in texts of two tokens or
  /// more; value: how many), "not_finite_state" (layers; 0: embeddings; value: how many).
  std::vector<SaneRow> rows() const;

  void hidden_states(Index s, Index state, MatrixView<const float> x) override;
  /// Looks for numbers that are not finite.
  void hidden_states(Index s, Index state, MatrixView<const double> x) override;
  void attention(Index s, Index layer, Index head, MatrixView<const float> weights) override;
  /// Adds a map of a head. Different heads may come at once.
  void attention(Index s, Index layer, Index head, MatrixView<const double> weights) override;
  void source_attention(Index s, Index layer, Index head, MatrixView<const float> weights) override;
  /// Adds a map of a head over the source, likewise.
  void source_attention(Index s, Index layer, Index head,
                        MatrixView<const double> weights) override;

 private:
  struct Head {
    bool mapped = false;   ///< a text of two tokens or more was seen
    bool mass = false;     ///< a weight above 0 was seen
    bool any = false;      ///< a text of two rows or more was seen
    bool spread = false;   ///< a row with two weights above 0 was seen
    double deviation = 0;  ///< largest |n · weight − 1|
    double share = 1;      ///< smallest share of the key that has most
    Index key = -1;        ///< the one that it is stuck on; −1: differs from text to text
  };
  template <class T>
  void add_map(Index layer, Index head, MatrixView<const T> weights);
  template <class T>
  void add_state(Index state, MatrixView<const T> x);

  const model::Model& model_;
  double tolerance_;
  bool source_;
  std::vector<Head> heads_;
  std::vector<bool> not_finite_;  ///< by state
  bool text_is_finite_ = true;    ///< the states of the text that runs
};

/// "not_finite_tensor" (value: numbers that are not finite) over the floating-point tensors of
/// `checkpoint`, of which no model need be made. Reads them once, with `threads` as
/// store::tensor_stats takes them. Throws InputError if it cannot be read.
SaneRow check_finite(const store::Checkpoint& checkpoint, int threads);

/// What the weights of `model` say: "zero_head" (value and output projections all zero where they
/// meet; value: the smallest of the largest products), "zero_norm" (norms whose weights are all
/// zero), and "special_row": rows of `special` tokens in the word table that equal the mean row or
/// are zero (a zero row of "pad" counts as good: torch makes it so); value: the smallest distance
/// from the mean in mean row norms; every row is described. `special` are names and ids. `source`:
/// the heads are those of the attention to the source.
std::vector<SaneRow> check_weights(const model::LoadedModel<float>& model,
                                   const std::vector<std::pair<std::string, TokenId>>& special,
                                   bool source = false);

}  // namespace masque::evaluate
