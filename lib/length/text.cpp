// A text for length generalisation: one stream of tokens with targets, cut at every length.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "length/stream.hpp"
#include "length/subject.hpp"
#include "text/tokenizer.hpp"

namespace masque::length {

namespace {

class TextLearner final : public Learner {
 public:
  /// `others` must stay.
  TextLearner(const train::RunOptions& options, const text::Tokenizer& tokenizer,
              const train::Corpus& corpus, const std::map<Index, train::Corpus>& others)
      : run_(options, tokenizer, corpus), others_(others) {
    // The masks of objectives hide what is predicted.
    if (!options.mask.empty()) run_.check_leak();
  }
  train::Trainer& trainer() override { return run_.trainer(); }
  train::Network<float>& network() override { return run_.network(); }
  train::Parameters<float>& parameters() override { return run_.parameters(); }
  std::unique_ptr<train::Trainer> finetuner(Index length,
                                            const train::TrainerOptions& options) override {
    return run_.trainer_on(others_.at(length), options);
  }
  void save(const std::string& folder, Index positions) const override {
    run_.save_model(folder, positions);
  }

 private:
  train::TrainingRun run_;
  const std::map<Index, train::Corpus>& others_;
};

class Text final : public LengthSubject {
 public:
  explicit Text(const TextSubject& request)
      : request_(request),
        tokenizer_(text::Tokenizer::open(request.tokenizer)),
        stream_(stream_request(request), tokenizer_) {
    if (request.text == "-" || is_stream(request.text))
      throw UsageError("texts are read several times: expected files, not streams");
    train::CorpusOptions reading;
    reading.format = train::CorpusFormat::kBlocks;
    reading.threads = request.threads;
    const train::TextTokens text = train::read_text_tokens(request.text, tokenizer_, reading);
    for (const Index length : request.train_lengths) {
      reading.length = length;
      corpus_.append(cut_corpus(text, tokenizer_, reading));
    }
    for (const Index length : request.finetune_lengths) {
      reading.length = length;
      others_.emplace(length, cut_corpus(text, tokenizer_, reading));
    }
    longest_ = corpus_.longest();
    for (const auto& [length, corpus] : others_) longest_ = std::max(longest_, corpus.longest());
  }

  std::unique_ptr<Learner> learner(const train::RunOptions& options) const override {
    train::RunOptions fitting = options;
    Index& positions = fitting.design.max_position_embeddings;
    // A table that nothing extends needs positions for fine-tuning, too.
    if (positions == 0) positions = positions_end(fitting.design) ? longest_ : corpus_.longest();
    return std::make_unique<TextLearner>(fitting, tokenizer_, corpus_, others_);
  }
  const std::vector<train::Example>& examples(Index length) const override {
    return stream_.examples(length);
  }
  bool whole() const override { return false; }
  Index tokens(Index length) const override { return length; }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    for (const std::string& warning : tokenizer_.warnings())
      notes.push_back(fmt::format("{}: {}", tokenizer_.parts().path, warning));
    if (stream_.note()) notes.push_back(*stream_.note());
    return notes;
  }
  Index longest_trained() const override { return corpus_.longest(); }
  Index longest_scored() const override { return std::ranges::max(request_.eval_lengths); }
  Settings settings() const override {
    train::Corpus scored;
    scored.add(stream_.ids());
    return {{"vocabulary", text::tokenizer_digest(tokenizer_)},
            {"corpus", corpus_.digest()},
            {"eval_corpus", scored.digest()},
            {"eval_seed", fmt::format("{}", request_.seed)}};
  }

 private:
  static StreamRequest stream_request(const TextSubject& request) {
    StreamRequest stream;
    stream.text = request.eval_text;
    stream.objective = request.objective;
    stream.requested = request.requested;
    stream.lengths = request.eval_lengths;
    stream.tokens = request.eval_tokens;
    stream.seed = request.seed;
    stream.threads = request.threads;
    return stream;
  }

  TextSubject request_;
  text::Tokenizer tokenizer_;
  LengthStream stream_;
  train::Corpus corpus_;
  std::map<Index, train::Corpus> others_;  ///< of fine-tuning, by length
  Index longest_ = 0;                      ///< of all sequences to learn from
};

}  // namespace

std::unique_ptr<const LengthSubject> make_text_subject(const TextSubject& request) {
  return std::make_unique<const Text>(request);
}

}  // namespace masque::length
