#include "records/perm.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/permutation.hpp"

namespace masque::records {

namespace {

/// The mask of a draw in the mask language: positions by rank, `@1` those that are hidden but no
/// targets, `@2` those that only read by rank.
std::string order_text(const mask::PermutationDraw& draw, const std::vector<bool>& functional) {
  std::vector<std::pair<Index, std::size_t>> order;
  for (std::size_t i = 0; i < draw.rank.size(); ++i) {
    if (draw.hidden[i] || (draw.rank[i] >= 0 && !draw.selected[i])) {
      order.emplace_back(draw.rank[i], i);
    }
  }
  std::sort(order.begin(), order.end());
  std::string out = "xlnet_order(";
  for (std::size_t r = 0; r < order.size(); ++r) {
    const std::size_t i = order[r].second;
    const bool target = draw.selected[i] && !(i < functional.size() && functional[i]);
    out += fmt::format("{}{}{}", r == 0 ? "" : ",", i, target ? "" : draw.hidden[i] ? "@1" : "@2");
  }
  return order.empty() ? "full" : out + ")";
}

class Perm final : public Corruption {
 public:
  Perm(const PermOptions& options, TokenTable tokens)
      : options_(options),
        tokens_(std::move(tokens)),
        random_(options.seed, options.hf ? "droptoken perm hf" : "droptoken perm") {}

  void apply(Record& record, Scratch&, Tally& tally) const override {
    if (record.labels.present) throw InputError("record already has labels");
    const std::size_t n = record.size();
    std::vector<bool> functional(n);
    Index ordinary = 0;
    for (std::size_t i = 0; i < n; ++i) {
      functional[i] = tokens_.is_special(record.ids[i]);
      ordinary += functional[i] ? 0 : 1;
    }
    const auto length = static_cast<Index>(n);
    if (options_.hf && length % 2 != 0) {
      throw InputError(fmt::format("{} tokens, expected an even number for transformers' rule", n));
    }
    // The draws of lib/mask take a seed: a word of this record's stream.
    const PhiloxBlock words = random_.stream(record.epoch, record.number).block(0);
    const std::uint64_t seed = words[0] | std::uint64_t{words[1]} << 32;
    const mask::PermutationDraw draw =
        options_.hf ? mask::xlnet_hf_permutation(length, seed, functional)
                    : mask::xlnet_permutation(request(length, ordinary, seed, functional));
    std::vector<std::int32_t>& labels = record.labels.make(n);
    for (std::size_t i = 0; i < n; ++i) {
      const bool target = draw.selected[i] && !functional[i];
      labels[i] = target ? record.ids[i] : kNoLabel;
      tally.selected += target ? 1U : 0U;
      if (!target || !options_.hf) continue;
      record.ids[i] = tokens_.mask;
      ++tally.masked;
    }
    tally.ordinary += static_cast<std::uint64_t>(ordinary);
    // What was blocked stays blocked: documents, say.
    std::string order = order_text(draw, functional);
    if (options_.causal_blocks) {
      // The order is that within a block; of what is before it, all is read.
      order = fmt::format("causal_blocks({0}) & ({1} | ~chunk({0}))", options_.perm_size, order);
    }
    record.mask = record.mask ? fmt::format("({}) & {}", *record.mask, order) : order;
  }

 private:
  mask::PermutationRequest request(Index length, Index ordinary, std::uint64_t seed,
                                   const std::vector<bool>& functional) const {
    mask::PermutationRequest request;
    request.length = length;
    request.seed = seed;
    request.perm_size = static_cast<Index>(options_.perm_size);
    request.own_orders = options_.causal_blocks;
    request.selection.predict =
        std::min<Index>(ordinary, std::llround(options_.predict * static_cast<double>(length)));
    request.selection.alpha = static_cast<Index>(options_.alpha);
    request.selection.beta = static_cast<Index>(options_.beta);
    if (options_.no_spans) request.selection.longest = 0;
    request.functional = functional;
    return request;
  }

  PermOptions options_;
  TokenTable tokens_;
  RandomSource random_;
};

}  // namespace

std::unique_ptr<Corruption> make_perm(const PermOptions& options, TokenTable tokens) {
  if (!(options.predict >= 0 && options.predict <= 1)) {
    throw UsageError(fmt::format("{}: found {}, expected a share from 0 to 1", field("predict"),
                                 options.predict));
  }
  constexpr std::uint64_t kMost = 1000000000;
  const auto check = [&](const char* name, std::uint64_t value, std::uint64_t least) {
    if (value >= least && value <= kMost) return;
    throw UsageError(
        fmt::format("{}: found {}, expected {} to {}", field(name), value, least, kMost));
  };
  check("alpha", options.alpha, 1);
  check("beta", options.beta, 1);
  check("perm_size", options.perm_size, 0);
  if (options.causal_blocks && options.perm_size == 0) {
    throw UsageError(fmt::format("{} needs {}, the size of a block", field("causal_blocks"),
                                 field("perm_size")));
  }
  if (options.hf && (options.no_spans || options.causal_blocks)) {
    throw UsageError(fmt::format("{} is not supported by transformers' rule, expected XLNet's",
                                 field(options.no_spans ? "no_spans" : "causal_blocks")));
  }
  if (options.hf && tokens.mask < 0)
    throw UsageError(fmt::format("no mask token, expected a {} that has one, or {}",
                                 field("tokenizer"), field("mask_token")));
  return std::make_unique<Perm>(options, std::move(tokens));
}

}  // namespace masque::records
