// bench block-map: the time to find the blocks of each mask.
#include "mask/block_map.hpp"

#include <memory>

#include <fmt/format.h>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "mask/expression.hpp"
#include "timing.hpp"

namespace masque::bench {

namespace {

struct Options {
  int length = 4096;
  int repeats = 51;
  std::vector<std::string> masks;
  cli::CommonOptions common;
};

std::string documents(Index n, Index size) {
  std::string out = "document(";
  for (Index at = 0; at < n; at += size) {
    out += fmt::format("{}{}", at == 0 ? "" : ",", std::min(size, n - at));
  }
  return out + ")";
}

/// Every mask whose cover is computed from a formula, at sizes that people use.
std::vector<std::string> usual_masks(Index n) {
  const Index half = n / 2;
  const std::string words = documents(n, 4).substr(std::string("document").size());
  return {"full",
          "causal",
          "reverse",
          "strict_causal",
          "diagonal",
          "tta",
          "tta_window(2)",
          "window(256)",
          "causal_window(256)",
          "super(512)",
          "causal | prefix(256)",
          fmt::format("unilm({},{})", half, n - half),
          fmt::format("uniae({},{})", half, n - half),
          fmt::format("uniae_latent({},{})", half, n - half),
          fmt::format("glm({},{})", half, n - half),
          "chunk(512)",
          "block_causal(512)",
          "sinks(4,1020)",
          documents(n, 512),
          "causal & " + documents(n, 512),
          "causal & pad(4000)",
          "longformer(256,0)",
          "bigbird(64,3,1)",
          "tta_word" + words,
          "tta_word_l2r" + words,
          "perm_content(seed=1)",
          "perm_query(seed=1)",
          "mae(0.75,1)",
          "dilated(128,2)",
          "strided(128)",
          "fixed(128,8)",
          "xlnet(1)",
          "xlnet_hf(1)",
          "disco(1)",
          "random(0.1,1)"};
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const Index n = o.length;
  cli::Table table(
      session, o.common,
      {"mask", "length", "blocks", "partial", "tiles", "bytes", "ms", "ms_min", "ms_max"});
  for (const std::string& text : o.masks.empty() ? usual_masks(n) : o.masks) {
    const mask::Mask mask = mask::parse_mask(text).bind({n, n});
    const mask::BlockMap map(mask);
    const Timing timing = time_of(o.repeats, [&] { const mask::BlockMap again(mask); });
    const std::string name = text.size() > 40 ? text.substr(0, 37) + "…)" : text;
    table.row({name, n, static_cast<std::uint64_t>(map.entries()),
               static_cast<std::uint64_t>(map.partial_blocks()),
               static_cast<std::uint64_t>(map.tiles()), map.bytes(), timing.median, timing.least,
               timing.most});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_block_map(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("block-map", "time to find the blocks of each mask");
  c.example("bench block-map -n 4096", "masks in common use");
  c.option("-n,--length", "N", o->length, cli::AllowedRange{1, 1e7}, "queries and keys");
  add_repeats(c, o->repeats);
  c.option("--mask", "EXPR", o->masks, "mask to time, instead of the list; may be repeated");
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
