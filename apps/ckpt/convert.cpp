// ckpt convert: another format, dtype, other names, other shards, one file.
#include <algorithm>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/string/ascii.hpp"
#include "base/string/comma_list.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "commands/write_flags.hpp"
#include "store/sharding.hpp"
#include "store/weights_writer.hpp"
#include "surgery/convert/convert_checkpoint.hpp"
#include "surgery/convert/to_llama_cpp.hpp"
#include "tensor/block_encoder.hpp"
#include "write_options.hpp"

namespace masque::ckpt {

namespace {

struct Options {
  std::string in;
  std::string out;
  std::string format;
  std::optional<std::string> dtype;
  std::optional<std::string> shard_size;
  surgery::NameStyle names = surgery::NameStyle::kUsual;
  bool strict = false;
  bool saturate = false;
  bool skip_opaque = false;
  commands::WriteFlags write;
  cli::CommonOptions common;
};

/// Whether an output that is a folder has the name of a file: "model.foo", but not "bert-1.5".
bool looks_like_file(std::string_view out) {
  const std::size_t dot = out.rfind('.');
  if (store::writer_for_path(out) != nullptr || dot == std::string_view::npos || dot == 0 ||
      out[dot - 1] == '/')
    return false;
  const std::string_view ending = out.substr(dot + 1);
  return !ending.empty() &&
         std::ranges::all_of(ending, [](char c) { return is_ascii_small(ascii_small(c)); });
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  surgery::ConvertRequest request;
  request.format = o.format;
  request.names = o.names;
  request.strict = o.strict;
  request.skip_opaque = o.skip_opaque;
  if (o.dtype && find_block_format(*o.dtype) != nullptr) {
    if (std::ranges::find(encoded_formats(), *o.dtype) == encoded_formats().end())
      throw UsageError(fmt::format("--dtype {}: blocks of this type are not written, expected {}",
                                   *o.dtype, surgery::written_blocks()));
    request.blocks = *o.dtype;
  } else if (o.dtype) {
    request.dtype = parse_dtype(*o.dtype);
  }
  if (o.shard_size) request.shard_bytes = store::parse_byte_size(*o.shard_size);
  if (o.saturate) request.overflow = surgery::OverflowPolicy::kSaturate;
  request.write = commands::write_options(o.write, o.common, session);
  const surgery::ConvertResult result = surgery::convert_checkpoint(o.in, o.out, request);
  for (const std::string& note : result.notes) session.note(note);
  if (looks_like_file(o.out))
    session.note(
        fmt::format("{}: the ending is of no known format, so it is a folder", escape(o.out)));
  if (o.strict && !result.unknown.empty()) {
    for (const std::string& name : result.unknown) session.print(escape(name) + "\n");
    session.note("--strict: names are unknown, nothing written");
    return cli::ExitCode::kFound;
  }
  if (o.names != surgery::NameStyle::kKeep && o.names != surgery::NameStyle::kUsual)
    session.note(counted(result.renamed, "name") + " changed");
  session.note(fmt::format("{} tensors, {} with a new dtype, in {}", result.tensors,
                           result.converted, counted(result.files, "file")));
  session.detail_time();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_convert(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("convert", "changes format, dtype, tensor names or shards");
  c.example("ckpt convert bert-base/ -o bert-bf16/ --dtype BF16",
            "to BF16; rounds to nearest, ties to even");
  c.example("ckpt convert big/ -o big-sharded/ --shard-size 2GB",
            "shards of at most 2 GB, and their index");
  c.example("ckpt convert big-sharded/ -o big.safetensors", "merges shards into one file");
  c.example("ckpt convert bert-base/pytorch_model.bin -o bert.npz", "PyTorch to NumPy");
  c.example("ckpt convert old-bert/ -o bert/ --format safetensors --names hf",
            "with the tensor names of current transformers versions");
  c.example("ckpt convert bert/ -o bert-tf/ --format tensorflow --names tf",
            "to a TensorFlow checkpoint for bert4keras");
  c.example("ckpt convert chinese_L-12_H-768_A-12/ -o bert/ --format safetensors --names hf",
            "Google's BERT to transformers");
  c.example("ckpt convert llama/ -o llama.gguf --dtype Q8_0", "to a quantised file of llama.cpp");
  cli::add_checkpoint(c, o->in);
  c.option(
      "-o,--output", "OUTPUT", o->out,
      "a file if the name has a known ending (.safetensors, .npz, .index, …), else a new folder",
      cli::Need::kRequired);
  c.option("--format", "NAME", o->format,
           fmt::format("format of an output folder: {} [the input's]",
                       comma_list(store::weights_writers(), &store::WeightsWriter::name)));
  add_dtype(c, o->dtype,
            "new type of floating-point tensors, in llama.cpp's files also Q8_0, Q4_K or Q4_0: ");
  add_shard_size(c, o->shard_size);
  c.choice("--names", o->names,
           {{"usual", surgery::NameStyle::kUsual},
            {"keep", surgery::NameStyle::kKeep},
            {"hf", surgery::NameStyle::kHf},
            {"tf", surgery::NameStyle::kTf},
            {"variable", surgery::NameStyle::kVariable},
            {"gguf", surgery::NameStyle::kLlamaCpp}},
           "tensor names; usual: gguf in a new .gguf file where llama.cpp has the model, else "
           "keep; hf: of current transformers; tf: of Google's checkpoints; variable: the "
           "variables' names in a TensorFlow 2 object graph; gguf: llama.cpp's, with its metadata");
  c.flag(
      "--strict", o->strict,
      "with --names hf or tf: if names are unknown, prints them and writes nothing; exit code 1");
  c.flag("--saturate", o->saturate,
         "clips values that the new dtype cannot hold, instead of an error");
  c.flag("--skip-opaque", o->skip_opaque,
         "skips tensors without a dtype (quantised, strings), instead of an error");
  commands::add_write_flags(c, o->write);
  add_threads(c, o->common);
  add_quiet(c, o->common);
  add_verbose(c, o->common);
  c.read_only_if(
      {"saturate"}, [o] { return o->dtype.has_value(); }, "without --dtype");
  c.writes({"output"});
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
