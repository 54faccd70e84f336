#include "records/bart.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::records {

namespace {

using Ids = std::vector<TokenId>;

class Bart final : public Corruption {
 public:
  Bart(const BartOptions& options, TokenTable tokens)
      : options_(options),
        tokens_(std::move(tokens)),
        threshold_(share_threshold(options.rate)),
        random_(options.seed, "droptoken bart") {}

  void apply(Record& record, Scratch&, Tally& tally) const override {
    if (record.original.present) {
      throw InputError("record already has original");
    }
    if (record.labels.present || record.has_dropped || record.has_weights ||
        record.cu_seqlens.present || record.mask) {
      throw InputError(
          "record has labels, dropped, weights, cu_seqlens or a mask, which cannot be combined "
          "with this noise");
    }
    if (options_.noise == BartNoise::kPermute && !record.doc.present && options_.sentence_end < 0) {
      throw InputError(
          fmt::format("record has no doc, expected the sentence of each token there, or {}",
                      field("sentence_end")));
    }
    record.original.present = true;
    record.original.values = record.ids;
    for (Numbers* list : {&record.pos, &record.seg, &record.words}) list->clear();
    Draw draw(random_.stream(record.epoch, record.number));
    // The part between a first and a last special token.
    std::size_t begin = 0;
    std::size_t end = record.size();
    if (begin < end && tokens_.is_special(record.ids[begin])) ++begin;
    if (begin < end && tokens_.is_special(record.ids[end - 1])) --end;
    const auto first = record.ids.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = record.ids.begin() + static_cast<std::ptrdiff_t>(end);
    const Ids body = noisy(Ids(first, last), record, begin, draw, tally);
    Ids out(record.ids.begin(), first);
    out.insert(out.end(), body.begin(), body.end());
    out.insert(out.end(), last, record.ids.end());
    record.ids = std::move(out);
    record.doc.clear();
  }

 private:
  Ids noisy(Ids body, const Record& record, std::size_t begin, Draw& draw, Tally& tally) const {
    for (const TokenId id : body) tally.ordinary += tokens_.is_special(id) ? 0U : 1U;
    switch (options_.noise) {
      case BartNoise::kMask:
      case BartNoise::kDelete: return thinned(body, draw, tally);
      case BartNoise::kInfill: return infilled(body, draw, tally);
      case BartNoise::kPermute: return permuted(body, record, begin, draw);
      default: break;
    }
    if (body.size() > 1) {
      const Index start = draw.below(static_cast<Index>(body.size()));
      std::rotate(body.begin(), body.begin() + start, body.end());
    }
    return body;
  }

  Ids thinned(const Ids& body, Draw& draw, Tally& tally) const {
    Ids out;
    for (const TokenId id : body) {
      if (tokens_.is_special(id) || draw.word() >= threshold_) {
        out.push_back(id);
        continue;
      }
      ++tally.selected;
      if (options_.noise == BartNoise::kMask) {
        out.push_back(tokens_.mask);
        ++tally.masked;
      } else {
        ++tally.dropped;
      }
    }
    // A record is never emptied.
    if (out.empty() && !body.empty()) out.push_back(body.front());
    return out;
  }

  /// Poisson by multiplying uniforms (Knuth); small means only.
  Index poisson(Draw& draw) const {
    const double limit = std::exp(-options_.lambda);
    double product = draw.uniform();
    Index count = 0;
    while (product > limit) {
      product *= draw.uniform();
      ++count;
    }
    return count;
  }

  /// Spans that start at random tokens until the share is covered; a span of length 0 inserts.
  Ids infilled(const Ids& body, Draw& draw, Tally& tally) const {
    const std::size_t n = body.size();
    std::vector<std::uint8_t> covered(n, 0);
    std::vector<std::uint8_t> begins(n + 1, 0);
    std::size_t ordinary = 0;
    for (const TokenId id : body) ordinary += tokens_.is_special(id) ? 0U : 1U;
    auto goal = static_cast<Index>(std::llround(options_.rate * static_cast<double>(ordinary)));
    Index left = goal;
    for (const Index start : random_order(static_cast<Index>(n), draw)) {
      if (left <= 0) break;
      const auto at = static_cast<std::size_t>(start);
      if (covered[at] != 0 || begins[at] != 0 || tokens_.is_special(body[at])) continue;
      const Index length = std::min(poisson(draw), left);
      begins[at] = 1;
      for (Index i = 0; i < length && at + static_cast<std::size_t>(i) < n; ++i) {
        const std::size_t j = at + static_cast<std::size_t>(i);
        if (covered[j] != 0 || tokens_.is_special(body[j]) || (i > 0 && begins[j] != 0)) break;
        covered[j] = 1;
        --left;
        ++tally.selected;
      }
    }
    Ids out;
    for (std::size_t i = 0; i < n; ++i) {
      if (begins[i] != 0) {
        out.push_back(tokens_.mask);
        ++tally.masked;
      }
      if (covered[i] == 0) out.push_back(body[i]);
    }
    return out;
  }

  /// Sentences: runs of equal `doc`, or up to the token that ends them.
  Ids permuted(const Ids& body, const Record& record, std::size_t begin, Draw& draw) const {
    std::vector<std::pair<std::size_t, std::size_t>> sentences;
    std::size_t start = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const bool by_doc = record.doc.present;
      const bool ends = i + 1 == body.size() ||
                        (by_doc ? record.doc.values[begin + i] != record.doc.values[begin + i + 1]
                                : body[i] == options_.sentence_end);
      if (!ends) continue;
      sentences.emplace_back(start, i + 1);
      start = i + 1;
    }
    Ids out;
    for (const Index s : random_order(static_cast<Index>(sentences.size()), draw)) {
      const auto& [from, to] = sentences[static_cast<std::size_t>(s)];
      out.insert(out.end(), body.begin() + static_cast<std::ptrdiff_t>(from),
                 body.begin() + static_cast<std::ptrdiff_t>(to));
    }
    return out;
  }

  BartOptions options_;
  TokenTable tokens_;
  std::uint64_t threshold_;
  RandomSource random_;
};

}  // namespace

std::unique_ptr<Corruption> make_bart(const BartOptions& options, TokenTable tokens) {
  if (!(options.rate >= 0 && options.rate <= 1)) {
    throw UsageError(fmt::format("{}: expected a number from 0 to 1", field("rate")));
  }
  if (!(options.lambda >= 0 && options.lambda <= 100)) {
    throw UsageError(fmt::format("{}: expected a number from 0 to 100", field("lambda")));
  }
  const bool masks = options.noise == BartNoise::kMask || options.noise == BartNoise::kInfill;
  if (masks && tokens.mask < 0)
    throw UsageError(fmt::format("no mask token, expected a {} that has one, or {}",
                                 field("tokenizer"), field("mask_token")));
  return std::make_unique<Bart>(options, std::move(tokens));
}

}  // namespace masque::records
