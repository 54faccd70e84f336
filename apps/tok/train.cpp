// tok train: a vocabulary from text.
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/output_folder.hpp"
#include "base/thread/ordered_work.hpp"
#include "commands.hpp"
#include "input.hpp"
#include "text/train/trained_tokenizer.hpp"

namespace masque::tok {

namespace {

/// Words are counted by blocks of lines, so that what is forgotten depends on the text alone.
constexpr std::uint64_t kBlockLines = 1 << 14;

struct Options {
  std::string output;
  text::TrainOptions train;
  int size = 30000;
  bool cased = false;
  bool force = false;
  InputOptions input;
  cli::CommonOptions common;
};

struct TrainBatch {
  LineBatch lines;
  /// Counts of each block of lines that the batch has a part of.
  std::map<std::uint64_t, text::WordCounts> blocks;
};

void check(Options& o) {
  o.train.size = static_cast<std::size_t>(o.size);
  o.train.lowercase = !o.cased;
  for (const std::string& token : o.train.special) {
    if (token.empty()) throw UsageError("--special: found '', expected a token");
  }
  const std::size_t least = o.train.kind == text::TrainedKind::kByteLevelBpe ? 257 : 6;
  if (o.train.size < least + o.train.special.size()) {
    throw UsageError(
        fmt::format("--size {}, expected at least {}", o.size, least + o.train.special.size()));
  }
}

cli::ExitCode run(Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.common);
  check(o);
  need_stream(command);
  OutputFolder output(o.output, o.force ? Existing::kReplace : Existing::kRefuse);
  const text::WordCutter cutter(o.train);
  text::WordCounts counts(o.train.max_words);
  std::uint64_t block = 0;
  LineInput input = cli::open_lines(0, kStandardInput, o.input);
  InputLines lines(o.input);
  lines.leave_out_long(input);
  OrderedSteps<TrainBatch> steps;
  steps.read = [&](TrainBatch& batch) { return input.read(batch.lines); };
  steps.work = [&](TrainBatch& batch, int) {
    batch.blocks.clear();
    lines.each(batch.lines, [&](std::uint64_t number, std::string_view line) {
      auto& here = batch.blocks.try_emplace((number - 1) / kBlockLines, SIZE_MAX).first->second;
      cutter.cut(line, [&](std::string_view word) { here.add(word); });
    });
  };
  steps.write = [&](TrainBatch& batch) {
    for (const auto& [number, part] : batch.blocks) {
      if (number != block) counts.prune();
      block = number;
      part.each([&](const std::string& word, std::uint64_t count) { counts.add(word, count); });
    }
  };
  ordered_work(o.common.threads, steps);
  if (counts.size() == 0) throw InputError(kStandardInput, "no words, expected some");
  const auto files = text::train_tokenizer(counts.sorted(), o.train);
  for (const auto& [name, content] : files) {
    const Descriptor file = output.create(name, 0644);
    write_all(file.get(), as_bytes(content), join(o.output, name));
  }
  output.commit();
  if (counts.forgotten() > 0) {
    session.note(
        fmt::format("more than {} distinct words: rare ones were dropped, each after at most {} "
                    "occurrences (--max-words)",
                    o.train.max_words, counts.forgotten()));
  }
  session.note(fmt::format("{} distinct words", counts.size()));
  return lines.finish(session);
}

}  // namespace

void declare_train(cli::Command& tool) {
  using text::TrainedKind;
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("train", "trains a tokenizer on the text on standard input");
  c.example("tok train -o my-bert/ --size 8000 < text", "WordPiece, lower case");
  c.example("tok train -o my-gpt/ --model bpe --size 8000 < text", "byte-level BPE");
  c.option("-o,--output", "DIR", o->output, "folder to write", cli::Need::kRequired);
  c.choice("--model", o->train.kind,
           {{"wordpiece", TrainedKind::kWordPiece}, {"bpe", TrainedKind::kByteLevelBpe}},
           "type of the tokenizer: WordPiece as BERT, or byte-level BPE as GPT-2");
  c.option("--size", "N", o->size, cli::AllowedRange{1, 10'000'000},
           "vocabulary size; smaller if no pair is frequent enough");
  c.flag("--cased", o->cased, "keeps upper case and accents (wordpiece)");
  c.option("--min-count", "N", o->train.min_count, "merges only pairs that occur at least N times");
  c.option("--alphabet", "N", o->train.max_alphabet,
           "keeps the N most frequent characters (wordpiece)");
  c.option("--special", "TOKEN", o->train.special, "adds a special token; may be repeated");
  c.option("--max-words", "N", o->train.max_words,
           "maximum distinct words to count; limits memory");
  c.flag("--force", o->force,
         "replaces an existing output folder, unless other files would be lost");
  add_input(c, o->input);
  cli::add_policy(c, o->input.bad);
  add_threads(c, o->common);
  add_quiet(c, o->common);
  c.read_only_if(
      {"cased", "alphabet"}, [o] { return o->train.kind == TrainedKind::kWordPiece; },
      "with --model bpe");
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::tok
