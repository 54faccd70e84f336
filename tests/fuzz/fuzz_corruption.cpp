// A chain of corruptions with any options on any record: nothing crashes, and what is written can
// be read again.
#include <string>

#include "base/error.hpp"
#include "base/input/line_filter.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "records/bart.hpp"
#include "records/drop.hpp"
#include "records/electra.hpp"
#include "records/mdlm.hpp"
#include "records/mlm.hpp"
#include "records/pack.hpp"
#include "records/perm.hpp"
#include "records/prefix.hpp"
#include "records/record_reader.hpp"
#include "records/undo.hpp"

namespace masque::records {
namespace {

constexpr TokenId kVocabulary = 64;

/// Options from bytes; zeros when they are used up.
class Options {
 public:
  explicit Options(std::string_view bytes) : bytes_(bytes) {}
  unsigned next() {
    if (at_ >= bytes_.size()) return 0;
    return static_cast<unsigned char>(bytes_[at_++]);
  }
  double share() { return next() / 255.0; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

TokenTable table() {
  TokenTable tokens;
  tokens.size = kVocabulary;
  tokens.mask = 4;
  tokens.special.assign(5, 1);
  tokens.begins_word.assign(kVocabulary, 1);
  for (std::size_t i = 1; i < kVocabulary; i += 3) tokens.begins_word[i] = 0;
  return tokens;
}

SelectionOptions selection(Options& o) {
  SelectionOptions s;
  s.rate = o.share();
  if (o.next() % 2 == 1) s.rate_high = s.rate + (1 - s.rate) * o.share();
  s.unit = static_cast<Unit>(o.next() % 3);
  s.choice = static_cast<Choice>(o.next() % 4);
  s.span_p = 0.01 + 0.99 * o.share();
  s.span_longest = 1 + o.next() % 20;
  s.seed = o.next();
  return s;
}

std::unique_ptr<Corruption> corruption(Options& o) {
  switch (o.next() % 10) {
    case 0: return make_drop({o.share(), o.next() % 4, o.next() % 2 == 1, o.next()}, table());
    case 1: return make_mae({o.share(), o.next() % 4, o.next()}, table());
    case 2: {
      MlmOptions mlm{.selection = selection(o)};
      mlm.mask = o.share();
      mlm.keep = 0;
      mlm.random = 1 - mlm.mask;
      mlm.draws = o.next() % 3;
      mlm.fixed_selection = o.next() % 2 == 1;
      return make_mlm(mlm, table());
    }
    case 3:
      return make_perm({.hf = o.next() % 2 == 1,
                        .predict = o.share(),
                        .perm_size = o.next() % 9,
                        .alpha = 1 + o.next() % 7,
                        .beta = 1 + o.next() % 3,
                        .seed = o.next()},
                       table());
    case 9:
      return make_perm({.predict = o.share(),
                        .perm_size = 1 + o.next() % 9,
                        .no_spans = o.next() % 2 == 1,
                        .causal_blocks = true,
                        .seed = o.next()},
                       table());
    case 8:
      return make_mdlm(
          {.batch_size = 1 + o.next() % 9, .block_size = o.next() % 7, .seed = o.next()}, table());
    case 4: return make_electra({.selection = selection(o)}, table());
    case 5:
      return make_bart({static_cast<BartNoise>(o.next() % 5), o.share(), 5 * o.share(),
                        static_cast<TokenId>(o.next() % kVocabulary), o.next()},
                       table());
    case 6: {
      const double low = o.share();
      return make_prefix({low,
                          low + (1 - low) * o.share(),
                          {o.share() + 0.1, o.share(), o.share(), o.share()},
                          o.next()});
    }
    default: return make_undo();
  }
}

/// Reads a line as droptoken does: ids within the vocabulary, lengths that fit.
bool read(std::string_view line, Record& record) {
  std::string text;
  text.reserve(line.size() + kLinePadding);
  text = line;
  JsonRecordReader reader;
  if (reader.read(text, record) || reader.text()) return false;
  record.other.clear();  // views of `text`
  for (const TokenId id : record.ids) {
    if (id < 0 || id >= kVocabulary) return false;
  }
  return record.size() <= 1000;
}

const char* wrong(std::string_view data) {
  const std::size_t end = std::min(data.find('\n'), data.size());
  Record record;
  if (!read(data.substr(0, end), record)) return nullptr;
  Options options(data.substr(std::min(data.size(), end + 1)));
  Scratch scratch;
  Tally tally;
  const unsigned stages = 1 + options.next() % 4;
  try {
    for (unsigned stage = 0; stage < stages; ++stage) {
      corruption(options)->apply(record, scratch, tally);
      if (length_problem(record)) return "lists of another length";
    }
  } catch (const InputError&) {
    return nullptr;  // this record does not fit
  }
  std::string out;
  append_record(record, out);
  Record again;
  for (const TokenId id : record.ids) {
    if (id < 0) return "an id below 0";
  }
  std::string line = out.substr(0, out.size() - 1);
  line.reserve(line.size() + kLinePadding);
  JsonRecordReader reader;
  return reader.read(line, again) ? "what was written is refused" : nullptr;
}

}  // namespace
}  // namespace masque::records

MASQUE_FUZZ_TARGET(masque::records::wrong)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_lines)
