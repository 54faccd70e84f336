// droptoken pack: documents into sequences of a fixed length.
#include "records/pack.hpp"

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  RecordStreamOptions stream;
  std::int64_t length = 512;
  int pos_start = 0;
  bool cut = false;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  if (o.stream.shard) {
    throw UsageError(
        "--shard cannot be combined with pack, which needs all documents: split the input and pack "
        "the parts");
  }
  const Tokens tokens(o.stream);
  records::Packer packer(
      {.length = static_cast<std::size_t>(o.length), .pos_start = o.pos_start, .cut = o.cut});
  std::uint64_t documents = 0;
  std::uint64_t sequences = 0;
  std::uint64_t ids = 0;
  std::string rest;
  const auto emit = [&](std::string& out) {
    return [&](const records::Record& record) {
      ++sequences;
      ids += record.size();
      append_record(record, out);
    };
  };
  const records::FilterResult result = walk_records(filter_of(o.stream, tokens, session),
                                                    [&](records::Record& record, std::string& out) {
                                                      packer.add(record, emit(out));
                                                      ++documents;
                                                    });
  packer.finish(emit(rest));
  session.print(rest);
  const cli::ExitCode code = report_bad(o.stream, result, session);
  session.flush();
  const double room = static_cast<double>(sequences) * static_cast<double>(o.length);
  session.note(fmt::format("{} documents in {} sequences, {:.2f} % filled", documents, sequences,
                           sequences == 0 ? 0.0 : 100 * static_cast<double>(ids) / room));
  return code;
}

}  // namespace

void declare_pack(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "pack", "packs documents into sequences of a fixed length; adds doc, pos and cu_seqlens");
  c.example("droptoken pack --length 512 < ids > records", "no document is split");
  c.example("droptoken pack --length 512 --pos-start 2 --cut < ids > records",
            "positions as in RoBERTa; full sequences");
  c.option("--length", "N", o->length, cli::AllowedRange{1, 1e9},
           "maximum number of tokens of a sequence");
  c.option("--pos-start", "P", o->pos_start, cli::AllowedRange{0, 1e6},
           "position of the first token of each document");
  c.flag("--cut", o->cut, "split documents at the end of a sequence");
  add_reading(c, o->stream);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
