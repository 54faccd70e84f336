// droptoken bart: the noise of denoising sequence-to-sequence models.
#include "records/bart.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

using records::BartNoise;

struct Options {
  RecordStreamOptions stream;
  records::BartOptions bart;
  std::optional<std::int64_t> sentence_end;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  records::BartOptions bart = o.bart;
  if (o.sentence_end) bart.sentence_end = static_cast<TokenId>(*o.sentence_end);
  return run_corruption(o.stream, bart, records::make_bart, session);
}

}  // namespace

void declare_bart(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("bart", "adds noise for denoising; the target is in 'original'");
  c.example("droptoken bart --tokenizer bart/ --special --noise infill < text > records",
            "replaces each span by one mask token");
  c.choice("--noise", o->bart.noise,
           {{"infill", BartNoise::kInfill},
            {"mask", BartNoise::kMask},
            {"delete", BartNoise::kDelete},
            {"permute", BartNoise::kPermute},
            {"rotate", BartNoise::kRotate}},
           "infill: replace spans by one mask token each; mask: mask tokens; delete: delete "
           "tokens; permute: shuffle sentences; rotate: start at another token");
  c.option("--rate", "P", o->bart.rate, cli::AllowedRange{0, 1},
           "share of the ordinary tokens that are changed");
  c.option("--lambda", "X", o->bart.lambda, cli::AllowedRange{0, 100},
           "mean length of spans (Poisson distribution)");
  c.option("--sentence-end", "ID", o->sentence_end, cli::AllowedRange{0, 2147483647},
           "token that ends a sentence, for records without 'doc'");
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  c.read_only_if(
      {"lambda"}, [o] { return o->bart.noise == BartNoise::kInfill; }, "without --noise infill");
  c.read_only_if(
      {"rate"},
      [o] { return o->bart.noise != BartNoise::kPermute && o->bart.noise != BartNoise::kRotate; },
      "with --noise permute or rotate");
  c.read_only_if(
      {"sentence-end"}, [o] { return o->bart.noise == BartNoise::kPermute; },
      "without --noise permute");
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
