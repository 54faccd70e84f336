#!/usr/bin/env python3
"""Makes tests/data/text/conversions/: tiny folders without tokenizer.json, one per architecture, with
the files that transformers writes, and the ids that its AutoTokenizer gives for lines that are hard. google.json and bert4keras.json hold what the rules of these two give,
written here from their descriptions: they are no part of transformers.

Ran with transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3, Python 3.11 (Unicode 14).
Needs no network.
"""
import io
import json
import pathlib
import random
import sys
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
import transformers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "text" / "conversions"

LINES = [
    "", " ", "   ", "\t", "the", " the ", "  the   cat  ", "The CAT sat ON", "the cat's mat, don't I'll",
    "café Été naïve", "e\u0301te\u0301 cafe\u0301", "e\u0323\u0301 \u0301x", "Ünïcödé ß ŉ ĳ", "İstanbul ıI", "ΟΔΟΣ Σ ΣΑΣ σς",
    "ΟΔΟΣ. ΟΔΟΣ, ΑΣ1 Σ1",
    "Ο'Σ ΟΣ'Ο かΣ ΟΣか Ο.Σ ΟΣ.Ο Ο\u00adΣ ΟΣ\u0301Ο \u0301Σ ʰΣ ΟΣΣΣ", "中国", "the中cat国", "한국어", "\u1112\u1161\u11ab", "がぎ か\u3099", "１２ ａｂ ｶﾞ", "ﬁ ﬂ Ⅷ ① ²",
    "12, 3, 1990,", "1,234,567", "the 12, cat", "9,9,9,", "٣, ٣,٣", "x1, 0,0", "²,", "``the'' cat`` ''", "`` '' ` ' ```", "\"the\" (cat) - £5",
    "a\u00a0b\u2009c\u3000d", "\u0085nel\u2028line\u2029para", "a\tb\x0bc\x0cd\re", "\x00nul\x00 \x01a\x7f\x9f", "soft\u00adhyphen zero\u200bwidth a\u200db",
    "\ufeffbom \ufffdrep", "\u202ertl\u202c", "\ue000private \U000f0000x", "👩\u200d👩\u200d👧 🏳️\u200d🌈 😀", "▁the▁cat ▁ ▁▁", "▁", " ▁ the",
    "[MASK] the[MASK]cat  [MASK]  x", "<mask> the<mask>cat  <mask>  x", "[CLS] the [SEP] [PAD][UNK]", "<s>the</s> <pad><unk> <cls> <sep>",
    "<MASK> [mask]", "<eop> the <eod>x", "the <extra_id_0> cat <extra_id_99><extra_id_1> <extra_id_100>", "<new> the<new>", "the <|endoftext|> cat", "the<extra_id_0>cat</s>the<mask>the[MASK]the<new>the",
    "...!!?? ---", "a.b,c;d", "$5 +1 =2 ^3 |x~", "。，！ 「中」", "𠀀 \U0002b830 \U0002b920 \U0002f800x", "中" * 12, "  " * 12 + "b", "the\u1680cat \u180e x", "'s 'LL ’s",
    "cats mats theca", "\u00a0the\u00a0", " \u3000 ", "x \n y",
]
# Around the limits of WordPiece.
LONG = ["t" * 99, "t" * 100, "t" * 101, "e\u0301" * 100, "é" * 101, "t" * 199, "t" * 200, "t" * 201]


def sentences():
    """Text to train on: words of a small grammar, in a fixed order."""
    rng = random.Random(17)
    words = ("the cat sat on a mat in hat and don't I'll café été naïve the cats mats theca e t a b c d 中国 한국어 が 12 3 1990 "
             "1 234 ( ) - . \" ' line para nel rep bom x σς οδος The CAT ON").split()
    return [" ".join(rng.choices(words, k=9)) for _ in range(300)]


def pieces(path, mode, size=150, extra=(), **options):
    """A model trained on the sentences, with `extra` pieces after the others."""
    rules = OUT / "rules.tsv"
    rules.write_text("".join(f"{a}\t{b}\n" for a, b in [
        ("A0", "20"), ("9", "20"), ("3000", "20"), ("D", "20"), ("A", "20"), ("D A", "20"), ("FF11", "31"), ("FF12", "32"), ("FF41", "61"),
        ("65 301", "E9"), ("FF76 FF9E", "30AC"), ("FB01", "66 69"), ("1112 1161 11AB", "D55C"), ("200B", "20"), ("AD", "")]))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences()), model_writer=model, model_type=mode, vocab_size=size,
        normalization_rule_tsv=str(rules), hard_vocab_limit=False, num_threads=1, minloglevel=2,
        character_coverage=1.0, **options)
    rules.unlink()
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    have = {p.piece for p in proto.pieces}
    for piece, score in extra:
        if piece not in have:
            proto.pieces.add(piece=piece, score=score)
    del proto.trainer_spec.input[:]
    proto.normalizer_spec.ClearField("normalization_rule_tsv")  # the path of this run
    path.write_bytes(proto.SerializeToString(deterministic=True))
    return proto


