#include "train/network_cases.hpp"

#include <algorithm>
#include <cmath>

#include "mask/expression.hpp"
#include "model/masks.hpp"
#include "model/rotary_config.hpp"
#include "model/variants.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/normalizer.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::test {

using namespace masque::model;

model::Design small_design() {
  Design d;
  d.family = d.model_type = "masque";
  d.vocab_size = 13;
  d.hidden_size = d.embedding_size = 8;
  d.num_hidden_layers = 2;
  d.num_attention_heads = d.num_key_value_heads = 2;
  d.head_size = 4;
  d.intermediate_size = 12;
  d.max_position_embeddings = 6;
  d.attention_scale = 0.5;
  d.embedding_norm = NormDesign{};
  d.position = model::PositionType::kLearned;
  d.mask_token_id = 4;
  d.head.kind = HeadKind::kMasked;
  d.head.transform = true;
  d.head.norm = NormDesign{};
  for (Index l = 0; l < 2; ++l) {
    LayerDesign layer;
    layer.weights = l;
    d.layers.push_back(layer);
  }
  return d;
}

namespace {

void make_gated(Design& d) {
  d.layer_kind = LayerKind::kGatedAttention;
  d.attention_key_size = d.head_size = 4;
  d.num_attention_heads = d.num_key_value_heads = 1;
  d.activation = kernel::Activation::kSwish;
}

void scheme(Design& d, std::string name) {
  d.position = model::PositionType::kNone;
  d.variants.position = std::move(name);
  const auto found = model::position_scheme(d);
  d.attention_scale = found->scale(model::position_shape(d));
  scale_listed_layers(d);
}

}  // namespace

