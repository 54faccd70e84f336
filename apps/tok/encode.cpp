// tok encode: the ids of each line.
#include <memory>

#include "base/file.hpp"
#include "base/ordered_work.hpp"
#include "base/parallel.hpp"
#include "binary_output.hpp"
#include "commands.hpp"
#include "encode_folder.hpp"
#include "encode_options.hpp"
#include "input.hpp"
#include "record.hpp"
#include "records/token_lines.hpp"

namespace masque::tok {

namespace {

/// Bytes of output for which a batch keeps its memory.
constexpr std::size_t kMostKept = std::size_t{16} << 20;

struct EncodeBatch {
  LineBatch lines;
  std::string out;
};

void append_line(EncodeBatch& batch, const std::vector<TokenId>& ids) {
  records::append_ids(batch.out, ids, ' ');
  batch.out += '\n';
}

cli::ExitCode run(EncodeCommand& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.common);
  check(o);
  need_stream(command);
  const text::Tokenizer tokenizer = open_tokenizer(o.tokenizer, o.open, session);
  if (o.folder) return encode_to_folder(o, tokenizer, session);
  std::unique_ptr<BinaryOutput> binary;
  if (o.binary != 0)
    binary = std::make_unique<BinaryOutput>(*o.output, o.binary, o.layout, tokenizer.size());
  const int threads = o.common.threads > 0 ? o.common.threads : default_threads();
  std::vector<std::unique_ptr<LineTokenizer>> encoders;
  encoders.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i)
    encoders.push_back(std::make_unique<LineTokenizer>(tokenizer, o));
  LineInput input = cli::open_lines(0, kStandardInput, o.input);
  if (o.shard) input.cut(parse_shard(*o.shard));
  InputLines lines(o.input);
  OrderedSteps<EncodeBatch> steps;
  steps.read = [&](EncodeBatch& batch) { return input.read(batch.lines); };
  steps.ready = [&] { return input.ready(); };
  steps.work = [&](EncodeBatch& batch, int worker) {
    LineTokenizer& encoder = *encoders[static_cast<std::size_t>(worker)];
    batch.out.clear();
    lines.each(batch.lines, [&](std::uint64_t number, std::string_view line) {
      const auto encode = [&] {
        if (o.records && o.with.need_encoding()) {
          append_record(batch.out, encoder.encode(line), line, o.with);
        } else if (o.records) {
          append_record(batch.out, encoder.ids(line), line, o.with);
        } else if (binary) {
          binary->append(batch.out, encoder.ids(line));
        } else {
          append_line(batch, encoder.ids(line));
        }
      };
      // A pair that has no tab, or cannot be cut, is the line's fault.
      if (!o.pair) return encode();
      if (const auto problem = input_error_message(encode)) lines.refuse(number, *problem);
    });
  };
  steps.write = [&](EncodeBatch& batch) {
    if (binary) {
      binary->write(batch.out);
      return;
    }
    session.print(batch.out);
    if (batch.out.capacity() > kMostKept) batch = {};
    if (session.stdout_is_terminal() || !input.ready()) session.flush();
  };
  ordered_work(threads, steps);
  if (binary) binary->commit();
  return lines.finish(session);
}

}  // namespace

void declare_encode(cli::Command& tool) {
  auto o = std::make_shared<EncodeCommand>();
  cli::Command& c = tool.subcommand("encode", "prints the token ids of each input line");
  c.example("tok encode bert-base-uncased/ < text", "one line of ids per line of text");
  c.example("tok encode bert-base-uncased/ --special --jsonl --with text,offsets,tokens < text",
            "JSON records, including [CLS] and [SEP]");
  c.example("tok encode gpt2/ --binary u16 -o train.bin < text",
            "a binary file of ids for nanoGPT");
  c.example("tok encode gpt2/ --to tokens < text", "a token folder for lm-train");
  add_encode(c, *o);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::tok
