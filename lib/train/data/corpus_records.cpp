#include "train/data/corpus_records.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "records/record_filter.hpp"
#include "records/record_mask.hpp"

namespace masque::train {

namespace {

// Sums of weights stay finite.
constexpr double kLargestWeight = 1e30;

/// One record after the other into a corpus.
class RecordTaker {
 public:
  RecordTaker(const records::TokenTable& tokens, const CorpusOptions& options)
      : tokens_(tokens), options_(options) {}

  void take(records::Record& record) {
    if (record.ids.empty()) return;
    if (options_.labels && record.original.present && !record.labels.present) join(record);
    check_length(record);
    check_places(record);
    check_labels(record);
    segments_.assign(record.seg.values.begin(), record.seg.values.end());
    CorpusItem item;
    item.ids = record.ids;
    item.segments = segments_;
    item.positions = record.pos.values;
    item.labels = record.labels.values;
    if (record.has_weights) item.weights = record.weights;
    if (record.mask) item.mask = *record.mask;
    item.line = static_cast<Index>(record.number) + 1;
    corpus_.add(item);
  }

  Corpus finish(const std::string& name) {
    if (corpus_.size() == 0) throw InputError(name, "no record with a token, expected JSON lines");
    if (options_.labels && !learns_)
      throw InputError(name, "labels: none in any record, expected some to learn");
    if (options_.labels) corpus_.set_labels(kind_);
    return std::move(corpus_);
  }

 private:
  /// What bart hides as a source, the original as its target: read from left to right, each token
  /// predicted by the row before it.
  void join(records::Record& record) const {
    std::vector<std::int32_t>& target = record.original.values;
    for (const std::int32_t id : target) {
      if (id < 0 || id >= tokens_.size)
        throw InputError(fmt::format("original: id {}, expected 0 to {}", id, tokens_.size - 1));
    }
    if (record.mask || record.pos.present || record.seg.present)
      throw InputError("original without labels, and mask, pos or seg: expected none of these");
    // Both begin with the token that begins a text: as in pairs, the target has none.
    const bool begins = !target.empty() && target.front() == record.ids.front() &&
                        tokens_.is_special(target.front());
    if (begins) target.erase(target.begin());
    if (target.empty()) throw InputError("original: no token, expected some");
    const std::size_t source = record.size();
    record.ids.insert(record.ids.end(), target.begin(), target.end());
    const std::size_t n = record.size();
    std::vector<std::int32_t>& labels = record.labels.make(n);
    std::vector<std::int32_t>& segments = record.seg.make(n);
    std::ranges::fill(labels, records::kNoLabel);
    for (std::size_t i = 0; i < n; ++i) {
      segments[i] = i < source ? 0 : 1;
      if (i + 1 >= source && i + 1 < n) labels[i] = record.ids[i + 1];
    }
    record.mask = fmt::format("unilm({},{})", source, n - source);
    record.original.clear();
  }

  void check_length(const records::Record& record) const {
    if (std::ssize(record.ids) > options_.length)
      throw InputError(
          fmt::format("{} tokens, expected at most {}", record.ids.size(), options_.length));
  }

  /// Segments, positions and mask.
  void check_places(const records::Record& record) const {
    for (const std::int32_t segment : record.seg.values) {
      if (segment != 0 && segment != 1)
        throw InputError(fmt::format("seg {}, expected 0 or 1", segment));
    }
    for (const std::int32_t position : record.pos.values) {
      if (position < 0 || position >= options_.length)
        throw InputError(fmt::format("pos {}, expected 0 to {} ({})", position, options_.length - 1,
                                     field("length")));
    }
    if (record.mask) records::bind_record_mask(*record.mask, std::ssize(record.ids));
  }

  void check_labels(const records::Record& record) {
    if (!options_.labels) {
      if (!record.labels.present && !record.has_weights && !record.original.present) return;
      throw InputError(fmt::format("{}, which only {} records learns: expected none",
                                   record.labels.present ? "labels"
                                   : record.has_weights  ? "weights"
                                                         : "original",
                                   field("objective")));
    }
    if (!record.labels.present)
      throw InputError("no labels, expected what is predicted at each token, -100 for nothing");
    const LabelKind kind = record.original.present ? LabelKind::kReplaced : LabelKind::kTokens;
    if (kind_ == LabelKind::kNone) kind_ = kind;
    if (kind != kind_)
      throw InputError(fmt::format("labels {} original, expected records of one kind",
                                   kind == LabelKind::kReplaced ? "next to" : "without"));
    const std::int32_t end = kind == LabelKind::kReplaced ? 2 : tokens_.size;
    for (std::size_t i = 0; i < record.size(); ++i) {
      const std::int32_t label = record.labels.values[i];
      if (label == records::kNoLabel) continue;
      learns_ = true;
      if (label < 0 || label >= end)
        throw InputError(
            fmt::format("labels: {} at token {}, expected 0 to {}, or -100", label, i, end - 1));
    }
    for (const double weight : record.weights) {
      if (!(weight >= 0)) throw InputError(fmt::format("weights: {}, expected 0 or more", weight));
      if (weight > kLargestWeight)
        throw InputError(fmt::format("weights: {}, expected at most {}", weight, kLargestWeight));
    }
  }

  const records::TokenTable& tokens_;
  const CorpusOptions& options_;
  Corpus corpus_;
  std::vector<std::uint8_t> segments_;
  LabelKind kind_ = LabelKind::kNone;
  bool learns_ = false;
};

}  // namespace

Corpus read_records(const std::string& path, const std::string& name,
                    const text::Tokenizer& tokenizer, const CorpusOptions& options) {
  records::RecordFilter filter{.input = path, .format = records::LineFormat::kJson};
  text::EncodeOptions with_template;
  with_template.special = true;
  filter.make_encoder = [&]() -> records::EncodeFunction {
    const auto encoder = std::make_shared<text::IdEncoder>(tokenizer.id_encoder(with_template));
    return
        [encoder](std::string_view line, std::vector<TokenId>& ids) { encoder->encode(line, ids); };
  };
  filter.threads = options.threads;
  filter.strict = true;
  filter.tokens = token_table(tokenizer);
  filter.sink = [](std::string_view) {};
  RecordTaker taker(filter.tokens, options);
  records::walk_records(filter, [&](records::Record& record, std::string&) { taker.take(record); });
  return taker.finish(name);
}

}  // namespace masque::train
