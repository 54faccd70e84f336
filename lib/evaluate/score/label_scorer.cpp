#include "evaluate/score/label_scorer.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/parallel.hpp"
#include "evaluate/score/token_distribution.hpp"

namespace masque::evaluate {

namespace {

/// Any text: a word is looked at next to it.
constexpr std::string_view kSomeText = "a";

bool fits_one_pass(const LabelWords& words, ScoreKind kind, bool two_streams) {
  if (words.most_tokens != 1 || two_streams || reads_one_number(kind)) return false;
  return kind != ScoreKind::kCausal || words.last;
}

ScoreOptions without_policy(ScoreOptions options) {
  options.policy = {};
  return options;
}

}  // namespace

LabelWords label_words(const ClozeEncoder& encoder, const text::Tokenizer& tokenizer,
                       std::vector<VerbalizedLabel> labels) {
  const std::vector<std::string> texts(encoder.pattern().texts(), std::string(kSomeText));
  const ClozeEncoder endless(tokenizer, encoder.pattern(),
                             {.sentence = encoder.options().sentence});
  LabelWords out;
  std::map<std::vector<TokenId>, std::string> known;
  for (const VerbalizedLabel& label : labels) {
    auto& of_label = out.ids.emplace_back();
    for (const std::string& word : label.words) {
      ClozeSentence cloze;
      const auto problem = input_error_message([&] { cloze = endless.encode(texts, word, 0); });
      if (problem) throw UsageError(fmt::format("{}: {}", field("labels"), *problem));
      const std::vector<TokenId>& ids = cloze.sentence.ids;
      std::vector<TokenId> tokens(ids.begin() + cloze.begin, ids.begin() + cloze.end);
      if (const auto unk = tokenizer.roles().unk; unk && std::ranges::count(tokens, *unk) > 0) {
        throw UsageError(fmt::format("{}: the tokenizer does not know '{}', expected another word",
                                     field("labels"), escape(word)));
      }
      const auto [same, is_new] = known.try_emplace(tokens, word);
      if (!is_new) {
        throw UsageError(
            fmt::format("{}: '{}' and '{}' have the same tokens, expected different words",
                        field("labels"), escape(same->second), escape(word)));
      }
      out.most_tokens = std::max(out.most_tokens, cloze.tokens());
      out.last = cloze.end == cloze.sentence.size() - cloze.sentence.suffix;
      of_label.push_back(std::move(tokens));
    }
  }
  out.labels = std::move(labels);
  return out;
}

LabelScorer::LabelScorer(const model::Model& model, const ClozeEncoder& encoder,
                         const LabelWords& words, ScoreOptions options,
                         const LengthNormalization& length, Sink sink)
    : encoder_(encoder),
      words_(words),
      options_(without_policy(std::move(options))),
      length_(length),
      reads_front_(options_.kind == ScoreKind::kCausal &&
                   model.design().streams != model::Streams::kTwo),
      one_pass_(
          fits_one_pass(words, options_.kind, model.design().streams == model::Streams::kTwo)),
      sink_(std::move(sink)),
      runner_(model, options_.batch_tokens),
      scorer_(model, options_, [this](ScoredSentence&& scored) {
        Pending& pending = pending_.front();
        pending.words[pending.scored++] = scored.score / length_.divisor(scored.tokens);
        deliver();
      }) {
  for (const auto& label : words.ids) {
    for (const std::vector<TokenId>& word : label) first_tokens_.push_back(word.front());
  }
}

std::vector<ClozeSentence> LabelScorer::sentences(std::span<const std::string> texts) const {
  return encoded(
      [&](std::string_view word) { return encoder_.encode(texts, word, words_.most_tokens); });
}

std::vector<ClozeSentence> LabelScorer::content_free_sentences(const std::string& text) const {
  return encoded([&](std::string_view word) {
    return encoder_.encode_content_free(text, word, words_.most_tokens);
  });
}

std::vector<ClozeSentence> LabelScorer::encoded(const Encode& encode) const {
  std::vector<ClozeSentence> out;
  for (const VerbalizedLabel& label : words_.labels) {
    for (const std::string& word : label.words) {
      if (one_pass_ && !out.empty()) break;
      out.push_back(encode(word));
      if (reads_front_ && out.back().begin == 0) {
        throw InputError("no token before the label's word, expected one to predict it from");
      }
    }
  }
  return out;
}

void LabelScorer::add(std::uint64_t id, std::vector<ClozeSentence> sentences) {
  MASQUE_CHECK(sentences.size() == (one_pass_ ? 1 : first_tokens_.size()));
  Pending& pending = pending_.emplace_back();
  pending.id = id;
  pending.words.resize(first_tokens_.size());
  if (one_pass_) {
    add_one_pass(pending, std::move(sentences.front()));
    return;
  }
  for (ClozeSentence& cloze : sentences) {
    Sentence& sentence = cloze.sentence;
    const Index begin = cloze.begin - sentence.prefix;
    const Index end =
        options_.kind == ScoreKind::kCausal ? sentence.tokens() : cloze.end - sentence.prefix;
    scorer_.add(id, std::move(sentence), begin, end);
  }
}

void LabelScorer::add_one_pass(Pending& pending, ClozeSentence cloze) {
  Sentence& sentence = cloze.sentence;
  // Next to some texts the first label's word may be several tokens: one token stands for it.
  const auto erase = [&](auto& list) {
    if (!list.empty()) list.erase(list.begin() + cloze.begin + 1, list.begin() + cloze.end);
  };
  erase(sentence.ids);
  erase(sentence.segments);
  erase(sentence.words);
  Job job;
  job.segments = sentence.segments;
  job.ids = sentence.ids;
  if (is_masked(options_.kind)) {
    for (const Index t : hidden_with(options_.kind, sentence, cloze.begin))
      job.ids[static_cast<std::size_t>(t)] = *options_.mask;
  } else {
    job.ids[static_cast<std::size_t>(cloze.begin)] = first_tokens_.front();
    if (options_.check_length) options_.check_length(std::ssize(job.ids));
  }
  if (options_.mask_of) job.mask = options_.mask_of(job.ids);
  job.rows = {reads_front_ ? cloze.begin - 1 : cloze.begin};
  job.take = [this, &pending](std::size_t /*row*/, std::span<const double> logits) {
    const TokenDistribution p = predict(logits);
    for (std::size_t w = 0; w < first_tokens_.size(); ++w)
      pending.words[w] = p.logarithm[static_cast<std::size_t>(first_tokens_[w])];
  };
  pending.scored = first_tokens_.size();
  pending.last_job = ++jobs_;
  runner_.add(std::move(job));
  deliver();
}

void LabelScorer::deliver() {
  while (!pending_.empty() && pending_.front().scored == first_tokens_.size() &&
         pending_.front().last_job <= runner_.done()) {
    LabelScores scores = scores_of(pending_.front());
    pending_.pop_front();
    sink_(std::move(scores));
  }
}

LabelScores LabelScorer::scores_of(const Pending& pending) const {
  LabelScores out{.id = pending.id, .scores = {}};
  std::size_t at = 0;
  for (const VerbalizedLabel& label : words_.labels) {
    double sum = 0;
    for (std::size_t w = 0; w < label.words.size(); ++w) sum += pending.words[at++];
    out.scores.push_back(sum / static_cast<double>(label.words.size()));
  }
  return out;
}

void LabelScorer::flush() {
  scorer_.flush();
  runner_.run();
  deliver();
}

std::vector<double> label_probabilities(std::span<const double> scores) {
  return predict(scores).probability;
}

std::vector<double> content_free_probabilities(const model::Model& model,
                                               const ClozeEncoder& encoder, const LabelWords& words,
                                               const ScoreOptions& options,
                                               const LengthNormalization& length,
                                               std::span<const std::string> inputs) {
  MASQUE_CHECK(!inputs.empty());
  std::vector<double> mean(words.labels.size());
  LabelScorer scorer(model, encoder, words, options, length, [&](LabelScores&& found) {
    const std::vector<double> p = label_probabilities(found.scores);
    for (std::size_t l = 0; l < p.size(); ++l) mean[l] += p[l] / static_cast<double>(inputs.size());
  });
  for (std::size_t i = 0; i < inputs.size(); ++i)
    scorer.add(i, scorer.content_free_sentences(inputs[i]));
  scorer.flush();
  for (std::size_t l = 0; l < mean.size(); ++l) {
    if (mean[l] > 0) continue;
    throw InputError(
        fmt::format("label '{}' has probability {} for content-free inputs, expected more than 0",
                    escape(words.labels[l].name), mean[l]));
  }
  return mean;
}

std::vector<double> calibrated(std::span<const double> probabilities,
                               std::span<const double> content_free) {
  std::vector<double> out(probabilities.begin(), probabilities.end());
  double sum = 0;
  for (std::size_t l = 0; l < out.size(); ++l) sum += out[l] /= content_free[l];
  for (double& p : out) p /= sum;
  return out;
}

Index likeliest_label(std::span<const double> probabilities) {
  return std::ranges::max_element(probabilities) - probabilities.begin();
}

}  // namespace masque::evaluate
