// How embed and sim make vectors.
#pragma once

#include <optional>
#include <string>

#include "commands/open_model.hpp"
#include "evaluate/states/sentence_vectors.hpp"
#include "evaluate/states/whitening.hpp"

namespace masque::lm_score {

/// What happens to a text that is too long.
enum class LongTexts {
  kError,
  kTruncate,  ///< only its first tokens are read
  kSkip,      ///< its line is left out, as BadLines::kSkip says
};

struct VectorCommand {
  commands::OpenModelOptions open;
  std::optional<std::string> pooling;  ///< names, separated by commas
  bool normalize = false;
  bool whiten = false;
  std::optional<std::int64_t> dim;
  LongTexts long_texts = LongTexts::kError;
  std::optional<std::int64_t> max_length;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_name;
  bool no_special_in_text = false;
};

/// MODEL and the options that open it, --pooling, --normalize, --whiten, --dim, --policy,
/// --max-length, --prompt, --prompt-name.
void add_vectors(cli::Command& command, VectorCommand& options);

/// A model and how it makes vectors.
struct OpenedVectors {
  commands::OpenedModel opened;
  evaluate::VectorOptions options;
  evaluate::SentenceOptions sentence;
  std::string prompt;  ///< in front of each text
  bool whiten = false;
  bool normalize = false;  ///< after whitening, if there is one
  Index size = 0;          ///< numbers of a vector before whitening
  Index dim = 0;           ///< and in the end
  evaluate::Similarity similarity = evaluate::Similarity::kCosine;
  std::string provenance;  ///< members of a JSON object

  /// A line as the model reads it.
  evaluate::Sentence sentence_of(std::string_view line) const {
    return encode_sentence(*opened.tokenizer, prompt + std::string(line), sentence);
  }
};

/// Opens the model, follows what a folder of sentence-transformers says, and says what runs.
/// `similarity`: how a command compares vectors; nothing: as the folder says; nullptr: it does not
/// compare any.
OpenedVectors open_vectors(const VectorCommand& options,
                           const std::optional<evaluate::Similarity>* similarity,
                           cli::Session& session);

/// Vectors in memory, whitened.
class WhitenedVectors {
 public:
  explicit WhitenedVectors(const OpenedVectors& opened) : opened_(opened) {}
  void add(const std::vector<double>& vector) {
    numbers_.insert(numbers_.end(), vector.begin(), vector.end());
    ++count_;
  }
  /// Fits the whitening to what was added. Throws InputError as fit_whitening.
  void fit();
  Index count() const { return count_; }
  /// The i-th vector, whitened, and normalised if that is requested.
  std::vector<double> get(Index i) const;

 private:
  const OpenedVectors& opened_;
  std::vector<double> numbers_;
  Index count_ = 0;
  evaluate::Whitening whitening_;
};

}  // namespace masque::lm_score