std::vector<NetworkCase> network_cases() {
  std::vector<NetworkCase> cases;
  const auto add = [&](std::string name, const std::function<void(Design&)>& change) {
    NetworkCase one{std::move(name), small_design(), {}};
    change(one.design);
    cases.push_back(std::move(one));
  };
  add("post", [](Design&) {});
  add("pre", [](Design& d) {
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
  });
  add("shifted head", [](Design& d) { d.head.shifted = true; });
  add("shifted head, all layers wide", [](Design& d) {
    d.head.shifted = true;
    d.variants.talking_heads = TalkingHeads::kBoth;
  });
  for (const auto& [name, placement] :
       {std::pair("sandwich", NormPlacement::kSandwich),
        std::pair("rezero", NormPlacement::kReZero), std::pair("admin", NormPlacement::kAdmin),
        std::pair("normformer", NormPlacement::kNormFormer)}) {
    add(name, [placement = placement](Design& d) {
      d.norm_placement = placement;
      if (norms_input(placement)) {
        d.embedding_norm.reset();
        d.final_norm = true;
      }
    });
  }
  add("sandwich without weights of norms, gated", [](Design& d) {
    d.norm_placement = NormPlacement::kSandwich;
    d.norm_weights = false;
    d.gated = true;
    d.final_norm = true;
  });
  add("normformer, gated, grouped keys, value size", [](Design& d) {
    d.norm_placement = NormPlacement::kNormFormer;
    d.norm.kind = d.embedding_norm->kind = d.head.norm->kind = kernel::Norm::kRms;
    d.gated = true;
    d.num_key_value_heads = 1;
    d.value_size = 3;
    d.final_norm = true;
  });
  add("normformer without weights of norms, with a mixer", [](Design& d) {
    d.norm_placement = NormPlacement::kNormFormer;
    d.norm_weights = false;
    d.variants.mixer = nn::find_mixer("fnet");
    d.final_norm = true;
  });
  for (const auto& [name, placement] : {std::pair("rezero, T-TA", NormPlacement::kReZero),
                                        std::pair("admin, T-TA", NormPlacement::kAdmin)}) {
    add(name, [placement = placement](Design& d) {
      d.norm_placement = placement;
      d.streams = Streams::kFixedKeys;
      d.mask = DefaultMask::kOthers;
    });
  }
  add("late positions", [](Design& d) {
    d.position = model::PositionType::kNone;
    d.variants.position = "deberta(span=4)";
    d.variants.late_positions = 1;
  });
  add("late positions, pre, of both layers", [](Design& d) {
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
    d.variants.late_positions = 2;
  });
  add("latent", [](Design& d) { d.variants.latent = {.layers = 1, .size = 3, .kappa = 5}; });
  add("latent that learns its concentration", [](Design& d) {
    d.variants.latent = {.layers = 2, .size = 4, .kappa = 5, .learned_kappa = true};
  });
  add("latent in every layer, pre, rotary", [](Design& d) {
    d.variants.latent = {.layers = d.num_hidden_layers, .size = 2, .kappa = 20};
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
    d.position = model::PositionType::kRotary;
    for (LayerDesign& l : d.layers)
      l.rotary = plain_rotary(kernel::RotaryLayout::kHalf, 10000, d.head_size);
  });
  add("parallel", [](Design& d) {
    d.norm_placement = NormPlacement::kParallel;
    d.final_norm = true;
  });
  add("one norm for both parts", [](Design& d) {
    d.norm_placement = NormPlacement::kParallelShared;
    d.final_norm = true;
  });
  add("norms of outputs alone", [](Design& d) {
    d.norm_placement = NormPlacement::kOutput;
    d.embedding_norm.reset();
    d.final_norm = true;
    d.residual_multiplier = 0.6;
  });
  for (const NormPlacement placement :
       {NormPlacement::kPre, NormPlacement::kSandwich, NormPlacement::kReZero,
        NormPlacement::kParallel, NormPlacement::kParallelShared}) {
    add("a multiplier of what parts add", [&](Design& d) {
      d.norm_placement = placement;
      d.final_norm = norms_input(placement);
      d.residual_multiplier = 0.7;
    });
  }
  for (const QueryKeyNorm norm :
       {QueryKeyNorm::kHead, QueryKeyNorm::kEachHead, QueryKeyNorm::kWidth}) {
    add("norms of queries and keys", [&](Design& d) {
      d.query_key_norm = norm;
      d.norm.weight_offset = d.embedding_norm->weight_offset = d.head.norm->weight_offset = 1;
      d.num_key_value_heads = 1;
      d.position = model::PositionType::kRotary;
      for (LayerDesign& l : d.layers)
        l.rotary = plain_rotary(kernel::RotaryLayout::kHalf, 10000, d.head_size);
    });
    add("norms of queries and keys, tta, rms, bounds", [&](Design& d) {
      d.query_key_norm = norm;
      d.norm.kind = d.embedding_norm->kind = d.head.norm->kind = kernel::Norm::kRms;
      d.clip_qkv = 0.4;
      d.streams = Streams::kFixedKeys;
      d.mask = DefaultMask::kOthers;
    });
  }
  for (const QueryKeyNorm norm :
       {QueryKeyNorm::kHead, QueryKeyNorm::kEachHead, QueryKeyNorm::kWidth}) {
    add("bounds after norms of queries and keys", [&](Design& d) {
      d.query_key_norm = norm;
      d.clip_qkv = 0.7;
      d.clip_after_norms = true;
      d.num_key_value_heads = 1;
    });
  }
  add("bounds of queries, keys and values", [](Design& d) { d.clip_qkv = 0.3; });
  add("bounds, two streams", [&](Design& d) {
    d.clip_qkv = 0.3;
    d.streams = Streams::kTwo;
    scheme(d, "rope");
  });
  add("soft caps, causal, windows and angles by layer", [](Design& d) {
    d.score_cap = 0.8;
    d.head.logit_cap = 1.5;
    d.embedding_scale = 2.5;
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
    d.mask = DefaultMask::kCausal;
    d.head.kind = HeadKind::kCausal;
    d.position = model::PositionType::kRotary;
    d.layers[0].window = 1;
    d.layers[0].rotary = plain_rotary(kernel::RotaryLayout::kHalf, 100, 2);
  });
  add("a soft cap over position terms", [&](Design& d) {
    d.score_cap = 0.8;
    scheme(d, "t5");
    d.normalizer = "log_n(base=4)";
  });
  add("a soft cap and talking heads", [](Design& d) {
    d.score_cap = 0.5;
    d.variants.talking_heads = TalkingHeads::kBoth;
    d.variants.previous_scores = PreviousScores::kAccumulated;
  });
  add("a soft cap and urpe", [&](Design& d) {
    d.score_cap = 0.5;
    scheme(d, "urpe");
  });
  add("deepnorm", [](Design& d) { d.variants.residual_scale = 1.4; });
  add("rms, gated, rotary", [](Design& d) {
    d.norm.kind = d.embedding_norm->kind = d.head.norm->kind = kernel::Norm::kRms;
    d.gated = true;
    d.activation = kernel::Activation::kSwish;
    d.position = model::PositionType::kRotary;
    for (LayerDesign& l : d.layers)
      l.rotary = plain_rotary(kernel::RotaryLayout::kHalf, 10000, d.head_size);
  });
  add("sinusoidal", [](Design& d) { d.position = model::PositionType::kSinusoidal; });
  add("grouped keys", [](Design& d) { d.num_key_value_heads = 1; });
  add("key size", [](Design& d) {
    d.head_size = 3;
    d.value_size = 4;
    d.attention_scale = 1 / std::sqrt(3.0);
  });
  add("untied", [](Design& d) { d.head.tied = false; });
  add("bare head", [](Design& d) {
    d.head.transform = false;
    d.head.norm.reset();
  });
  add("segments", [](Design& d) { d.type_vocab_size = 2; });
  add("narrow tables", [](Design& d) { d.embedding_size = 5; });
  add("discriminator", [](Design& d) {
    d.head = {};
    d.head.kind = HeadKind::kDiscriminator;
    d.head.transform = true;
    d.head.tied = false;
  });
  add("causal", [](Design& d) {
    d.mask = DefaultMask::kCausal;
    d.head.kind = HeadKind::kCausal;
  });
  add("tta", [](Design& d) {
    d.streams = Streams::kFixedKeys;
    d.mask = DefaultMask::kOthers;
  });
  const auto towers = [](Design& d) {
    d.num_hidden_layers = 4;
    for (Index l = 2; l < 4; ++l) {
      d.layers.push_back(d.layers.back());
      d.layers.back().weights = l;
    }
    set_towers(d);
  };
  add("two towers", towers);
  add("two towers pre", [&](Design& d) {
    towers(d);
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
  });
  add("two towers, narrow tables, untied", [&](Design& d) {
    towers(d);
    d.embedding_size = 5;
    d.head.tied = false;
  });
  for (const char* name : {"rope", "transformer_xl", "t5", "urpe", "complex_order"}) {
    add(std::string("two towers with ") + name, [&](Design& d) {
      scheme(d, name);
      towers(d);
    });
  }
  add("two towers of gau", [&](Design& d) {
    make_gated(d);
    towers(d);
  });
  add("two towers, talking heads", [&](Design& d) {
    d.variants.talking_heads = TalkingHeads::kBoth;
    towers(d);
  });
  add("energies", [](Design& d) {
    d.head = {};
    d.head.kind = HeadKind::kEnergy;
    d.head.tied = false;
  });
  add("tta pre", [](Design& d) {
    d.streams = Streams::kFixedKeys;
    d.mask = DefaultMask::kOthers;
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
  });
  for (const char* name : {"rope", "transformer_xl", "xlnet", "t5", "urpe", "urpe(scheme=t5)"}) {
    add(std::string("two streams with ") + name, [&](Design& d) {
      d.streams = Streams::kTwo;
      scheme(d, name);
    });
  }
  add("gau", [](Design& d) { make_gated(d); });
  add("gau tta", [](Design& d) {
    make_gated(d);
    d.streams = Streams::kFixedKeys;
    d.mask = DefaultMask::kOthers;
  });
  for (const TalkingHeads talk : {TalkingHeads::kBefore, TalkingHeads::kAfter, TalkingHeads::kBoth})
    add("talking heads", [&](Design& d) { d.variants.talking_heads = talk; });
  for (const PreviousScores previous : {PreviousScores::kOneLayer, PreviousScores::kAccumulated}) {
    const auto hand_on = [&](Design& d) {
      d.variants.previous_scores = previous;
      d.num_hidden_layers = 3;
      d.layers.push_back(d.layers.back());
      d.layers.back().weights = 2;
    };
    add("previous scores", hand_on);
    add("two streams with previous scores", [&](Design& d) {
      hand_on(d);
      d.streams = Streams::kTwo;
      d.variants.talking_heads = TalkingHeads::kBoth;
      scheme(d, "rope");
    });
  }
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    const std::string name(normalizer->name());
    add("normalizer " + name, [&](Design& d) { d.normalizer = name; });
    add("gau with " + name, [&](Design& d) {
      make_gated(d);
      d.normalizer = name;
    });
  }
  for (const std::string& name : nn::position_names()) {
    add("position " + name, [&](Design& d) { scheme(d, name); });
    if (!nn::parse_position(name)->facts().input)
      add("tta with " + name, [&](Design& d) {
        scheme(d, name);
        d.streams = Streams::kFixedKeys;
        d.mask = DefaultMask::kOthers;
      });
    add("shared " + name, [&](Design& d) {
      scheme(d, name);
      d.variants.position_shared = true;
    });
  }
  for (const nn::Mixer* mixer : nn::mixers()) {
    add("mixer " + std::string(mixer->info().name), [&](Design& d) { d.variants.mixer = mixer; });
    if (mixer->info().reads_own || mixer->info().masks != nn::MaskSupport::kAny) continue;
    for (const bool pre : {false, true}) {
      add("tta mixer " + std::string(mixer->info().name) + (pre ? " pre" : ""), [&](Design& d) {
        d.variants.mixer = mixer;
        d.streams = Streams::kFixedKeys;
        d.mask = DefaultMask::kOthers;
        if (pre) d.norm_placement = NormPlacement::kPre;
        d.final_norm = pre;
      });
    }
  }
  add("gau pre", [](Design& d) {
    make_gated(d);
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
  });
  add("gau pre tta", [](Design& d) {
    make_gated(d);
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
    d.streams = Streams::kFixedKeys;
    d.mask = DefaultMask::kOthers;
  });
  const auto detects = [](Design& d) {
    d.variants.detector =
        model::DetectorDesign{.hidden_size = 6, .num_attention_heads = 2, .intermediate_size = 7};
  };
  add("detector", [&](Design& d) { detects(d); });
  add("wide detector", [&](Design& d) {
    d.variants.detector = model::DetectorDesign{
        .num_hidden_layers = 2, .hidden_size = 8, .num_attention_heads = 2, .intermediate_size = 7};
    d.type_vocab_size = 2;
  });
  add("detector pre, narrow tables", [&](Design& d) {
    detects(d);
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
    d.embedding_norm.reset();
    d.embedding_size = 5;
  });
  add("detector and alibi", [&](Design& d) {
    detects(d);
    scheme(d, "alibi");
  });
  add("gau with detector", [&](Design& d) {
    make_gated(d);
    detects(d);
    d.variants.detector->num_attention_heads = 1;
  });
  add("alibi of a family", [](Design& d) { scheme(d, "alibi"); });
  add("normalizers by layer", [](Design& d) { d.normalizer = "l2, log_n"; });
  for (const char* list : {"rope, none", "none, t5", "shaw, none", "kerple_log, none"})
    add(std::string("positions by layer: ") + list, [&](Design& d) { scheme(d, list); });
  add("HWFA", [](Design& d) {
    scheme(d, "rope, none");
    d.normalizer = "softmax, log_n(base=4)";
    set_mask("causal & window(1), causal", d);
  });
  add("masks by head", [](Design& d) {
    scheme(d, "rope");
    d.normalizer = "log_n(base=4)";
    set_mask("[causal & window(1), causal], [2*full]", d);
  });
  add("masks by head, joined layers", [](Design& d) {
    d.variants.previous_scores = PreviousScores::kAccumulated;
    set_mask("[tta, causal], [window(2), tta]", d);
  });
  add("masks by head, learned scales", [](Design& d) {
    d.normalizer = "ssmax_learned";
    set_mask("[causal, window(1)]", d);
  });
  add("gau with lists", [](Design& d) {
    make_gated(d);
    scheme(d, "none, rope");
    d.normalizer = "softmax_plus, squared_relu";
  });
  add("more softmax heads", [](Design& d) {
    d.variants.talking_heads = TalkingHeads::kBoth;
    d.variants.softmax_heads = 3;
  });
  add("heads of values of their own", [](Design& d) {
    d.variants.talking_heads = TalkingHeads::kAfter;
    d.variants.value_heads = 3;
  });
  for (const char* name : {"shaw", "urpe(scheme=t5)"}) {
    add(std::string("two streams, other heads of scores, of weights and of values, ") + name,
        [&](Design& d) {
          d.streams = Streams::kTwo;
          d.variants.talking_heads = TalkingHeads::kBoth;
          d.variants.softmax_heads = 3;
          d.variants.value_heads = 1;
          d.variants.previous_scores = PreviousScores::kAccumulated;
          d.value_size = 3;
          scheme(d, name);
        });
  }
  add("normformer, heads of values of their own, tta", [](Design& d) {
    d.norm_placement = NormPlacement::kNormFormer;
    d.final_norm = true;
    d.variants.talking_heads = TalkingHeads::kBoth;
    d.variants.value_heads = 3;
    d.streams = Streams::kFixedKeys;
    d.mask = DefaultMask::kOthers;
  });
  add("largest keys", [](Design& d) { d.variants.largest_keys = 2; });
  add("largest keys, causal, rope", [&](Design& d) {
    d.variants.largest_keys = 2;
    scheme(d, "rope");
    d.mask = DefaultMask::kCausal;
    d.head.kind = HeadKind::kCausal;
  });
  for (const char* list : {"ssmax_learned", "softmax, ssmax_learned(s=0.2, bias=0.3)"}) {
    add(std::string("learned scales, causal: ") + list, [&](Design& d) {
      d.normalizer = list;
      d.mask = DefaultMask::kCausal;
      d.head.kind = HeadKind::kCausal;
    });
    add(std::string("learned scales, two streams: ") + list, [&](Design& d) {
      d.normalizer = list;
      scheme(d, "rope");
      d.streams = Streams::kTwo;
    });
    add(std::string("learned scales, tta: ") + list, [&](Design& d) {
      d.normalizer = list;
      d.streams = Streams::kFixedKeys;
      d.mask = DefaultMask::kOthers;
    });
  }
  const auto without_input = [&](std::string name, const std::function<void(Design&)>& change) {
    add("no residual of the input" + name, [&](Design& d) {
      change(d);
      d.variants.input_residual = false;
    });
  };
  without_input("", [](Design&) {});
  without_input(", pre", [](Design& d) {
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
  });
  without_input(", gau", make_gated);
  without_input(", gau pre", [](Design& d) {
    make_gated(d);
    d.norm_placement = NormPlacement::kPre;
    d.final_norm = true;
  });
  return cases;
}

