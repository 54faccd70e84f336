// bench generate: tokens per second of texts that a causal model continues.
#include "evaluate/write/generate.hpp"

#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/output_file.hpp"
#include "base/random/random.hpp"
#include "base/string/split.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/files.hpp"
#include "commands/run_options.hpp"
#include "kernel/parallel.hpp"
#include "product.hpp"
#include "timing.hpp"

namespace masque::bench {
namespace {

struct Options {
  std::string model;
  kernel::Precision precision = kernel::Precision::kF32;
  std::optional<std::string> ids;
  int batch = 8;
  int prompt_tokens = 16;
  std::int64_t max_new_tokens = 64;
  std::int64_t num_beams = 1;
  std::optional<std::string> output;
  kernel::ProductChoice product = kernel::ProductChoice::kFewRows;
  int repeats = 3;
  cli::CommonOptions common;
};

std::vector<evaluate::Prompt> prompts_of(const Options& o, Index vocabulary) {
  std::vector<evaluate::Prompt> prompts;
  if (!o.ids) {
    for (int s = 0; s < o.batch; ++s) {
      evaluate::Prompt& prompt = prompts.emplace_back();
      prompt.id = static_cast<std::uint64_t>(s);
      Draw draw(1, "bench generate", prompt.id);
      for (int i = 0; i < o.prompt_tokens; ++i)
        prompt.ids.push_back(static_cast<TokenId>(draw.below(vocabulary)));
    }
    return prompts;
  }
  const std::string text = commands::read_file(*o.ids);
  for (const std::string_view line : split_terminated(text, '\n')) {
    evaluate::Prompt& prompt = prompts.emplace_back();
    prompt.id = prompts.size() - 1;
    std::istringstream words{std::string(line)};
    for (TokenId id = 0; words >> id;) prompt.ids.push_back(id);
    if (prompt.ids.empty()) throw InputError(*o.ids, "a line without ids, expected some");
  }
  if (prompts.empty()) throw InputError(*o.ids, "no lines of ids, expected some");
  return prompts;
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  kernel::set_threads(o.common.threads);
  kernel::choose_product(o.product);
  model::ModelOptions options;
  options.precision = o.precision;
  const auto model = model::open_model(o.model, options);
  evaluate::check_generation(model->design(), false);
  const std::vector<evaluate::Prompt> prompts = prompts_of(o, model->design().vocab_size);
  evaluate::GenerateOptions generate;
  generate.max_new_tokens = o.max_new_tokens;
  generate.beams.num_beams = o.num_beams;
  std::vector<evaluate::Generated> texts;
  const Timing timing =
      time_of(o.repeats, [&] { texts = evaluate::generate(*model, prompts, generate); });
  std::size_t tokens = 0;
  std::string ids;
  for (const evaluate::Generated& text : texts) {
    tokens += text.ids.size();
    ids += fmt::format("{}\n", fmt::join(text.ids, " "));
  }
  if (o.output) replace_text(*o.output, ids);
  cli::Table table(session, o.common,
                   {"batch", "new_tokens", "beams", "precision", "threads", "ms", "ms_min",
                    "ms_max", "tokens/s"});
  table.row({static_cast<std::int64_t>(prompts.size()), o.max_new_tokens, o.num_beams,
             std::string(kernel::precision_name(o.precision)),
             static_cast<std::int64_t>(kernel::threads()), timing.median, timing.least, timing.most,
             static_cast<double>(tokens) / timing.median * 1e3});
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_generate(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("generate", "speed of greedy decoding and beam search, in tokens per second");
  c.example("bench generate gpt2 --batch 8 --max-new-tokens 64", "eight random prompts");
  c.argument("MODEL", o->model, "folder with config.json and weights");
  c.option("--batch", "N", o->batch, cli::AllowedRange{1, 1e4}, "number of random prompts");
  c.option("--prompt-tokens", "N", o->prompt_tokens, cli::AllowedRange{1, 1e6},
           "tokens in each prompt");
  c.option("--ids", "FILE", o->ids, "file with lines of ids, instead of random prompts");
  c.option("--max-new-tokens", "N", o->max_new_tokens, cli::AllowedRange{1, 1e6},
           "new tokens after each prompt");
  c.option("--num-beams", "N", o->num_beams, cli::AllowedRange{1, 1e3},
           "beams; 1: greedy decoding");
  c.option("-o,--output", "FILE", o->output, "write the new ids, one line per prompt");
  commands::add_precision(c, o->precision);
  add_product(c, o->product);
  add_repeats(c, o->repeats);
  add_threads(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
