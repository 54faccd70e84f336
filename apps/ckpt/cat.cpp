// ckpt cat: the values of a tensor.
#include <memory>

#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "store/inspect/print_tensor.hpp"
#include "store/quantized/decoded_checkpoint.hpp"

namespace masque::ckpt {

namespace {

enum class Form { kTsv, kJson, kRaw };

struct Options {
  std::string checkpoint;
  std::string tensor;
  std::optional<std::string> rows;
  Form form = Form::kTsv;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  store::Checkpoint checkpoint = store::open_decoded(o.checkpoint);
  // A part of a quantised weight is printed as it is stored.
  if (checkpoint.is_decoded() && checkpoint.find(o.tensor) == nullptr)
    checkpoint = store::open_checkpoint(o.checkpoint);
  const store::TensorInfo& tensor = checkpoint.get(o.tensor);
  const store::RowRange rows = store::parse_row_range(o.rows.value_or(""), tensor);
  const store::PrintForm form = o.form == Form::kRaw    ? store::PrintForm::kRaw
                                : o.form == Form::kJson ? store::PrintForm::kJson
                                                        : store::PrintForm::kTsv;
  store::print_tensor(checkpoint, tensor, rows, form,
                      [&](std::string_view text) { session.print(text); });
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_cat(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("cat", "prints a tensor: one line per row of the first dimension");
  c.example("ckpt cat bert-base/ bert.embeddings.word_embeddings.weight --rows 103",
            "the embedding of [MASK], id 103");
  c.example("ckpt cat model.safetensors bias --format raw | xxd", "the raw bytes, little-endian");
  cli::add_checkpoint(c, o->checkpoint);
  c.argument("TENSOR", o->tensor, "name of the tensor");
  c.option("--rows", "A:B", o->rows, "prints rows A to B − 1; A alone: one row [all]");
  c.choice("--format", o->form, {{"tsv", Form::kTsv}, {"json", Form::kJson}, {"raw", Form::kRaw}},
           "output: values separated by tabs, JSON arrays, or raw bytes");
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
