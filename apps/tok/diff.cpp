// tok diff: where two tokenizers disagree.
#include <memory>

#include <fmt/format.h>

#include "base/file/file.hpp"
#include "base/thread/ordered_work.hpp"
#include "commands.hpp"
#include "input.hpp"

namespace masque::tok {

namespace {

struct Options {
  std::string a;
  std::string b;
  text::TokenizerOptions open;
  text::TokenizerOptions other;
  bool ids = false;
  InputOptions input;
  cli::CommonOptions common;
};

/// The first difference of a line.
struct Difference {
  std::uint64_t line = 0;
  std::size_t index = 0;
  std::uint32_t offset = 0;
  std::string a;
  std::string b;
};

struct DiffBatch {
  LineBatch lines;
  std::vector<Difference> found;
  std::uint64_t count = 0;
};

std::string token_at(const text::Encoding& encoding, std::size_t i, bool ids) {
  if (i >= encoding.size()) return {};
  return ids ? fmt::format("{}", encoding.ids[i]) : encoding.tokens[i];
}

void compare(std::uint64_t line, const text::Encoding& a, const text::Encoding& b, bool ids,
             std::vector<Difference>& out) {
  const std::size_t size = std::max(a.size(), b.size());
  for (std::size_t i = 0; i < size; ++i) {
    const bool both = i < a.size() && i < b.size();
    if (both &&
        (ids ? a.ids[i] == b.ids[i] : a.tokens[i] == b.tokens[i] && a.offsets[i] == b.offsets[i])) {
      continue;
    }
    const text::Encoding& longer = i < a.size() ? a : b;
    out.push_back({line, i, longer.offsets[i].begin, token_at(a, i, ids), token_at(b, i, ids)});
    return;
  }
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.common);
  need_stream(command);
  const text::Tokenizer a = open_tokenizer(o.a, o.open, session);
  const text::Tokenizer b = open_tokenizer(o.b, o.other, session);
  const text::EncodeOptions options;
  LineInput input = cli::open_lines(0, kStandardInput, o.input);
  InputLines lines(o.input);
  lines.leave_out_long(input);
  std::uint64_t total = 0;
  std::uint64_t different = 0;
  cli::Table table(session, o.common, {"line", "token", "offset", "a", "b"});
  OrderedSteps<DiffBatch> steps;
  steps.read = [&](DiffBatch& batch) { return input.read(batch.lines); };
  steps.ready = [&] { return input.ready(); };
  steps.work = [&](DiffBatch& batch, int) {
    batch.found.clear();
    batch.count = 0;
    lines.each(batch.lines, [&](std::uint64_t number, std::string_view line) {
      ++batch.count;
      compare(number, a.encode(line, options), b.encode(line, options), o.ids, batch.found);
    });
  };
  steps.write = [&](DiffBatch& batch) {
    total += batch.count;
    different += batch.found.size();
    for (const Difference& d : batch.found)
      table.row({d.line, static_cast<std::uint64_t>(d.index), std::uint64_t{d.offset}, d.a, d.b},
                cli::Tone::kBad);
  };
  ordered_work(o.common.threads, steps);
  table.finish();
  session.note(fmt::format("{} of {} lines differ", different, total));
  const cli::ExitCode end = lines.finish(session);
  if (end != cli::ExitCode::kDone) return end;
  return different == 0 ? cli::ExitCode::kDone : cli::ExitCode::kFound;
}

}  // namespace

void declare_diff(cli::Command& tool) {
  using text::Flavor;
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "diff", "shows the first different token of each line; exit code 1 if any line differs");
  c.example("tok diff bert-base-uncased/ other/ < text", "same tokens at the same offsets?");
  c.example("tok diff --other-flavor google bert/ bert/ < text", "where do Google's rules differ?");
  c.argument("A", o->a, "a tokenizer");
  c.argument("B", o->b, "another tokenizer");
  c.flag("--ids", o->ids, "compares ids instead of tokens and offsets");
  add_flavor(c, o->open);
  c.choice("--other-flavor", o->other.flavor,
           {{"auto", Flavor::kAuto},
            {"hf", Flavor::kHuggingFace},
            {"google", Flavor::kGoogle},
            {"bert4keras", Flavor::kBert4Keras},
            {"spm", Flavor::kSentencePiece}},
           "--flavor for B");
  add_input(c, o->input);
  cli::add_policy(c, o->input.bad);
  add_threads(c, o->common);
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::tok