def write_json(folder, name, value):
    (folder / name).write_text(json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


def opened(folder):
    return transformers.AutoTokenizer.from_pretrained(str(folder)).backend_tokenizer


def spiece(name, config, file, added=None, **options):
    """A folder with a SentencePiece model and its tokenizer."""
    folder = OUT / name
    folder.mkdir(exist_ok=True)
    commas = [("1,", -3.0), ("▁12,", -3.5), ("0,", -3.2), ("9", -6.0), ("٣,", -3.0), ("٣", -6.0), (",", -5.0), ("▁the▁", -2.0), ("``", -4.0)]
    pieces(folder / file, "unigram", extra=commas, **options)
    write_json(folder, "tokenizer_config.json", config)
    if added:
        write_json(folder, "added_tokens.json", added)
    return opened(folder)


def wordpiece(name, config, vocab):
    """A folder with vocab.txt."""
    folder = OUT / name
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("".join(t + "\n" for t in vocab))
    write_json(folder, "tokenizer_config.json", config)
    return opened(folder)


def byte_level(name, config, names):
    """A folder with vocab.json and merges.txt."""
    folder = OUT / name
    folder.mkdir(exist_ok=True)
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = [chr(b) for b in kept] + [chr(0x100 + i) for i in range(256 - len(kept))]
    merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("a", "t"), ("c", "at"), ("Ġ", "cat"), ("i", "n"), ("Ġ", "Ġ"), ("Ã", "©"), ("l", "l"), ("'", "ll"),
              ("t", "t"), ("tt", "tt"), ("1", "2"), ("ä", "¸"), ("ä¸", "Ń"), ("'", "s")]
    vocab = {t: i for i, t in enumerate([*names, *alphabet, *(a + b for a, b in merges)])}
    (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False, separators=(",", ":")) + "\n")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    write_json(folder, "tokenizer_config.json", config)
    return opened(folder)


# Google's and bert4keras' rules.

def chinese(c):
    return any(a <= ord(c) <= b for a, b in [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
                                             (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)])


def punctuation(c):
    return c.isascii() and c.isprintable() and not c.isalnum() and c != " " or unicodedata.category(c)[0] == "P"


def space(c):
    return c in " \t\n\r" or unicodedata.category(c) == "Zs"


def plain(text):
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def removed(c):
    return c in "\0\ufffd" or (unicodedata.category(c) in ("Cc", "Cf") and c not in "\t\n\r")


def longest_pieces(word, vocab):
    """The pieces of a word; None if nothing fits or it is longer than 200 characters."""
    if len(word) > 200:
        return None
    out, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        end = next((e for e in range(len(word), start, -1) if prefix + word[start:e] in vocab), None)
        if end is None:
            return None
        out.append(prefix + word[start:end])
        start = end
    return out


def google(text, vocab, lower):
    cleaned = "".join(" " if space(c) else c for c in text if not removed(c))
    spaced = "".join(f" {c} " if chinese(c) else c for c in cleaned)
    words = []
    for word in spaced.split():
        word = plain(word.lower()) if lower else word
        words += "".join(f" {c} " if punctuation(c) else c for c in word).split()
    return [vocab[t] for word in words for t in longest_pieces(word, vocab) or ["[UNK]"]]


def bert4keras(text, vocab, lower):
    text = plain(text.lower()) if lower else text
    spaced = ""
    for c in text:
        if punctuation(c) or chinese(c):
            spaced += f" {c} "
        elif space(c):
            spaced += " "
        elif not removed(c):
            spaced += c
    return [vocab.get(t, vocab["[UNK]"]) for word in spaced.split() for t in longest_pieces(word, vocab) or [word]]


