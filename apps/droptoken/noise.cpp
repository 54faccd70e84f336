// droptoken noise: errors in the words of text.
#include "records/noise.hpp"

#include <algorithm>
#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/selection_options.hpp"
#include "commands/text_stream.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  RecordStreamOptions stream;
  records::NoiseOptions noise;
  std::optional<std::string> mix;
  std::optional<std::string> confusion;
};

records::NoiseOptions noise_of(const Options& o) {
  records::NoiseOptions noise = o.noise;
  noise.seed = o.stream.common.seed;
  if (o.stream.input == "-") commands::refuse_standard_input("--confusion", o.confusion);
  if (o.confusion) {
    noise.confusion =
        std::make_shared<const records::ConfusionSets>(records::ConfusionSets::read(*o.confusion));
    noise.mix.back() = 1;
  }
  if (o.mix) {
    const std::vector<double> mix = commands::parse_shares("mix", *o.mix, 4, 5);
    noise.mix.back() = 0;
    std::copy(mix.begin(), mix.end(), noise.mix.begin());
  }
  return noise;
}

}  // namespace

void declare_noise(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("noise", "adds errors to the words of text, to train correction");
  c.example("droptoken noise --rate 0.1 --seed 1 < text > records",
            "typing errors in a tenth of the words; 'original_text' has the original");
  c.example("droptoken noise --confusion sets.tsv --mix 0:0:0:0:1 --pairs < text > pairs",
            "replaces words by others of their set; prints lines of noisy TAB original");
  c.option("--rate", "P", o->noise.rate, cli::AllowedRange{0, 1},
           "probability that each word gets an error");
  c.option("--mix", "T:I:D:S:C", o->mix,
           "weights of typing neighbours, insertions, deletions, swaps and confusion sets "
           "[1:1:1:1:1; without --confusion 1:1:1:1]");
  c.choice("--keyboard", o->noise.keyboard, records::keyboard_names(),
           "keyboard layout that decides which letters are neighbours");
  c.option("--confusion", "FILE", o->confusion,
           "sets of words that are mistaken for each other: one set per line, separated by tabs");
  c.flag("--pairs", o->noise.pairs, "print lines of noisy TAB original instead of records");
  add_text_reading(c, o->stream);
  add_randomness(c, o->stream);
  c.action([o](cli::Session& session) {
    session.configure(o->stream.common);
    const auto noise = records::make_noise(noise_of(*o));
    return run_text_stream(o->stream, *noise, o->noise.pairs, session);
  });
}

}  // namespace masque::droptoken
