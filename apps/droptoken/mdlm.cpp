// droptoken mdlm: a share of the tokens that is drawn for each record is hidden: masked diffusion.
#include "records/mdlm.hpp"

#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "stream.hpp"
#include "train/data/order.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  RecordStreamOptions stream;
  std::int64_t batch_size = 32;
  std::optional<std::int64_t> block_size;
  std::optional<std::int64_t> sequences;
};

/// The corruption of records at the places at which training takes them.
class InTrainingOrder final : public records::Corruption {
 public:
  InTrainingOrder(std::unique_ptr<records::Corruption> corruption, std::int64_t sequences,
                  std::uint64_t seed)
      : corruption_(std::move(corruption)), sequences_(sequences), order_(sequences, seed) {}

  void apply(records::Record& record, records::Scratch& scratch,
             records::Tally& tally) const override {
    if (record.number >= static_cast<std::uint64_t>(sequences_)) {
      throw InputError(fmt::format("record {}, expected at most {} records, as many as {}",
                                   record.number + 1, sequences_, field("sequences")));
    }
    record.place = order_.place({record.epoch, static_cast<Index>(record.number)});
    corruption_->apply(record, scratch, tally);
  }

 private:
  std::unique_ptr<records::Corruption> corruption_;
  std::int64_t sequences_;
  train::EpochOrder order_;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  const std::uint64_t seed = o.stream.common.seed;
  std::unique_ptr<records::Corruption> corruption =
      make_mdlm({.batch_size = static_cast<std::uint64_t>(o.batch_size),
                 .block_size = static_cast<std::uint64_t>(o.block_size.value_or(0)),
                 .seed = seed},
                tokens.table());
  if (o.sequences)
    corruption = std::make_unique<InTrainingOrder>(std::move(corruption), *o.sequences, seed);
  return run_stream(o.stream, tokens, corruption.get(), session);
}

}  // namespace

void declare_mdlm(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("mdlm",
                                    "masks tokens for masked diffusion, at a rate drawn for each "
                                    "record; adds labels and weights");
  c.example("droptoken mdlm --tokenizer bert-base/ --special < text > records",
            "each weight is 1 / rate");
  c.example("droptoken mdlm --tokenizer bert-base/ --special --block-size 8 < text > records",
            "block diffusion: a noised half, then the clean half");
  c.option("--batch-size", "N", o->batch_size, cli::AllowedRange{1, 1e6},
           "number of consecutive records over which the rates are spread evenly");
  c.option("--block-size", "B", o->block_size, cli::AllowedRange{1, 1e6},
           "block diffusion: draw a rate for each block of B tokens, and append the clean half to "
           "each record");
  c.option("--sequences", "N", o->sequences, cli::AllowedRange{1, 1e12},
           "draw the rates as lm-train does for a corpus of N sequences, in its training order [in "
           "the order of the records]");
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