def save(name, cases):
    lines = [json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in cases]
    (OUT / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    print(name, len(lines), "lines")


def save_converted(name, tokenizer):
    cases = []
    for line in LINES + (LONG if type(tokenizer.model).__name__ == "WordPiece" else LONG[2:4]):
        e = tokenizer.encode(line, add_special_tokens=False)
        cases.append({"text": line, "ids": e.ids, "offsets": [n for o in e.offsets for n in o],
                      "special": tokenizer.encode(line).ids})
    save(name, cases)


WORDS = ("the cat ##s mat sat on in a b c d e g h i l n o p r s t u x y the ##e ##t ##a ##b ##c ##d ##h ##i ##l ##n ##o ##p ##r ##x ##1 ##2 ##3 0 1 2 3 9 , . ' ` \" ( ) - [ ] < > "
         "! ? mask ##sk cls cafe café ete été naive nel ##line line para rep bom rt ##rt ##rtl 中 国 한국어 \u1112\u1161\u11ab か か\u3099 が "
         "οδος οδοσ ο ##ο ##σ ##ς σς σ ς σας \ue000 ##\ue000 \ue000private \U000f0000x \U0002b830 \U0002b920 ##\U0002b920 i ##\u0307 istanbul ıi ß ## ##_ 。 ， 😀 The CAT ##T ON "
         "softhyphen zerowidth ab sigma ΟΔΟΣ ##Σ İ ##stanbul £ 5 $ + = ^ | ~ ; ² ٣ ##٣ １２ ａｂ").split()


def words_vocab(specials):
    return list(dict.fromkeys([*specials, *WORDS, "t" * 201]))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    new = {"content": "<new>", "lstrip": True, "rstrip": True, "normalized": False, "single_word": False, "special": False}
    bert = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    albert = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"],
              "user_defined_symbols": ["(", ")", "-", "£"]}
    xlnet = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1, "control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>"],
             "user_defined_symbols": ["<eod>", "<eop>", ".", "(", ")", "-"]}
    t5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    deberta = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}
    made = {
        "albert": spiece("albert", {"tokenizer_class": "AlbertTokenizer", "do_lower_case": True}, "spiece.model", **albert),
        "albert_accents": spiece("albert_accents", {"tokenizer_class": "AlbertTokenizer", "do_lower_case": False, "keep_accents": True}, "spiece.model", **albert),
        "xlnet": spiece("xlnet", {"tokenizer_class": "XLNetTokenizer", "do_lower_case": False}, "spiece.model", **xlnet),
        "t5": spiece("t5", {"tokenizer_class": "T5Tokenizer", "extra_ids": 100}, "spiece.model", **t5),
        "t5_first": spiece("t5_first", {"tokenizer_class": "T5Tokenizer", "legacy": False}, "spiece.model", **t5),
        # As older versions write it; deberta_v2 has only the default of its class.
        "deberta_v3": spiece("deberta_v3", {"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": False}, "spm.model", {"[MASK]": 108}, **deberta),
        "deberta_v2": spiece("deberta_v2", {"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": True, "split_by_punct": True, "added_tokens_decoder": {"900": new}}, "spm.model",
                             **deberta),
        "roberta": byte_level("roberta", {"tokenizer_class": "RobertaTokenizer", "added_tokens_decoder": {"900": new}}, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
        "roberta_prefix": byte_level("roberta_prefix", {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True}, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
        "deberta": byte_level("deberta", {"tokenizer_class": "DebertaTokenizer"}, ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]),
        "mpnet": wordpiece("mpnet", {"tokenizer_class": "MPNetTokenizer", "do_lower_case": True}, words_vocab(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])),
        "distilbert": wordpiece("distilbert", {"tokenizer_class": "DistilBertTokenizer", "do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False}, words_vocab(bert)),
        "electra": wordpiece("electra", {"tokenizer_class": "ElectraTokenizer", "do_lower_case": True, "added_tokens_decoder": {"900": new}}, words_vocab(bert)),
    }
    for name, tokenizer in made.items():
        save_converted(name, tokenizer)
    # The originals know no special tokens in text.
    for folder, suffix, lower in (("electra", "", True), ("distilbert", "_cased", False)):
        vocab = {t: i for i, t in enumerate((OUT / folder / "vocab.txt").read_text().split("\n")[:-1])}
        for name, rules in (("google", google), ("bert4keras", bert4keras)):
            save(name + suffix, [{"text": t, "ids": ids, "special": [vocab["[CLS]"], *ids, vocab["[SEP]"]]}
                                 for t in LINES + LONG for ids in [rules(t, vocab, lower)]])


if __name__ == "__main__":
    sys.exit(main())
