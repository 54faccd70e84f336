#!/usr/bin/env python3
"""Makes tests/data/text/tokenizers/: small tokenizer.json files and what Hugging Face's tokenizers do
with lines that are hard: added tokens with every flag, templates, pairs, truncation, decoding.

Ran with tokenizers 0.23.3. Needs no network.
"""
import json
import pathlib
import random
import sys

from tokenizers import Tokenizer

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "text" / "tokenizers"


def added(content, id, **flags):
    entry = {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": False}
    entry.update(flags)
    return entry


def bert(pieces):
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + pieces
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(t, i, special=True) for i, t in enumerate(vocab[:5])] + [
            added("foo", 900, normalized=True), added("Bar", 901, normalized=True, single_word=True),
            added("<l>", 902, lstrip=True), added("<r>", 903, rstrip=True),
            added("<lr>", 904, lstrip=True, rstrip=True, special=True),
            added("<s1>", 905, single_word=True), added("<l><r>", 906), added("été", 907, normalized=True)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
                     {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                               "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {t: i for i, t in enumerate(vocab)}}}


def bytes_alphabet():
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    out, n = [], 0
    for b in range(256):
        out.append(chr(b) if b in kept else chr(0x100 + n))
        n += b not in kept
    return out


def byte_level(merges, prefix, processor):
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocab = specials + bytes_alphabet() + [a + b for a, b in merges]
    level = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(t, i, special=True, lstrip=t == "<mask>", normalized=t != "<mask>")
                         for i, t in enumerate(specials)] + [added("the  ", 800, normalized=True)],
        "normalizer": None, "pre_tokenizer": level, "post_processor": processor, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": False, "vocab": {t: i for i, t in enumerate(vocab)},
                  "merges": [list(m) for m in merges]}}


def unigram(scheme, decoder):
    pieces = [["<unk>", 0.0], ["<s>", 0.0], ["</s>", 0.0]]
    rng = random.Random(3)
    for piece in "▁ e t a o n h s ▁the ▁a in er ▁w d he th ▁s ll é ▁中 国 . , ▁▁ 1 12 x".split():
        pieces.append([piece, -round(rng.uniform(1, 9), 3)])
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": scheme != "never"}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added("<s>", 1, special=True), added("</s>", 2, special=True),
                         added("<new>", 77, special=True, rstrip=True), added("the", 78, normalized=True)],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"},
                                                           {"type": "Lowercase"}]},
        "pre_tokenizer": space,
        "post_processor": {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]},
        "decoder": decoder or space,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False}}


PIECES = ("the ##e ##t ##a a b c d e f g h i n o p r s t u w x 1 2 3 ##1 ##2 ##o ##n ##in ##ing ##s ##r in on "
          "中 国 , . ! ? ' \" - ( ) < > [ ] l lr ##l fo bar ##ar ete ##te").split()
MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n"), ("e", "r"), ("Ġ", "a"), ("r", "e"), ("Ġ", "Ġ"),
          ("Ġ", "w"), ("Ã", "©"), ("l", "l"), ("'", "ll"), ("Ġthe", "re"), ("in", "g")]
LINES = [
    "", " ", "\t", "the", " the ", "  the   the", "The foo FOO foob Foobar afoo", "Bar bar BAR bars barbar -bar- é́bar",
    "a <l> b<l>c  <l>", "a <r> b<r>c  <r>  ", " <lr> <lr><lr>  x <l> <r>", "<l><r> <l> <r>", "<s1> a<s1> <s1>b é<s1> <s1>_ -<s1>-",
    "[MASK] [mask] a[MASK]b  [MASK]  [MASK", "[CLS] [SEP][PAD]", "ÉTÉ été ete e\u0301te\u0301", "中国 the 中国", "the中",
    "don't I'll they've 're 's", "naïve café Ünïcödé", "ΟΔΟΣ σς", "İstanbul ıI", "한국어 が", "a\u200db \u00ad soft\u00adhyphen",
    "👩\u200d👩\u200d👧 🏳️\u200d🌈", "\u202ertl\u202c \ufeff bom", "x" * 99, "x" * 100, "x" * 101, "e\u0301" * 60, "\u0000nul\u0000",
    "\u0085nel\u2028line\u2029para\u3000wide", "\ue000private \U000f0000", "1 12 123 1,234.5", "...!!?? ---", "the  there the  the ",
    "<s>the</s><mask> <mask>  <mask>the", "<unk><pad> <unk>", "  leading", "trailing  ", "a\u00a0b\u2009c", "<new>  the <new>the<new>",
    "thethe the the,the", "ﬁ ﬂ Ⅷ ①", "x̧̛ ạ̈", "'ll 'LL ’ll", "\r carriage\r", "▁the▁ ▁", "１２ ａｂ", "a" * 30 + " " * 20 + "b",
]
PAIRS = [("the in", "a b c d e"), ("a b c d e f g", "the"), ("", "a"), ("a", ""), ("the foo", "[MASK] the"),
         ("a b c d", "e f g h"), ("中国 the in on", "a  b")]


def line_case(tokenizer, text, special):
    e = tokenizer.encode(text, add_special_tokens=special)
    return record(tokenizer, e, {"text": text, "special": special})


def record(tokenizer, e, case):
    case.update(ids=e.ids, tokens=e.tokens, offsets=[list(o) for o in e.offsets], seg=e.type_ids,
                mask=e.special_tokens_mask, decoded=tokenizer.decode(e.ids, skip_special_tokens=False),
                plain=tokenizer.decode(e.ids, skip_special_tokens=True))
    return case


def cases(tokenizer):
    out = [line_case(tokenizer, line, special) for line in LINES for special in (False, True)]
    for a, b in PAIRS:
        out.append(record(tokenizer, tokenizer.encode(a, b), {"text": a, "pair": b, "special": True}))
        for strategy in ("longest_first", "only_first", "only_second"):
            for length in (5, 7, 8):
                for side in ("right", "left"):
                    tokenizer.enable_truncation(length, strategy=strategy, direction=side)
                    case = {"text": a, "pair": b, "special": True, "length": length,
                            "strategy": strategy, "side": side}
                    try:
                        out.append(record(tokenizer, tokenizer.encode(a, b), case))
                    except Exception:
                        out.append({**case, "fails": True})
                    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    for line in LINES:
        if "[" in line or "<" in line:
            out.append({**line_case(tokenizer, line, False), "no_special_in_text": True})
    tokenizer.encode_special_tokens = False
    return out


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True,
               "add_prefix_space": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    metaspace = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    files = {"bert": bert(PIECES), "roberta": byte_level(MERGES, True, roberta),
             "gpt2": byte_level(MERGES, False, {"type": "Sequence", "processors": [level]}),
             "unigram_always": unigram("always", None), "unigram_first": unigram("first", metaspace),
             "unigram_never": unigram("never", None)}
    for name, description in files.items():
        text = json.dumps(description, ensure_ascii=False, separators=(",", ":"))
        (OUT / f"{name}.json").write_text(text + "\n")
        tokenizer = Tokenizer.from_str(text)
        lines = [json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in cases(tokenizer)]
        (OUT / f"{name}.cases.jsonl").write_text("\n".join(lines) + "\n")
        print(name, len(lines), "cases")


if __name__ == "__main__":
    sys.exit(main())
