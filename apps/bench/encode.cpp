// bench encode: the speed of text to ids on one thread.
#include <memory>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/string/split.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "text/fast/fast_encoder.hpp"
#include "text/model/vocabulary_file.hpp"
#include "text/open/spiece_model.hpp"
#include "timing.hpp"

namespace masque::bench {

namespace {

struct Options {
  std::string tokenizer;
  std::string file;
  int repeats = 5;
  bool cased = false;
  cli::CommonOptions common;
};

struct Encoder {
  std::string kind;
  std::function<std::shared_ptr<const text::TokenModel>()> load;
  std::function<std::unique_ptr<text::FastEncoder>(text::Steps)> make;
};

std::string read(const std::string& path) { return read_text(path, std::uint64_t{1} << 32); }

/// By the files of the folder, whole steps for BERT and GPT-2, without normalizer for
/// SentencePiece.
Encoder encoder_of(const Options& o) {
  const auto file = [&](const std::string& name) { return join(o.tokenizer, name); };
  if (const std::string path = file("vocab.txt"); exists(path)) {
    const text::BertFields fields{true, true, !o.cased, !o.cased};
    return {"wordpiece",
            [=] { return text::make_wordpiece(text::read_vocab_txt(read(path), path).tokens, {}); },
            [=](text::Steps steps) { return text::make_bert_encoder(std::move(steps), fields); }};
  }
  if (const std::string merges = file("merges.txt"); exists(merges)) {
    const std::string vocab = file("vocab.json");
    return {
        "byte-bpe",
        [=] {
          return text::make_bpe(text::read_vocab_json(read(vocab), vocab),
                                text::read_merges_txt(read(merges), merges), {}, merges);
        },
        [](text::Steps steps) { return text::make_byte_level_encoder(std::move(steps), false); }};
  }
  const std::string path = file("spiece.model");
  if (!exists(path)) {
    throw InputError(o.tokenizer, "no vocab.txt, merges.txt or spiece.model");
  }
  return {"sentencepiece",
          [=] {
            return text::make_spiece(text::read_spiece_model(read(path), path),
                                     text::PieceRules::kHuggingFace, path);
          },
          [](text::Steps steps) {
            return text::make_metaspace_encoder(std::move(steps), text::PrependMark::kAlways);
          }};
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const Encoder kind = encoder_of(o);
  text::Steps steps;
  const Timing load = time_of(o.repeats, [&] { steps.model = kind.load(); });
  const auto encoder = kind.make(steps);
  const std::string all = read(o.file);
  const std::vector<std::string_view> lines = split_terminated(all, '\n');
  std::size_t tokens = 0;
  std::uint64_t sum = 0;
  const Timing timing = time_of(o.repeats, [&] {
    std::vector<TokenId> ids;
    tokens = 0;
    sum = 0;
    for (const std::string_view line : lines) {
      ids.clear();
      encoder->encode(line, ids);
      tokens += ids.size();
      for (const TokenId id : ids) sum = sum * 31 + static_cast<std::uint64_t>(id);
    }
  });
  const auto speed = [&](double ms) { return static_cast<double>(all.size()) / ms / 1e3; };
  cli::Table table(session, o.common,
                   {"model", "bytes", "tokens", "sum", "load_ms", "MB/s", "MB/s_min", "MB/s_max"});
  table.row({kind.kind, static_cast<std::uint64_t>(all.size()), static_cast<std::uint64_t>(tokens),
             sum, load.median, speed(timing.median), speed(timing.most), speed(timing.least)});
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_encode(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("encode", "speed of a tokenizer, line by line, on one thread");
  c.example("bench encode bert-base-uncased train.txt", "BERT's tokenizer");
  c.argument("TOKENIZER_DIR", o->tokenizer, "folder with vocab.txt, merges.txt or spiece.model");
  c.argument("TEXT", o->file, "a text file");
  add_repeats(c, o->repeats);
  c.flag("--cased", o->cased, "vocab.txt: keep case and accents");
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
