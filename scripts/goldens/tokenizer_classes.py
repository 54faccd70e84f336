#!/usr/bin/env python3
"""Tries every tokenizer class of transformers on tiny vocabularies: the ids of AutoTokenizer.from_pretrained for folders that have
the class's vocabulary files and no tokenizer.json.

usage: tokenizer_classes.py             writes tests/data/text/classes/ (vocabularies, cases.jsonl, settings.jsonl)
       tokenizer_classes.py --compare BIN [NAME…]   compares with the `tok` in the folder BIN: equal ids, or refused; exit code 1 if not
       tokenizer_classes.py --settings BIN [NAME…]  the same for each setting of the files next to a vocabulary, one at a time
       tokenizer_classes.py --json BIN [NAME…]      the same for folders that transformers wrote, with a tokenizer.json
       tokenizer_classes.py --random BIN COUNT SEED the same for COUNT random combinations of settings of each class
       tokenizer_classes.py --random-json BIN COUNT SEED the same next to a tokenizer.json
       (with --decode after BIN each also compares the texts that ids with special tokens give, with and without these)
       tokenizer_classes.py --show NAME…  prints the parts of transformers' tokenizers

Ran with transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3, Python 3.11. Needs no network.
"""
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
import transformers
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "text" / "classes"

LINES = [
    "the cats sat on the mat", "  The  CAT sat ", "year 2024, 12 cats", "cafe\u0301 café É", "a<mask>b <mask> [MASK] c", "<s> the </s> <pad><unk>x",
    "don't I'll we've", "中国 今天天气 が", "zebra 😀 \u2028x", "the\tcat\u00a0sat", "▁the ▁▁", "[CLS] the [SEP]", "<|endoftext|> the cat", "<extra_id_0> cat <extra_id_99>",
    "", " ", "``the'' - (cat) <start_of_turn>", "<new>the<new>", "en_XX the eng_Latn", "１２ ﬁ", "x  ", "\u0301a Straße", "the<bos>cat<eos>", "M K T A <cls> <eos> MKTB",
]
TEXT = ("the cat sat on the mat in a hat and the cats don't I'll we've café cafe naïve the year 2024 12 1990 , . - ( ) ' \" The CAT ON x y z "
        "b c d e f g h i j k l m n o p q r s t u v w 0 1 2 3 4 5 6 7 8 9 中 国 中国 が É é [ ] < > _ /").split()


