// A text for length generalisation: one stream of tokens with targets, cut at every length.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "train/length_run.hpp"
#include "train/line_encoder.hpp"

namespace masque::train {

namespace {

// Of what is hidden: no epoch of training is this one.
constexpr std::uint64_t kScoredEpoch = std::uint64_t{1} << 40;

class TextLearner final : public Learner {
 public:
  TextLearner(const RunOptions& options, const text::Tokenizer& tokenizer, const Corpus& corpus)
      : run_(options, tokenizer, corpus) {}
  Trainer& trainer() override { return run_.trainer(); }
  Network<float>& network() override { return run_.network(); }

 private:
  TrainingRun run_;
};

class Text final : public LengthSubject {
 public:
  explicit Text(const TextSubject& request)
      : request_(request), tokenizer_(text::Tokenizer::open(request.tokenizer)) {
    const std::string& name = request.objective;
    if (name != "mlm" && name != "tta" && name != "clm")
      throw UsageError(fmt::format("--objective {}: expected mlm, tta or clm", name));
    for (const std::string& path : {request.text, request.eval_text}) {
      if (path == "-" || is_stream(path))
        throw UsageError("texts are read several times, expected files");
    }
    CorpusOptions reading;
    reading.format = CorpusFormat::kBlocks;
    reading.threads = request.threads;
    for (const Index length : request.train_lengths) {
      reading.length = length;
      const Corpus blocks = read_corpus(request.text, tokenizer_, reading);
      for (Index i = 0; i < blocks.size(); ++i) corpus_.add(blocks.item(i).ids);
    }
    cut(reading);
  }

  std::unique_ptr<Learner> learner(const RunOptions& options) const override {
    return std::make_unique<TextLearner>(options, tokenizer_, corpus_);
  }
  const std::vector<Example>& examples(Index length) const override { return examples_.at(length); }
  bool whole() const override { return false; }
  Index longest_trained() const override { return corpus_.longest(); }
  Index longest_scored() const override { return std::ranges::max(request_.eval_lengths); }
  Settings settings() const override {
    Corpus scored;
    scored.add(stream_);
    return {{"vocabulary", vocabulary_digest(tokenizer_)},
            {"corpus", corpus_.digest()},
            {"eval_corpus", scored.digest()},
            {"eval_seed", fmt::format("{}", request_.seed)}};
  }

 private:
  /// Tokens in front of the text in a block, and of text.
  struct Shape {
    text::TemplateTokens around;
    Index room = 0;
  };

  Shape shape(CorpusOptions reading, Index length) const {
    reading.length = length;
    const LineEncoder lines(tokenizer_, reading);
    return {lines.around(), lines.room()};
  }

  void read_stream(CorpusOptions reading) {
    reading.length = std::ranges::min(request_.eval_lengths);
    const Shape block = shape(reading, reading.length);
    const Corpus blocks = read_corpus(request_.eval_text, tokenizer_, reading);
    for (Index i = 0; i < blocks.size(); ++i) {
      const auto text = blocks.item(i).ids.subspan(block.around.before.size(),
                                                   static_cast<std::size_t>(block.room));
      stream_.insert(stream_.end(), text.begin(), text.end());
    }
    const auto most = static_cast<std::size_t>(request_.eval_tokens);
    if (most > 0 && stream_.size() > most) stream_.resize(most);
  }

  void cut(const CorpusOptions& reading) {
    read_stream(reading);
    const auto tokens = static_cast<Index>(stream_.size());
    Index count = tokens;
    std::map<Index, Shape> shapes;
    for (const Index length : request_.eval_lengths) {
      const Index room = shapes.emplace(length, shape(reading, length)).first->second.room;
      if (tokens < room) {
        throw InputError(request_.eval_text,
                         fmt::format("{} tokens to score, expected at least {} for one sequence "
                                     "of {}",
                                     tokens, room, length));
      }
      count = std::min(count, tokens / room * room);
    }
    ObjectiveOptions asked = request_.asked;
    asked.tokens = token_table(tokenizer_);
    asked.seed = request_.seed;
    const auto objective = find_objective(request_.objective).make(asked);
    CorpusItem item;
    item.ids = stream_;
    const Example whole = objective->example(item, kScoredEpoch);
    // Of a causal model the row in front of a token predicts it.
    const Index shift = request_.objective == "clm" ? 1 : 0;
    std::vector<TokenId> targets(stream_.size(), -1);
    for (std::size_t r = 0; r < whole.rows.size(); ++r) {
      const Index token = whole.rows[r] + shift;
      bool scored = token < count;
      for (const auto& [length, block] : shapes)
        scored = scored && token % block.room + std::ssize(block.around.before) >= shift;
      if (scored) targets[static_cast<std::size_t>(token)] = whole.targets[r];
    }
    for (const auto& [length, block] : shapes)
      examples_[length] = blocks_of(whole.ids, targets, count, block, shift);
  }

  static std::vector<Example> blocks_of(const std::vector<TokenId>& ids,
                                        const std::vector<TokenId>& targets, Index count,
                                        const Shape& shape, Index shift) {
    const auto before = std::ssize(shape.around.before);
    std::vector<Example> examples;
    for (Index begin = 0; begin < count; begin += shape.room) {
      Example& one = examples.emplace_back();
      one.ids = shape.around.before;
      const auto from = ids.begin() + begin;
      one.ids.insert(one.ids.end(), from, from + shape.room);
      one.ids.insert(one.ids.end(), shape.around.after.begin(), shape.around.after.end());
      for (Index t = begin; t < begin + shape.room; ++t) {
        const TokenId target = targets[static_cast<std::size_t>(t)];
        if (target < 0) continue;
        one.rows.push_back(before + t - begin - shift);
        one.targets.push_back(target);
      }
    }
    return examples;
  }

  TextSubject request_;
  text::Tokenizer tokenizer_;
  Corpus corpus_;
  std::vector<TokenId> stream_;
  std::map<Index, std::vector<Example>> examples_;
};

}  // namespace

std::unique_ptr<const LengthSubject> make_text_subject(const TextSubject& request) {
  return std::make_unique<const Text>(request);
}

}  // namespace masque::train
