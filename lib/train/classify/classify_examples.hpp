// Texts as a classifier takes them, in training and in judgement.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "mask/expression.hpp"
#include "model/design.hpp"
#include "records/drop.hpp"
#include "train/classify/classifier.hpp"
#include "train/data/corpus.hpp"

namespace masque::train {

/// What is learnt of a text.
struct TextTarget {
  TokenId label = 0;  ///< number of the label, from 0
  double number = 0;  ///< of regression, with the label 0
};

/// How a classifier reads texts.
struct ClassifyTextOptions {
  /// An expression of the mask language for every text, in training and judgement, which the folder
  /// keeps; none: the model's mask.
  std::optional<std::string> mask = {};
  /// DropToken of what is learnt: other tokens in each epoch; the mask is one of what is left.
  records::DropOptions drop{.rate = 0};
  std::uint64_t seed = 0;           ///< of that
  records::TokenTable tokens = {};  ///< of the tokenizer, for that and the words of masks
};

/// Makes a classifier's examples from texts. Immutable, thread-safe.
class ClassifyExamples {
 public:
  /// For a classifier with this `pooling` on an encoder of `design`, which reads texts as `options`
  /// say; keeps no reference. Throws UsageError for a mask or a share that is none.
  ClassifyExamples(const ClassifyTextOptions& options, ClassifierPooling pooling,
                   const model::Design& design);

  /// Throws UsageError and InputError for texts of `corpus` that cannot be taken: longer ones than
  /// the model, lengths that the mask has not, first tokens that read themselves alone where they
  /// are pooled.
  void check(const Corpus& corpus) const;
  /// Returns the text `item` as it is judged. The rows are those that pooling reads, the target of
  /// each is the label of `target`, its offset the number times −1.
  Example whole(const CorpusItem& item, const TextTarget& target) const;
  /// Returns the text `item` with `target` as it is learnt in `epoch`: without the tokens that
  /// DropToken takes out.
  Example dropped(const CorpusItem& item, std::uint64_t epoch, const TextTarget& target) const;

 private:
  Example example(records::Record record, const TextTarget& target) const;
  mask::Mask mask_of(std::span<const TokenId> ids) const;

  ClassifierPooling pooling_;
  bool segments_;
  Index longest_;  ///< text; 0: any
  records::TokenTable tokens_;
  std::unique_ptr<const records::Corruption> drop_;
  std::optional<mask::MaskExpression> mask_;  ///< none: the model's, the same for all texts
};

}  // namespace masque::train
