// Variants that are neither a mask, a position scheme nor a normalizer: how the parts stand
// together. Some are fields of MaterializedAttention; the others use existing parts in another
// order, and their entries say where.
#include "nn/variant.hpp"

namespace masque::nn {

namespace {

VariantInfo structure(std::string name, std::vector<std::pair<std::string, std::string>> use,
                      std::string parameters, std::string masks, std::string cost,
                      std::string source) {
  return {"structure", std::move(name), std::move(parameters), std::move(masks),
          true,        std::move(cost), std::move(source),     std::move(use)};
}

std::vector<VariantInfo> list_variants() {
  const std::string talking = "Shazeer et al. 2020, arXiv:2003.02436";
  const std::string realformer = "He et al. 2020, arXiv:2012.11747";
  return {
      structure("disco", {{"objective", "tta"}, {"mask", "disco"}},
                "arrangement: mask disco (a random set per row), keys and values of all layers "
                "from the embeddings, queries without tokens",
                "disco", "n² d", "Kasai et al. 2020, arXiv:2001.05136"),
      structure("gau", {{"layer_kind", "gated_attention"}},
                "arrangement: one head between gates, W_i (d, 2 e + s), γ β (2, s), W_o (e, d); "
                "layers of the family gau_alpha",
                "any", "3 n d e + n² (s + e)",
                "Hua et al. 2022, arXiv:2202.10447; kexue.fm/archives/8934"),
      structure("key_size", {{"head_size", "N"}},
                "arrangement: head size of queries and keys independent of d / h, W_q W_k (d, h "
                "key_size)",
                "any", "h n² (key_size + d / h)",
                "Bhojanapalli et al. 2020, arXiv:2002.07028; kexue.fm/archives/7325"),
      structure("late_positions", {{"late_positions", "N"}},
                "arrangement: P (max_position_embeddings, d), added to the states before the last "
                "N layers",
                "any", "n d", "DeBERTa, He et al. 2020, arXiv:2006.03654"),
      structure("memory", {{"objective", "clm"}, {"memory", "N"}},
                "arrangement: mask block_memory, no gradient to the states of earlier blocks; no "
                "weights of its own",
                "block_memory", "n (b + N) d", "Transformer-XL, Dai et al. 2019, arXiv:1901.02860"),
      structure("realformer", {{"previous_scores", "accumulated"}},
                "adds the scores of all earlier layers; no weights of its own", "any", "h n²",
                realformer),
      structure("realformer_1", {{"previous_scores", "one_layer"}},
                "adds the scores of the previous layer only; no weights of its own", "any", "h n²",
                realformer + "; as in bert4keras, kexue.fm/archives/8027"),
      structure("talking_heads", {{"talking_heads", "both"}},
                "Λ (h, h) before and Λ (h, h) after the normalizer", "any", "2 h² n²", talking),
      structure("talking_heads_after", {{"talking_heads", "after"}}, "Λ (h, h) on weights", "any",
                "h² n²", talking),
      structure("talking_heads_before", {{"talking_heads", "before"}}, "Λ (h, h) on scores", "any",
                "h² n²", talking + "; kexue.fm/archives/7325"),
      structure("tta", {{"objective", "tta"}},
                "arrangement: mask tta, keys and values of all layers from the embeddings, queries "
                "from positions; models with kv input, family tta",
                "tta", "n² d", "Shin et al. 2020, arXiv:2004.08097"),
      structure("two_streams", {{"objective", "plm"}},
                "arrangement: a query stream g beside the content stream h with the same weights, "
                "start w (d); family xlnet",
                "perm_content, perm_query", "2 n² d", "Yang et al. 2019, arXiv:1906.08237"),
      structure("value_size", {{"value_size", "N"}},
                "arrangement: value size of a head independent of d / h, W_v (d, h value_size), "
                "W_o (h value_size, d)",
                "any", "h n² (d / h + value_size)",
                "Bhojanapalli et al. 2020, arXiv:2002.07028; kexue.fm/archives/7325"),
  };
}

const VariantSource kVariants(list_variants);

}  // namespace

}  // namespace masque::nn
