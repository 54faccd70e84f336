// length-gen lowrank: how large keys must be to give weights of n tokens.
#include <memory>

#include "commands.hpp"
#include "evaluate/statistics/low_rank_fit.hpp"
#include "length/arms.hpp"

namespace masque::length_gen {

namespace {

struct Options {
  std::string lengths = "32", key_sizes = "1,2,4,8,16,31";
  double temperature = 1;
  std::int64_t restarts = 3;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  evaluate::LowRankRequest request;
  request.key_sizes = length::parse_lengths("key_sizes", o.key_sizes);
  request.restarts = o.restarts;
  request.seed = o.common.seed;
  cli::Table table(session, o.common,
                   {"n", "rank", "key_size", "kl", "truncated_kl", "iterations", "settled"});
  for (const Index n : length::parse_lengths("lengths", o.lengths)) {
    const Matrix<double> weights = evaluate::random_weights(n, o.temperature, o.common.seed);
    const evaluate::LowRankFit fit = evaluate::fit_low_rank(weights.view(), request);
    for (const evaluate::LowRankRow& row : fit.rows) {
      table.row({n, fit.rank, row.key_size, row.kl, row.truncated_kl, row.iterations, row.settled});
    }
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_lowrank(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("lowrank", "fits attention weights with queries and keys of small sizes");
  c.example("length-gen lowrank --lengths 16,32 --key-sizes 1,2,4,8,16",
            "KL divergence in nats for each key size");
  c.option("--lengths", "LIST", o->lengths, "numbers of tokens: rows and columns of the weights");
  c.option("--key-sizes", "LIST", o->key_sizes, "sizes of queries and keys");
  c.option("--temperature", "X", o->temperature, cli::AllowedRange{0.02, 1e6},
           "temperature of the random weights: softmax of normal numbers divided by it");
  c.option("--restarts", "N", o->restarts, cli::AllowedRange{1, 1000},
           "random starts of each fit; the best one is reported");
  cli::add_seed(c, o->common);
  cli::add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::length_gen
