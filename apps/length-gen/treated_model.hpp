// What eval and probe share: a checkpoint, a text, and the treatments for longer sequences.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/file/output_folder.hpp"
#include "cli/run_tool.hpp"
#include "length/eval.hpp"
#include "text/tokenizer.hpp"

namespace masque::length_gen {

/// The options of both.
struct TreatedModelOptions {
  std::string model, text;
  std::optional<std::string> tokenizer, output;
  std::string family;
  kernel::Precision precision = kernel::Precision::kF32;
  std::string eval_lengths = "64,128,256,512,1024";
  std::optional<std::int64_t> train_length;
  length::TreatmentLists treatments;
  std::string policy = "chunk";
  std::int64_t eval_tokens = 32768, batch_tokens = 8192;
  cli::CommonOptions common;
};

/// MODEL, --text, the lengths, the treatments, and how results are shown.
void declare_treated_model(cli::Command& command, TreatedModelOptions& options);

/// A checkpoint that is opened under every treatment. `grid` points to the model.
struct TreatedModel {
  std::unique_ptr<const model::TreatableModel> model;
  std::unique_ptr<const text::Tokenizer> tokenizer;
  length::TreatmentGrid grid;
};

/// Reads model and tokenizer. `session` must outlive what is returned.
TreatedModel open_treated_model(const TreatedModelOptions& options, cli::Session& session);

/// The stream of `options.text`; objective, rate and seed are up to the caller.
length::StreamRequest stream_request(const TreatedModelOptions& options,
                                     const length::TreatmentGrid& grid);

/// Rows of a result.
class ResultTable {
 public:
  using Value = std::variant<std::string, Index, double>;

  /// After position, normalizer, mask, train_length, policy and eval_length stand `columns`.
  ResultTable(const TreatedModelOptions& options, const length::TreatmentGrid& grid,
              const std::vector<std::string>& columns);

  void add(const length::TreatedLength& cell, const std::vector<Value>& values);
  /// On stdout; numbers of the table have four decimals, those of --json all.
  void print(cli::Session& session) const;
  /// As TSV, numbers with all decimals.
  std::string text() const;

 private:
  const TreatedModelOptions& options_;
  const length::TreatmentGrid& grid_;
  std::vector<std::string> columns_;
  std::vector<std::vector<Value>> rows_;
};

/// A number at a length under a treatment.
struct CurvePoint {
  length::TreatedLength cell;
  double y = 0;
};
/// An SVG with a curve for each treatment.
std::string curves(const length::TreatmentGrid& grid, const std::vector<CurvePoint>& points,
                   const std::string& title, const std::string& measure);

/// The folder of --output, if there is one: made before the long work, so that what is in the way
/// is reported at once; there as a whole or not at all.
class ResultFolder {
 public:
  /// With these files. One that is there may hold nothing else. Throws InputError.
  ResultFolder(const std::optional<std::string>& path, const std::vector<std::string>& files);

  /// Gives a file its content, in the order of `files`.
  void write(const std::string& content);
  /// Puts the folder in its place.
  void finish();

 private:
  std::optional<OutputFolder> folder_;
  std::vector<Descriptor> files_;
  std::size_t next_ = 0;
};

}  // namespace masque::length_gen