std::vector<train::Example> small_examples(const Design& design) {
  std::vector<train::Example> examples(2);
  const bool one_number = has_one_number(design.head.kind);
  examples[0].ids = {2, 7, 4, 9, 3};
  examples[0].rows = {1, 2, 4};
  examples[0].targets = {5, 11, 3};
  examples[0].weights = {1, 0.5, 2};
  examples[1].ids = {6, 1, 12};
  examples[1].rows = {0, 2};
  examples[1].targets = {6, 0};
  // Two rows that a shifted head reads the same state for.
  if (design.head.shifted) examples[1].rows = {0, 1};
  for (train::Example& e : examples) {
    if (one_number) {
      for (TokenId& target : e.targets) target %= 2;
    }
    if (design.head.kind == HeadKind::kEnergy) {
      for (std::size_t k = 0; k < e.rows.size(); ++k)
        e.offsets.push_back(0.5 - static_cast<double>(k));
    }
    if (design.type_vocab_size > 1) {
      e.segments.assign(e.ids.size(), 0);
      e.segments.back() = 1;
    }
    if (design.streams == Streams::kTwo) {
      const mask::Lengths lengths{e.size(), e.size()};
      e.mask = mask::parse_mask("causal").bind(lengths);
      e.query_mask = mask::parse_mask("strict_causal").bind(lengths);
    }
  }
  return examples;
}

void shift_wanted(const Design& design, train::ExampleChunk& chunk) {
  for (Index& row : chunk.wanted) {
    const bool first = std::ranges::find(chunk.begins, row) != chunk.begins.end();
    if (design.head.shifted && !first) --row;
  }
}

}  // namespace masque::test
