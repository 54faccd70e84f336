#include "text/open/tokenizer_class.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace masque::text {

namespace {

using enum VocabularyFile;

// Of transformers 5.24 (models/auto/tokenization_auto.py). The first of an architecture is the one
// that is written where a class must be named.
constexpr std::array kClasses{
    TokenizerClass{
        "BertTokenizer", "bert", kVocabTxt,
        "bert align bark blip bros chinese_clip convbert ernie flava git "
        "grounding-dino layoutlm macbert megatron-bert mm-grounding-dino nezha nomic_bert qdqbert "
        "realm retribert squeezebert tvp vilt visual_bert"},
    TokenizerClass{"DistilBertTokenizer", "bert", kVocabTxt, "distilbert"},
    TokenizerClass{"ElectraTokenizer", "bert", kVocabTxt, "electra"},
    TokenizerClass{"ConvBertTokenizer", "bert", kVocabTxt, ""},
    TokenizerClass{"MobileBertTokenizer", "bert", kVocabTxt, "mobilebert"},
    TokenizerClass{"SqueezeBertTokenizer", "bert", kVocabTxt, ""},
    TokenizerClass{"LayoutLMTokenizer", "bert", kVocabTxt, ""},
    TokenizerClass{"LxmertTokenizer", "bert", kVocabTxt, "lxmert"},
    TokenizerClass{"RetriBertTokenizer", "bert", kVocabTxt, ""},
    TokenizerClass{"DPRQuestionEncoderTokenizer", "bert", kVocabTxt, "dpr"},
    TokenizerClass{"DPRContextEncoderTokenizer", "bert", kVocabTxt, ""},
    TokenizerClass{"RoFormerTokenizer", "roformer", kVocabTxt, "roformer"},
    TokenizerClass{"MPNetTokenizer", "mpnet", kVocabTxt, "mpnet"},
    TokenizerClass{"EsmTokenizer", "esm", kVocabTxt, "esm"},
    TokenizerClass{"GPT2Tokenizer", "gpt2", kVocabJson,
                   "gpt2 blip-2 codegen dbrx emu3 gpt_neo gptj hyperclovax_vision_v2 instructblip "
                   "instructblipvideo jais2 opt phi starcoder2"},
    TokenizerClass{"RobertaTokenizer", "roberta", kVocabJson,
                   "roberta bart bridgetower clap data2vec-text distilroberta florence2 ibert lilt "
                   "longformer mega mra roberta-prelayernorm"},
    TokenizerClass{"BartTokenizer", "roberta", kVocabJson, ""},
    TokenizerClass{"LongformerTokenizer", "roberta", kVocabJson, ""},
    TokenizerClass{"LEDTokenizer", "roberta", kVocabJson, "led"},
    TokenizerClass{"MvpTokenizer", "roberta", kVocabJson, "mvp"},
    TokenizerClass{"DebertaTokenizer", "deberta", kVocabJson, "deberta"},
    TokenizerClass{"GPTNeoXTokenizer", "gpt_neox", kVocabJson,
                   "gpt_neox falcon_mamba mamba mamba2 mpt olmo olmoe rwkv xlstm"},
    TokenizerClass{
        "Qwen2Tokenizer", "qwen2", kVocabJson,
        "qwen2 audioflamingo3 colqwen2 cosmos3_omni dots3_note fun_asr_nano hunyuan_vl internvl "
        "lighton_ocr moss_transcribe_diarize ovis2 qianfan_ocr qwen2_5_omni qwen2_5_vl qwen2_audio "
        "qwen2_moe qwen2_vl qwen3 qwen3_asr qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl "
        "qwen3_vl_moe vibevoice"},
    // Code in the folders of Dream's authors: a copy of Qwen2Tokenizer.
    TokenizerClass{"DreamTokenizer", "qwen2", kVocabJson, "Dream"},
    TokenizerClass{"CLIPTokenizer", "clip", kVocabJson,
                   "clip aimv2 clipseg groupvit omdet-turbo oneformer owlv2 owlvit sam3 sam3_video "
                   "xclip"},
    TokenizerClass{"WhisperTokenizer", "whisper", kVocabJson, "whisper"},
    TokenizerClass{"AlbertTokenizer", "albert", kSpiece, "albert yoso"},
    TokenizerClass{"XLNetTokenizer", "xlnet", kSpiece, "xlnet"},
    TokenizerClass{"T5Tokenizer", "t5", kSpiece,
                   "t5 mt5 musicgen musicgen_melody switch_transformers"},
    TokenizerClass{"DebertaV2Tokenizer", "deberta-v2", kSpiece, "deberta-v2"},
    TokenizerClass{"XLMRobertaTokenizer", "xlm-roberta", kSpiece,
                   "xlm-roberta gte jina_embeddings_v3 metaclip_2 trocr xmod"},
    TokenizerClass{"CamembertTokenizer", "camembert", kSpiece, "camembert"},
    TokenizerClass{"LlamaTokenizer", "llama", kSpiece, "idefics idefics2"},
    TokenizerClass{"GemmaTokenizer", "gemma", kSpiece,
                   "gemma diffusion_gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text "
                   "recurrent_gemma shieldgemma2 t5gemma zaya"},
    TokenizerClass{"MBartTokenizer", "mbart", kSpiece, "mbart"},
    TokenizerClass{"MBart50Tokenizer", "mbart50", kSpiece, "mbart50"},
    TokenizerClass{"NllbTokenizer", "nllb", kSpiece, "nllb nllb-moe"},
    TokenizerClass{
        "TokenizersBackend", "sentencepiece", kSpiece,
        "llama EvollaModel aria arctic beam bigbird_pegasus canary chatlm cohere_asr ernie4_5 "
        "ernie4_5_moe flex_olmo fuyu glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm_image "
        "glmasr got_ocr2 gpt_bigcode gradium_phonon_tts granite granitemoe granitemoehybrid "
        "granitemoeshared h2ovl_chat hyperclovax hyperclovax_vlm internlm2 internlm3 iquestcoder "
        "jamba kimi_k25 kimi_linear kosmos-2 llava llava_next mimo_v2_flash minicpm3 minicpm_ocr "
        "minicpmv minicpmv4_6 minicpmv4_7 minimax_m2 ministral ministral3 mistral mistral3 "
        "mistral_large4 mixtral molmo molmo2 nemo_speechlm nemotron nvfp4 nystromformer olmo2 "
        "olmo3 olmo_hybrid omniasr opencua openvla paddleocr_vl pegasus_x persimmon phi3 phi3_v "
        "phimoe pix2struct pixtral pocket_tts smolvlm stablelm step3_vl umt5 vipllava voxtral "
        "voxtral_realtime xlm-roberta-xl"}};

constexpr std::array<std::string_view, 5> kGeneral{"TokenizersBackend", "PythonBackend",
                                                   "PreTrainedTokenizer", "PreTrainedTokenizerFast",
                                                   "SentencePieceBackend"};
constexpr std::string_view kOwn = "gau_alpha masque modernbert modernbert-decoder neobert tta";
constexpr std::string_view kOverruling =
    "hyperclovax_vision_v2 qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp siglip2";

/// Whether `word` is one of `words`, which spaces separate.
bool lists(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

const TokenizerClass* find_tokenizer_class(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  const auto* found = std::ranges::find(kClasses, name, &TokenizerClass::name);
  return found == kClasses.end() ? nullptr : found;
}

const TokenizerClass* tokenizer_class_of_type(std::string_view model_type) {
  const auto* found = std::ranges::find_if(
      kClasses, [&](const TokenizerClass& known) { return lists(known.model_types, model_type); });
  return found == kClasses.end() ? nullptr : found;
}

const TokenizerClass& first_tokenizer_class(std::string_view architecture) {
  const auto* found = std::ranges::find(kClasses, architecture, &TokenizerClass::architecture);
  MASQUE_CHECK(found != kClasses.end());
  return *found;
}

// Their constructors keep the argument do_lower_case to themselves: BertTokenizer never gets it.
bool always_lowers(std::string_view name) {
  const TokenizerClass* known = find_tokenizer_class(name);
  return known != nullptr && known->name.starts_with("DPR");
}

bool is_general_class(std::string_view name) {
  return std::ranges::find(kGeneral, name) != kGeneral.end();
}

bool overrules_class(std::string_view model_type) { return lists(kOverruling, model_type); }

bool reads_any_spiece(std::string_view model_type, bool named) {
  if (model_type.starts_with("modernbert")) return true;
  const TokenizerClass* known = tokenizer_class_of_type(model_type);
  // transformers lists no class for "llama": one that is named counts.
  return known != nullptr && is_general_class(known->name) && !(named && model_type == "llama");
}

bool is_own_type(std::string_view model_type) { return lists(kOwn, model_type); }

}  // namespace masque::text