def sentences():
    """Words in a fixed order."""
    state, out = 7, []
    for _ in range(400):
        words = []
        for _ in range(9):
            state = (state * 1103515245 + 12345) % 2**31
            words.append(TEXT[state // 65536 % len(TEXT)])
        out.append(" ".join(words))
    return out


def spiece(mode, specials, extra=(), size=170, byte_fallback=False, rules=True):
    """A SentencePiece model that begins with `specials` (piece, type) and ends with `extra`."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as tsv:
        tsv.write("".join(f"{a}\t{b}\n" for a, b in [("A0", "20"), ("9", "20"), ("2028", "20"), ("FF11", "31"), ("FF12", "32"), ("65 301", "E9"), ("FB01", "66 69")]))
        tsv.flush()
        model = io.BytesIO()
        options = {"normalization_rule_tsv": tsv.name} if rules else {"normalization_rule_name": "identity"}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences()), model_writer=model, model_type=mode, vocab_size=size, hard_vocab_limit=False,
                                                 num_threads=1, minloglevel=2, character_coverage=1.0, unk_id=0, bos_id=1, eos_id=2, pad_id=-1, **options)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    normal = [(p.piece, p.score) for p in proto.pieces if p.type == 1]
    del proto.pieces[:]
    for piece, kind in specials:
        proto.pieces.add(piece=piece, score=0.0, type=kind)
    if byte_fallback:
        proto.trainer_spec.byte_fallback = True
        for b in range(256):
            proto.pieces.add(piece=f"<0x{b:02X}>", score=0.0, type=6)
    known = {piece for piece, _ in specials}
    for i, (piece, score) in enumerate(n for n in normal if n[0] not in known):
        proto.pieces.add(piece=piece, score=-float(i) if mode == "bpe" else score, type=1)
    for piece, kind in extra:
        proto.pieces.add(piece=piece, score=-20.0 if kind == 1 else 0.0, type=kind)
    ids = {p.piece: i for i, p in enumerate(proto.pieces)}
    spec = proto.trainer_spec
    spec.unk_id = next(i for i, p in enumerate(proto.pieces) if p.type == 2)
    spec.unk_piece = proto.pieces[spec.unk_id].piece
    for name, options in (("bos", ("<s>", "<bos>", "[CLS]")), ("eos", ("</s>", "<eos>", "[SEP]")), ("pad", ("<pad>", "[PAD]"))):
        piece = next((o for o in options if o in ids), None)
        setattr(spec, name + "_id", ids[piece] if piece else -1)
        if piece:
            setattr(spec, name + "_piece", piece)
    del spec.input[:]
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    return proto.SerializeToString(deterministic=True)


def byte_level():
    """vocab.json and merges.txt, with the special tokens of many classes."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = [chr(b) for b in kept] + [chr(0x100 + i) for i in range(256 - len(kept))]
    merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("t", "he"), ("a", "t"), ("c", "at"), ("Ġ", "cat"), ("cat", "s"), ("Ġcat", "s"), ("i", "n"), ("Ġ", "Ġ"), ("Ã", "©"), ("l", "l"), ("'", "ll"),
              ("2", "0"), ("20", "2"), ("202", "4"), ("Ġ", "202"), ("Ġ", "2024"), ("1", "2"), ("Ġ", "12"), ("ä", "¸"), ("ä¸", "Ń"), ("'", "s"), ("'", "t"), ("s", "at"), ("Ġ", "sat")]
    names = ["<s>", "<pad>", "</s>", "<unk>", "<|endoftext|>", "[CLS]", "[SEP]", "[PAD]", "[UNK]"]
    vocab = {t: i for i, t in enumerate([*names, *alphabet, *(a + b for a, b in merges), "<mask>", "[MASK]"])}
    return (json.dumps(vocab, ensure_ascii=False, separators=(",", ":")) + "\n").encode(), ("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)).encode()


def end_of_word():
    """vocab.json and merges.txt of a BPE that marks the ends of words."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = [chr(b) for b in kept] + [chr(0x100 + i) for i in range(256 - len(kept))]
    alphabet = [*alphabet, *(c + "</w>" for c in alphabet), "É", "é</w>", "中", "国</w>"]
    merges = [("t", "h"), ("th", "e</w>"), ("a", "t"), ("c", "at"), ("cat", "s</w>"), ("c", "at</w>"), ("a", "t</w>"), ("s", "at</w>"), ("o", "n</w>"), ("1", "2</w>")]
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    vocab = {t: i for i, t in enumerate(dict.fromkeys([*names, *alphabet, *(a + b for a, b in merges), "<mask>", "<|startoftext|>", "<|endoftext|>"]))}
    return (json.dumps(vocab, ensure_ascii=False, separators=(",", ":")) + "\n").encode(), ("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)).encode()


def words(han=True):
    """vocab.txt"""
    tokens = ("[PAD] [UNK] [CLS] [SEP] [MASK] <s> <pad> </s> <unk> <mask> <cls> <eos> <sep> the cat ##s cats sat on mat in a b c x y the year 2024 20 ##24 12 cafe café ##e ##\u0301 don ' t i ll we ve "
              ", . - ( ) [ ] < > mask ` \" 中 国 今 天 气 が か The CAT ##AT C ##a ##b z ##e ##b ##r ##ra É 1 2 fi ﬁ str ##a ##ß ##e M K T A B MK s . new ##en").split()
    tokens += ["中国", "今天", "天气"] if han else []
    return ("\n".join(dict.fromkeys(tokens)) + "\n").encode()


def esm():
    return ("\n".join("<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <null_1> <mask>".split()) + "\n").encode()


def ranked():
    """Bytes and a few longer tokens, in the order in which BPE makes them."""
    longer = "th the \u0120the at cat \u0120cat \u0120t 20 202 2024 ll 'll \u00c3\u00a9 caf ca ab aba bab sat \u0120sat".split()
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    byte = {chr(b): b for b in kept} | {chr(0x100 + i): b for i, b in enumerate(b for b in range(256) if b not in kept)}
    return [bytes([b]) for b in range(256)] + [bytes(byte[c] for c in token) for token in sorted(longer, key=len)]


def tekken():
    import base64
    tokens = ranked()
    listed = ["<unk>", "<s>", "</s>", "[INST]", "<pad>"]
    pattern = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    return json.dumps({
        "config": {"pattern": pattern, "num_vocab_tokens": len(tokens), "default_vocab_size": len(tokens) + 8 - 2, "default_num_special_tokens": 8, "version": "v3"},
        "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)],
        "special_tokens": [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(listed)]}).encode()


def tiktoken_file():
    import base64
    return b"".join(base64.b64encode(t) + b" %d\n" % i for i, t in enumerate(ranked()))


def vocabularies():
    c, u, s = 3, 2, 1
    json_, merges = byte_level()
    ends, end_merges = end_of_word()
    return {
        "unigram.model": spiece("unigram", [("<unk>", u), ("<s>", c), ("</s>", c)]),
        "plain.model": spiece("unigram", [("<unk>", u), ("<s>", c), ("</s>", c)], rules=False),
        "camembert.model": spiece("unigram", [("<unk>", u), ("<s>", c), ("</s>", c)], [("<unk>NOTUSED", s)]),
        "t5.model": spiece("unigram", [("<pad>", c), ("</s>", c), ("<unk>", u)]),
        "mt5.model": spiece("unigram", [("<pad>", c), ("</s>", c), ("<unk>", u)], [(f"▁<extra_id_{i}>", 4) for i in range(99, -1, -1)]),
        "albert.model": spiece("unigram", [("<pad>", c), ("<unk>", u), ("[CLS]", c), ("[SEP]", c), ("[MASK]", c), ("(", 4), (")", 4)]),
        "xlnet.model": spiece("unigram", [("<unk>", u), ("<s>", c), ("</s>", c), ("<cls>", c), ("<sep>", c), ("<pad>", c), ("<mask>", c), ("<eod>", 4), ("<eop>", 4)]),
        "deberta.model": spiece("unigram", [("[PAD]", c), ("[CLS]", c), ("[SEP]", c), ("[UNK]", u)]),
        "barthez.model": spiece("unigram", [("<s>", c), ("<pad>", c), ("</s>", c), ("<unk>", u)], [("<mask>", c)]),
        "llama.model": spiece("bpe", [("<unk>", u), ("<s>", c), ("</s>", c)], byte_fallback=True, rules=False),
        "gemma.model": spiece("bpe", [("<pad>", c), ("<eos>", c), ("<bos>", c), ("<unk>", u), ("<mask>", 4), ("<start_of_turn>", 4)], byte_fallback=True, rules=False),
        "bpe.model": spiece("bpe", [("<unk>", u), ("<s>", c), ("</s>", c)]),
        "tekken.json": tekken(), "tiktoken.model": tiktoken_file(),
        "vocab.json": json_, "merges.txt": merges, "ends.json": ends, "ends_merges.txt": end_merges, "vocab.txt": words(), "latin.txt": words(False), "esm.txt": esm(),
    }


# Which of these the vocabulary files of a class are filled with, where it is not the usual one.
CLASSES = {
    "AlbertTokenizer": "albert.model", "XLNetTokenizer": "xlnet.model", "T5Tokenizer": "t5.model", "DebertaV2Tokenizer": "deberta.model", "UdopTokenizer": "t5.model",
    "BarthezTokenizer": "barthez.model", "CamembertTokenizer": "camembert.model", "LlamaTokenizer": "llama.model", "CodeLlamaTokenizer": "llama.model", "GemmaTokenizer": "gemma.model",
    "NllbTokenizer": "bpe.model", "ReformerTokenizer": "bpe.model", "FNetTokenizer": "albert.model", "RemBertTokenizer": "albert.model", "PegasusTokenizer": "t5.model", "BigBirdTokenizer": "albert.model",
    "CLIPTokenizer": "ends.json", "OpenAIGPTTokenizer": "ends.json", "HerbertTokenizer": "ends.json", "EsmTokenizer": "esm.txt", "CpmTokenizerFast": "llama.model",
    "TokenizersBackend": "llama.model", "PreTrainedTokenizerFast": "llama.model", "ParakeetTokenizer": "llama.model",
}
EXTRA_NAMES = ["XLMRobertaTokenizer", "ElectraTokenizer", "DistilBertTokenizer", "RoFormerTokenizer", "LongformerTokenizer", "LEDTokenizer", "MvpTokenizer", "LxmertTokenizer", "RetriBertTokenizer", "LayoutLMTokenizer",
               "BloomTokenizer", "PhobertTokenizer", "QWenTokenizer", "ChatGLMTokenizer", "InternLMTokenizer", "BaichuanTokenizer", "Xyz", "TokenizersBackend"]


# Classes that tok reads; it refuses the others by name.
READ = {"AlbertTokenizer", "BartTokenizer", "BertTokenizer", "CLIPTokenizer", "CamembertTokenizer", "ConvBertTokenizer", "DPRContextEncoderTokenizer",
        "DPRQuestionEncoderTokenizer", "DebertaTokenizer", "DebertaV2Tokenizer", "DistilBertTokenizer", "ElectraTokenizer", "EsmTokenizer", "GPT2Tokenizer", "GPTNeoXTokenizer",
        "GemmaTokenizer", "LEDTokenizer", "LayoutLMTokenizer", "LlamaTokenizer", "LongformerTokenizer", "LxmertTokenizer", "MBart50Tokenizer", "MBartTokenizer", "MPNetTokenizer",
        "MobileBertTokenizer", "MvpTokenizer", "NllbTokenizer", "PreTrainedTokenizer", "PreTrainedTokenizerFast", "Qwen2Tokenizer", "RetriBertTokenizer", "RobertaTokenizer",
        "SqueezeBertTokenizer", "T5Tokenizer", "TokenizersBackend", "WhisperTokenizer", "XLMRobertaTokenizer", "XLNetTokenizer", "T5"}
# Model types that tok refuses although transformers reads them with a class that tok reads.
REFUSED_SETTINGS = ("WhisperTokenizer language", "WhisperTokenizer task", "EsmTokenizer split", "EsmTokenizer added")
REFUSED_TYPES = {"model_type camembertv2-base", "model_type code_llama", "model_type gpt-sw3"}
def class_names():
    names = {n.removesuffix("Fast") if n != "PreTrainedTokenizerFast" and n != "CpmTokenizerFast" else n for n in dir(transformers)
             if n.endswith("Tokenizer") or n.endswith("TokenizerFast")}
    names |= {n for n in TOKENIZER_MAPPING_NAMES.values() if n}
    names -= {"AutoTokenizer", "BasicTokenizer", "WordpieceTokenizer", "CharacterTokenizer", "MecabTokenizer"}
    return sorted(names | set(EXTRA_NAMES))


def files_of(name, vocabulary):
    """File in the folder → name in vocabularies()."""
    try:
        wanted = getattr(transformers, name).vocab_files_names
    except BaseException:  # no such class, or one that lacks a package
        wanted = {}
    names = [n for n in (wanted or {}).values() if n not in ("tokenizer.json", "tokenizer_config.json")]
    if name in ("GemmaTokenizer", "XGLMTokenizer", "Siglip2Tokenizer"):
        names = ["tokenizer.model" if name != "XGLMTokenizer" else "sentencepiece.bpe.model"]
    names = names or ["vocab.txt"]
    own = CLASSES.get(name)
    out = {}
    for file in names:
        if file.endswith(".model"):
            out[file] = own if own and own.endswith(".model") else "unigram.model"
        elif file == "vocab.json":
            out[file] = own if own and own.endswith(".json") else "vocab.json"
        elif file == "merges.txt":
            out[file] = "ends_merges.txt" if own == "ends.json" else "merges.txt"
        elif file == "vocab.txt":
            out[file] = own if own and own.endswith(".txt") else "vocab.txt"
    return out


def cases():
    """(name, files, tokenizer_config.json, config.json)"""
    out = []
    for name in class_names():
        files = files_of(name, None)
        out.append((name, files, {"tokenizer_class": name}, None))
    def more(name, cls, files, settings=None, config=None):
        out.append((name, files, None if cls is None and settings is None else {**({"tokenizer_class": cls} if cls else {}), **(settings or {})}, config))
    bpe, ends = {"vocab.json": "vocab.json", "merges.txt": "merges.txt"}, {"vocab.json": "ends.json", "merges.txt": "ends_merges.txt"}
    for cls in ("GPT2Tokenizer", "GPTNeoXTokenizer", "Qwen2Tokenizer", "WhisperTokenizer"):
        more(f"{cls} bos eos", cls, bpe, {"add_bos_token": True, "add_eos_token": True, "bos_token": "<s>", "eos_token": "</s>"})
        more(f"{cls} prefix", cls, bpe, {"add_prefix_space": True})
    more("GPT2Tokenizer no bos", "GPT2Tokenizer", bpe, {"add_bos_token": False, "bos_token": "<s>"})
    more("RobertaTokenizer prefix", "RobertaTokenizer", bpe, {"add_prefix_space": True})
    more("RobertaTokenizer bos", "RobertaTokenizer", bpe, {"add_bos_token": True})
    for cls, model in (("LlamaTokenizer", "llama.model"), ("GemmaTokenizer", "gemma.model"), ("TokenizersBackend", "llama.model")):
        file = {"tokenizer.model": model}
        more(f"{cls} bos eos", cls, file, {"add_bos_token": True, "add_eos_token": True})
        more(f"{cls} bos", cls, file, {"add_bos_token": True, "add_eos_token": False})
        more(f"{cls} legacy", cls, file, {"legacy": True, "add_bos_token": True})
        more(f"{cls} new", cls, file, {"legacy": False, "add_bos_token": True})
        more(f"{cls} no prefix", cls, file, {"add_prefix_space": False, "legacy": False})
        more(f"{cls} no prefix, legacy", cls, file, {"add_prefix_space": False, "legacy": True})
    more("T5 0", "T5Tokenizer", {"spiece.model": "mt5.model"}, {"extra_ids": 0})
    more("T5 20", "T5Tokenizer", {"spiece.model": "t5.model"}, {"extra_ids": 20})
    more("T5 384", "T5Tokenizer", {"spiece.model": "t5.model"}, {"extra_ids": 384})
    new = {"content": "<new>", "lstrip": False, "rstrip": True, "normalized": False, "single_word": False, "special": True}
    for cls, files in (("XLMRobertaTokenizer", {"sentencepiece.bpe.model": "unigram.model"}), ("BertTokenizer", {"vocab.txt": "vocab.txt"}), ("GPT2Tokenizer", bpe), ("LlamaTokenizer", {"tokenizer.model": "llama.model"})):
        more(f"{cls} extra", cls, files, {"additional_special_tokens": ["<new>"]})
        more(f"{cls} extra 2", cls, files, {"extra_special_tokens": ["<new>"]})
        more(f"{cls} decoder", cls, files, {"added_tokens_decoder": {"900": new}})
        more(f"{cls} own token", cls, files, {"image_token": "<new>"})
        more(f"{cls} mask object", cls, files, {"mask_token": {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}})
        more(f"{cls} split", cls, files, {"split_special_tokens": True})
    last = {"content": "<|eot|>", "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}
    for cls in ("PreTrainedTokenizerFast", "TokenizersBackend"):
        more(f"{cls} tekken", cls, {"tekken.json": "tekken.json"})
        more(f"{cls} tekken bos", cls, {"tekken.json": "tekken.json"}, {"add_bos_token": True, "add_eos_token": True, "bos_token": "<s>", "eos_token": "</s>"})
        more(f"{cls} tekken new", cls, {"tekken.json": "tekken.json"}, {"additional_special_tokens": ["<new>"]})
        more(f"{cls} tiktoken", cls, {"tokenizer.model": "tiktoken.model"})
        more(f"{cls} tiktoken name", cls, {"tiktoken.model": "tiktoken.model"}, {"add_bos_token": True, "bos_token": "<s>"})
        more(f"{cls} tiktoken added", cls, {"tokenizer.model": "tiktoken.model"}, {"added_tokens_decoder": {"280": last}})
    more("model_type mistral tekken", None, {"tekken.json": "tekken.json"}, None, {"model_type": "mistral"})
    # What config.json says counts where tokenizer_config.json names no class.
    for kind in sorted(TOKENIZER_MAPPING_NAMES) + ["llama", "modernbert", "mistral", "t5gemma", "unheard-of"]:
        cls = TOKENIZER_MAPPING_NAMES.get(kind) or "BertTokenizer"
        more(f"model_type {kind}", None, files_of(cls, None), None, {"model_type": kind})
    for cls in ("BertJapaneseTokenizer", "XLMRobertaTokenizer", "BertTokenizer"):
        more(f"config.json {cls}", None, files_of(cls, None), None, {"model_type": "bert", "tokenizer_class": cls})
    return out


# The classes whose settings are changed.
CHANGED = ["AlbertTokenizer", "XLNetTokenizer", "T5Tokenizer", "DebertaV2Tokenizer", "DebertaTokenizer", "RobertaTokenizer", "BartTokenizer", "XLMRobertaTokenizer", "CamembertTokenizer",
           "MBartTokenizer", "MBart50Tokenizer", "NllbTokenizer", "GPT2Tokenizer", "GPTNeoXTokenizer", "Qwen2Tokenizer", "CLIPTokenizer", "WhisperTokenizer", "LlamaTokenizer", "GemmaTokenizer",
           "BertTokenizer", "ElectraTokenizer", "MPNetTokenizer", "RoFormerTokenizer", "EsmTokenizer", "TokenizersBackend", "PreTrainedTokenizerFast"]
BOTH = [True, False]
MASK = {"content": "<mask>", "lstrip": True, "rstrip": True, "normalized": True, "single_word": False}
MASK_OBJECT = {"__type": "AddedToken", **MASK}
# The values that are tried for each key of tokenizer_config.json.
SETTINGS = {
    **dict.fromkeys("add_prefix_space do_lower_case keep_accents tokenize_chinese_chars split_by_punct legacy trim_offsets add_bos_token add_eos_token remove_space clean_up_tokenization_spaces "
                    "do_basic_tokenize use_default_system_prompt from_slow spaces_between_special_tokens use_fast predict_timestamps normalize legacy_behaviour add_dummy_prefix fuse_unk byte_fallback "
                    "lowercase normalization fix_mistral_regex".split(), BOTH),
    "strip_accents": [True, False, None], "extra_ids": [0, 5, 100], "split_special_tokens": [True], "never_split": [["the"], None], "unk_token": ["<unk>", "[UNK]", "zzz"],
    "mask_token": ["<mask>", "[MASK]", "the", MASK_OBJECT], "cls_token": ["<s>", "[CLS]", "</s>"], "sep_token": ["</s>", "[SEP]"], "bos_token": ["<s>", "<new>", None],
    "eos_token": ["</s>", "<|endoftext|>"], "pad_token": ["<pad>", "[PAD]", None], "additional_special_tokens": [[], ["<new>"], ["cat"], ["<extra_id_0>"]],
    "extra_special_tokens": [[], ["<new>"], {"image": "<new>"}], "model_max_length": [5, 512], "sp_model_kwargs": [{}, {"enable_sampling": True, "alpha": 0.1}], "errors": ["replace", "strict"],
    "truncation_side": ["left"], "padding_side": ["left"], "vocab_type": ["spm"], "src_lang": ["en_XX", "de_DE", "eng_Latn", "zz"], "tgt_lang": ["de_DE"], "language": ["en", None],
    "task": ["transcribe", None], "unk_id": [0, 5], "_spm_precompiled_charsmap": [None], "vocab_file": ["foo"], "dropout": [0.5], "wordpieces_prefix": ["##", "@@"], "max_input_chars_per_word": [3],
    "word_tokenizer_type": ["basic"], "additional_special_tokens_ids": [[3]], "backend": ["tokenizers", "sentencepiece"], "max_length": [4], "stride": [0], "truncation_strategy": ["longest_first"],
    "pad_to_multiple_of": [8],
    "added_tokens_decoder": [{"900": {**MASK, "content": "<new>", "special": False}}, {"3": {"content": "cat", "lstrip": False, "rstrip": False, "normalized": False, "single_word": True, "special": True}}],
}
# The same for special_tokens_map.json, and added_tokens.json as a whole.
TOKEN_MAP = {"additional_special_tokens": [["<new>"], ["cat"], []], "extra_special_tokens": [["<new>"], {"im": "<new>"}], "mask_token": ["the", MASK], "unk_token": ["<unk>", "zzz"],
             "cls_token": ["</s>"], **dict.fromkeys(["pad_token", "bos_token", "eos_token", "sep_token"], ["<new>"])}
ADDED = [{"<new>": 900}, {"cat": 3}, {"[MASK]": 4}]


def changed_case(cls, changes):
    """A case of cls with changes: (file, key, value)."""
    beside = {"tokenizer_config.json": {"tokenizer_class": cls}}
    for file, key, value in changes:
        if key is None:
            beside[file] = value
        else:
            beside.setdefault(file, {})[key] = value
    settings = beside.pop("tokenizer_config.json")
    name = " ".join([cls, *(f"{key or file}={json.dumps(value)}" for file, key, value in changes)])
    return name, files_of(cls, None), settings, None, beside


def all_changes():
    return [*(("tokenizer_config.json", k, v) for k, values in SETTINGS.items() for v in values), *(("special_tokens_map.json", k, v) for k, values in TOKEN_MAP.items() for v in values),
            *(("added_tokens.json", None, v) for v in ADDED)]


def settings_cases():
    return [changed_case(cls, [change]) for cls in CHANGED for change in all_changes()]


# The classes of which the tests have a tokenizer.json.
WITH_JSON = ["BertTokenizer", "RobertaTokenizer", "XLMRobertaTokenizer", "T5Tokenizer"]


def saved(cls, store):
    """tokenizer.json and the settings that transformers writes for the class; None if it does not."""
    folder, out = pathlib.Path(tempfile.mkdtemp()), pathlib.Path(tempfile.mkdtemp())
    try:
        write_folder(folder, files_of(cls, None), {"tokenizer_class": cls}, None, store)
        transformers.AutoTokenizer.from_pretrained(str(folder)).save_pretrained(str(out))
        settings = json.loads((out / "tokenizer_config.json").read_text())
        return json.dumps(json.loads((out / "tokenizer.json").read_text()), ensure_ascii=False, separators=(",", ":")).encode() + b"\n", settings
    except Exception:  # ESM has none, RoFormer needs a package
        return None
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(out)


def json_cases(store, classes, draw=None):
    """Adds the files to store. Each setting alone; or the combinations that draw() gives, lists of changes."""
    out = []
    for cls in classes:
        made = saved(cls, store)
        if made is None:
            continue
        name = f"{cls}.json"
        store[name], settings = made
        out.append((f"{cls} tokenizer.json", {"tokenizer.json": name}, settings, None, {}))
        # Only the model's type says the class: that counts too, unless a general class is named.
        unnamed = {key: value for key, value in settings.items() if key != "tokenizer_class"}
        for kind in [t for t, c in TOKENIZER_MAPPING_NAMES.items() if c == cls][:1]:
            for how, named in (("", unnamed), (" bare", {}), (" general", {"tokenizer_class": "PreTrainedTokenizerFast"})):
                out.append((f"{cls} tokenizer.json model_type {kind}{how}", {"tokenizer.json": name}, named, {"model_type": kind}, {}))
        for changes in draw() if draw else [[change] for change in all_changes()]:
            shown, _, changed, _, beside = changed_case(cls, changes)
            out.append((shown.replace(cls, f"{cls} tokenizer.json", 1), {"tokenizer.json": name}, {**settings, **changed}, None, beside))
    return out


def combinations(count, seed):
    """draw() gives count lists of 2 to 5 changes."""
    chance, changes = random.Random(seed), all_changes()
    return lambda: [chance.sample(changes, chance.randint(2, 5)) for _ in range(count)]


def random_cases(count, seed):
    draw = combinations(count, seed)
    return [changed_case(cls, changes) for cls in CHANGED for changes in draw()]


def write_folder(folder, files, settings, config, store, beside=()):
    for name, source in files.items():
        (folder / name).write_bytes(store[source])
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    for name, value in dict(beside).items():
        (folder / name).write_text(json.dumps(value))


def reference(folder):
    """The ids with and without special tokens; a message if transformers cannot read the folder."""
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
        return [[tokenizer(t)["input_ids"], tokenizer(t, add_special_tokens=False)["input_ids"]] for t in LINES], tokenizer
    except BaseException as error:  # whatever a class may raise
        return f"{type(error).__name__}: {error}".split("\n")[0][:200], None


def tok(binary, folder):
    out = []
    for options in (["--special"], []):
        run = subprocess.run([binary, "encode", str(folder), *options, "--jsonl"], input="".join(t + "\n" for t in LINES).encode(), capture_output=True)
        if run.returncode:
            return f"{run.returncode} {run.stderr.decode().strip()}"
        out.append([json.loads(line)["ids"] for line in run.stdout.decode().splitlines()])
    return [list(pair) for pair in zip(*out)]


def decoded(binary, folder, ids, tokenizer):
    """What decoding gives in transformers but not in tok, of the first text with another: (ids, text, tok's); None if all are equal."""
    lines = "".join(" ".join(map(str, pair[0])) + "\n" for pair in ids).encode()
    for options in ([], ["--skip-special"]):
        run = subprocess.run([binary, "decode", str(folder), *options], input=lines, capture_output=True)
        mine = run.stdout.decode().split("\n")[:-1] if run.returncode == 0 else [run.stderr.decode().strip()] * len(ids)
        theirs = [tokenizer.decode(pair[0], skip_special_tokens=bool(options)) for pair in ids]
        for k in range(len(ids)):
            if mine[k:k + 1] != theirs[k:k + 1]:
                return ids[k][0], options, theirs[k], mine[k:k + 1]
    return None


def class_of(name, settings, config, tokenizer):
    """The class that a case is about."""
    named = (settings or {}).get("tokenizer_class") or (config or {}).get("tokenizer_class")
    return named or (type(tokenizer).__name__ if tokenizer else TOKENIZER_MAPPING_NAMES.get(config["model_type"]) or "none")


def golden_case(name, files, settings, config, ids, tokenizer):
    """What the test reads: ids for each text, or that the folder is refused; neither where transformers cannot read it."""
    case = {"name": name, "files": files, "settings": settings, "config": config}
    known = class_of(name, settings, config, tokenizer)
    if name in REFUSED_TYPES:
        known = "none"
    if name == "model_type llama":  # without a SentencePiece file it means nothing
        return case
    if known.removesuffix("Fast") not in READ and known not in READ:
        case["refused"] = True
    elif not isinstance(ids, str):
        texts = 3 if name.startswith("model_type") else len(LINES)
        case["ids"] = [ids[i][0] for i in range(texts)]
    return case


def show(name, files, ids, tokenizer):
    print("==", name, files, ids if isinstance(ids, str) else type(tokenizer).__name__)
    if tokenizer is None or not hasattr(tokenizer, "backend_tokenizer"):
        return
    parts = json.loads(tokenizer.backend_tokenizer.to_str())
    model = parts["model"]
    vocab = list(model["vocab"])
    print("  model", {k: v for k, v in model.items() if k not in ("vocab", "merges")}, len(vocab), vocab[:6], vocab[-3:])
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        print(" ", part, str(json.dumps(parts[part], ensure_ascii=False))[:1500])
    for token in parts["added_tokens"][:14]:
        print("   ", token["id"], token["content"], *(k for k, v in token.items() if v is True))


def compare(name, ids, mine, folder):
    """Prints how `tok` does and returns it."""
    if isinstance(mine, str):
        print(f"refused  {name:40} {'' if isinstance(ids, str) else '(transformers reads it) '}{mine[:230].replace(str(folder), '')}")
        return "refused"
    if isinstance(ids, str):
        print(f"ONLY TOK {name:40} {ids[:120]}")
        return "that only tok reads"
    if mine == ids:
        print(f"equal    {name}")
        return "equal"
    k = next(i for i in range(len(ids)) if ids[i] != mine[i])
    print(f"OTHER    {name:40} {sum(a != b for a, b in zip(ids, mine))} of {len(ids)} lines, {LINES[k]!r}: {ids[k]} not {mine[k]}")
    return "OTHER"


def effect(plain, ids, most=2):
    """The ids of the first lines that a setting changes; None for the others."""
    changed = [i for i in range(len(ids)) if ids[i] != plain[i]][:most]
    return [ids[i][0] if i in changed else None for i in range(max(changed) + 1)] if changed else None


def write_json_goldens(store):
    """What the files next to a tokenizer.json change; the test takes a refusal too."""
    plain = None
    with open(OUT / "json_settings.jsonl", "w") as out:
        for name, files, settings, config, beside in json_cases(store, WITH_JSON):
            ids, _ = read_case(files, settings, config, store, [beside])
            if name.endswith(" tokenizer.json"):
                plain, shown = ids, [i[0] for i in ids]
            elif config:
                shown = None if isinstance(ids, str) else [i[0] for i in ids[:3]]
            else:
                shown = None if isinstance(ids, str) else effect(plain, ids)
            if shown:
                case = {"name": name, "files": files, "settings": settings, "config": config, "beside": beside, "may_refuse": True, "ids": shown}
                print(json.dumps(case, ensure_ascii=False, separators=(",", ":")), file=out)
    for cls in WITH_JSON:
        (OUT / f"{cls}.json").write_bytes(store[f"{cls}.json"])


def write_goldens(store):
    OUT.mkdir(parents=True, exist_ok=True)
    for file, content in store.items():
        (OUT / file).write_bytes(content)
    (OUT / "texts.json").write_text(json.dumps(LINES, ensure_ascii=False) + "\n")
    plain = {}
    for file, list_of_cases in (("cases.jsonl", cases()), ("settings.jsonl", settings_cases())):
        with open(OUT / file, "w") as out:
            for name, files, settings, config, *beside in list_of_cases:
                ids, tokenizer = read_case(files, settings, config, store, beside)
                if not beside:
                    plain[name] = ids
                    case = golden_case(name, files, settings, config, ids, tokenizer)
                else:  # only what changes something, and is read
                    ids = None if isinstance(ids, str) or name.startswith(REFUSED_SETTINGS) else effect(plain[settings["tokenizer_class"]], ids)
                    case = ids and {"name": name, "files": files, "settings": settings, "config": None, "beside": beside[0], "ids": ids}
                if case:
                    print(json.dumps(case, ensure_ascii=False, separators=(",", ":")), file=out)
    write_json_goldens(store)


def read_case(files, settings, config, store, beside):
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        write_folder(folder, files, settings, config, store, *beside)
        return reference(folder)
    finally:
        shutil.rmtree(folder)


def main():
    import logging
    logging.disable(logging.CRITICAL)
    mode, *arguments = sys.argv[1:] or [""]
    store = vocabularies()
    if not mode:
        write_goldens(store)
        return 0
    drawn = [int(a) for a in arguments[1:3]] if mode.startswith("--random") else []
    tried = {"--settings": settings_cases, "--json": lambda: json_cases(store, CHANGED), "--random": lambda: random_cases(*drawn),
             "--random-json": lambda: json_cases(store, CHANGED, combinations(*drawn))}.get(mode, cases)()
    chosen = arguments if mode == "--show" else arguments[3:] if mode.startswith("--random") else arguments[1:]
    decodes = "--decode" in chosen
    chosen = [c for c in chosen if c != "--decode"]
    counts = {}
    for name, files, settings, config, *beside in tried:
        if chosen and not any(c in name for c in chosen):
            continue
        folder = pathlib.Path(tempfile.mkdtemp())
        write_folder(folder, files, settings, config, store, *beside)
        ids, tokenizer = reference(folder)
        if mode == "--show":
            show(name, files, ids, tokenizer)
        else:
            kind = compare(name, ids, tok(arguments[0] + "/tok", folder), folder)
            if decodes and kind == "equal" and (other := decoded(arguments[0] + "/tok", folder, ids, tokenizer)):
                kind = "OTHER TEXT"
                print(kind, name, *other)
            counts[kind] = counts.get(kind, 0) + 1
        shutil.rmtree(folder)
    print(", ".join(f"{n} {kind}" for kind, n in counts.items()))
    return 1 if {"OTHER", "OTHER TEXT"} & counts.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
