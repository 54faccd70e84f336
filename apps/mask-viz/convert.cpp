// mask-viz convert: a mask from one program's convention to another's.
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "exchange/convention.hpp"
#include "exchange/matrix.hpp"
#include "output.hpp"
#include "positions.hpp"

namespace masque::mask_viz {

namespace {

struct Options {
  std::string file;
  std::string from;
  std::string to;
  std::string output;
  PositionOptions positions;
  std::optional<Index> item;
  bool force = false;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const exchange::Convention& from = convention_of(o.from);
  const exchange::Convention& to = convention_of(o.to);
  exchange::DecodeRequest request{.path = input_name(o.file), .item = o.item};
  if (o.positions.length) {
    const Index keys = o.positions.keys.value_or(*o.positions.length);
    request.lengths = mask::Lengths{*o.positions.length, keys};
  } else if (o.positions.keys) {
    throw UsageError("--keys needs -n");
  }
  const mask::Mask mask = mask::from_bits(exchange::read_mask(from, o.file, request));
  if (request.lengths && *request.lengths != mask.lengths()) {
    throw InputError(
        o.file, fmt::format("mask of {} × {}, expected {} × {}", mask.lengths().queries,
                            mask.lengths().keys, request.lengths->queries, request.lengths->keys));
  }
  write_convention(o.output, mask, to, request.path, o.force, session);
  return cli::ExitCode::kDone;
}

std::string convention_help() {
  std::string out;
  for (const exchange::Convention* known : exchange::conventions()) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", known->name, known->what);
  }
  return out;
}

}  // namespace

void declare_convert(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("convert", "converts a mask from one program's convention to another's");
  c.example("mask-viz convert mask.npy --from forbid --to hf -o mask_hf.npy",
            "converts a mask of nn.MultiheadAttention for transformers");
  c.example("mask-viz convert mask.npy --from allow --to cu_seqlens -o ends.tsv",
            "writes the boundaries of packed documents");
  c.argument("FILE", o->file,
             "mask file: npy, npz, safetensors, PBM, TSV, or lines of # and .; FILE:NAME picks one "
             "array; - is standard input");
  c.option("--from", "CONVENTION", o->from, convention_help(), cli::Need::kRequired);
  c.option("--to", "CONVENTION", o->to, "target convention; the same names as for --from",
           cli::Need::kRequired);
  c.option("-o,--output", "FILE", o->output, "output file: .npy, .npz, .safetensors or .tsv",
           cli::Need::kRequired);
  c.option("--item", "I", o->item, cli::AllowedRange{0, 1e12},
           "number of the mask in a batch, from 0");
  c.option("-n,--length", "N", o->positions.length, cli::AllowedRange{0, 1e9},
           "number of queries, for conventions without it: packed, intervals");
  c.option("--keys", "N", o->positions.keys, cli::AllowedRange{0, 1e9},
           "number of keys [as many as queries]");
  add_quiet(c, o->common);
  add_large_output(c, o->force);
  c.writes({"output"});
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::mask_viz
