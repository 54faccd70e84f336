// How a trained model is made to read texts longer than those of its training: treatments of
// positions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/design.hpp"
#include "nn/position/rotary_scaling.hpp"
#include "tensor/table_rows.hpp"

namespace masque::model {

/// Tokens of the longest sequence that training had, and of those that are requested.
struct LengthExtension {
  Index trained = 0;  ///< tokens, at least 1
  Index length = 0;   ///< tokens that are requested

  /// length / trained, at least 1: shorter texts are read as they always were.
  double factor() const;
};

/// The positions of a model under treatment.
struct TreatedPositions {
  Design design;       ///< design of the model; a treatment changes it
  bool table = false;  ///< learned rows are added to the embeddings
  /// Each position of the new table as a sum of trained rows; empty: the table is unchanged.
  std::vector<TableRows> rows;
  /// Tokens of a sequence that the treated positions reach; 0: as the design says.
  Index longest = 0;

  /// Turns a `learned` scheme of nn into a table; leaves other positions as they are.
  void plain_table();
  /// Turns a scheme of RoPE of nn into a design of rotary positions; leaves others as they are.
  void plain_rotary();
  /// Changes the rotary positions of every layer by `scaling` with its `arguments`. Returns false
  /// for models of other positions.
  bool scale_rotary(const nn::RotaryScaling& scaling, const nn::RotaryArguments& arguments);
};

/// A treatment with its arguments. Immutable, thread-safe.
class PositionTreatment {
 public:
  virtual ~PositionTreatment() = default;
  /// One line: what it does, and author, year, identifier.
  virtual std::string_view about() const = 0;
  /// Changes `positions`, those of a model without a treatment, for the lengths of `extension`.
  /// Throws UsageError for positions that it does not know.
  virtual void apply(const LengthExtension& extension, TreatedPositions& positions) const = 0;

  /// As it was written.
  const std::string& text() const { return text_; }

 protected:
  /// Throws UsageError "NAME: found … positions, expected …": of `design` those found, and
  /// `expected`.
  [[noreturn]] void refuse(const Design& design, std::string_view expected) const;

 private:
  friend std::unique_ptr<const PositionTreatment> parse_position_treatment(std::string_view text);
  std::string text_;
};

/// The treatment that `text` names: "own", "interpolated", "yarn(beta_fast=16)"; a bare name has
/// its standard arguments. Throws UsageError that names what is possible.
std::unique_ptr<const PositionTreatment> parse_position_treatment(std::string_view text);

/// A treatment with the standard values of its arguments: a row of a list.
struct PositionTreatmentInfo {
  std::string name;        ///< as parse_position_treatment takes it
  std::string parameters;  ///< "beta_fast=32, factor=0"; empty: it has none
  std::string about;       ///< PositionTreatment::about
};
/// All of them, sorted by name.
std::vector<PositionTreatmentInfo> position_treatments();

}  // namespace masque::model
