#!/usr/bin/env python3
"""Writes tests/data/text: normalizers and pre-tokenizers in the hands of Hugging Face's tokenizers.

  ranges.tsv  the code points that random strings are made of: first, last
  parts.tsv   name, normalizer and pre-tokenizer as JSON, set of strings, XXH3-128 of all results

A result is the characters of all words, each as three little-endian u32: code point, begin and end in
characters of the original; and a u32 0xFFFFFFFF after each word. The offsets are those of the tokens
of a model with a token for every character. The strings of the sets are those of strings(); the test makes the
same ones. Written with tokenizers 0.23.3, numpy 2.4.6, xxhash 4.1.0; takes five minutes. Run from anywhere.

  text_parts.py --dump NAME SET  prints the results of one line, to find a difference
"""

import json
import pathlib
import sys

import numpy as np
import xxhash
from tokenizers import Tokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from unicode_tables import charsmap  # noqa: E402

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "text"

RANGES = [
    (0x00, 0x1F), (0x20, 0x7E), (0x20, 0x20), (0x61, 0x7A), (0x41, 0x5A), (0x30, 0x39), (0x27, 0x27),
    (0x6C, 0x76), (0x7F, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x300, 0x345), (0x370, 0x3FF),
    (0x400, 0x52F), (0x591, 0x5F4), (0x600, 0x6FF), (0x700, 0x8FF), (0x900, 0x97F), (0x915, 0x94D),
    (0x958, 0x95F), (0x980, 0xDFF), (0xE00, 0xFFF), (0xF71, 0xF81), (0x1000, 0x10FF), (0x1100, 0x11FF),
    (0x1161, 0x11C2), (0x1AB0, 0x1AFF), (0x1B00, 0x1BFF), (0x1DC0, 0x1DFF), (0x1E00, 0x1FFF),
    (0x2000, 0x206F), (0x200B, 0x200F), (0x2028, 0x202F), (0x20D0, 0x20F0), (0x2100, 0x218F),
    (0x2460, 0x24FF), (0x2581, 0x2581), (0x2600, 0x27BF), (0x3000, 0x30FF), (0x3099, 0x309A),
    (0x302A, 0x302F), (0x3130, 0x33FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA8E0, 0xA8FF),
    (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFDD0, 0xFDEF),
    (0xFE00, 0xFE2F), (0xFE70, 0xFEFF), (0xFF00, 0xFFEF), (0xFFF0, 0xFFFF), (0x10000, 0x10FFF),
    (0x11000, 0x11FFF), (0x1D100, 0x1D24F), (0x1D400, 0x1D7FF), (0x1E000, 0x1E94F), (0x1F1E6, 0x1F1FF),
    (0x1F300, 0x1FAFF), (0x1F3FB, 0x1F3FF), (0x200D, 0x200D), (0x20000, 0x2FA1F), (0xE0000, 0xE01EF),
    (0xA9, 0xAE), (0x0D, 0x0D), (0x0A, 0x0A), (0x17F, 0x17F), (0x130, 0x130), (0x3A3, 0x3A3),
]


def splitmix(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        yield z ^ (z >> 31)


def strings(name):
    """The strings of a set: "random", "most" or "all" of the code points, among others."""
    if name == "random":
        numbers = splitmix(7)
        for _ in range(20000):
            length = 1 + next(numbers) % 40
            text = ""
            for _ in range(length):
                first, last = RANGES[next(numbers) % len(RANGES)]
                text += chr(first + next(numbers) % (last - first + 1))
            yield text
        return
    text = ""
    for c in range(0x110000):
        outer = 0x32000 <= c < 0xE0000 or c >= 0xE1000
        if not 0xD800 <= c < 0xE000 and (name == "all" or not outer or c % 61 == 0):
            s = chr(c)
            text += f"{s}a{s}1{s}.{s} {s}"
        if c % 64 == 63:
            if text:
                yield text
            text = ""


def small_charsmap():
    import base64

    entries = {"a": "A", "e\u0301": "\u00e9", "\u00e9": "E!", "\r\n": " ", "\n": " ", "\u0958": "QQ",
               "\u00a9": "(c)", "\u200d": "", "\u0001": "", "\uff8a\uff9f": "\u30d1", "\uff8a": "\u30cf",
               "\uff9f": "\u309a", "\u1100": "k", "\ufb03": "ffi", "\u3000": " ", "\U0001f1e6": "[A]",
               "\u0301": "'", "o\u0302": "\u00f4", "o\u0302\u0301": "\u1ed1", ".": "...", "\u0915": "ka"}
    return base64.b64encode(charsmap(entries)).decode()


def parts():
    """Name, normalizer, pre-tokenizer, sets."""
    def bert(clean=True, cjk=True, strip=None, lower=True):
        return dict(type="BertNormalizer", clean_text=clean, handle_chinese_chars=cjk, strip_accents=strip,
                    lowercase=lower)

    def replace(kind, pattern, content):
        return dict(type="Replace", pattern={kind: pattern}, content=content)

    def sequence(*steps):
        return dict(type="Sequence", normalizers=list(steps))

    def metaspace(scheme, split=True):
        return dict(type="Metaspace", replacement="\u2581", prepend_scheme=scheme, split=split)

    def byte_level(prefix, regex=True):
        return dict(type="ByteLevel", add_prefix_space=prefix, trim_offsets=True, use_regex=regex)

    def split(kind, pattern, behavior, invert=False):
        return dict(type="Split", pattern={kind: pattern}, behavior=behavior, invert=invert)

    llama = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    precompiled = dict(type="Precompiled", precompiled_charsmap=small_charsmap())
    bert_words = dict(type="BertPreTokenizer")
    one = lambda name: dict(type=name)
    every = ["random", "all"]
    most = ["random", "most"]
    yield "bert uncased", bert(), bert_words, every
    yield "bert cased", bert(lower=False), bert_words, every
    yield "bert cased stripped", bert(strip=True, lower=False), bert_words, most
    yield "bert lower unstripped", bert(strip=False), bert_words, most
    yield "bert unclean", bert(clean=False), bert_words, most
    yield "bert no cjk", bert(cjk=False), bert_words, most
    yield "bert nothing", bert(False, False, False, False), bert_words, most
    for name in ("NFC", "NFD", "NFKC", "NFKD"):
        yield name, one(name), None, every if name == "NFKC" else most
    for name in ("StripAccents", "Lowercase", "Nmt", "ByteLevel"):
        yield name, one(name), None, most
    for left, right in ((True, True), (True, False), (False, True)):
        yield f"Strip {left} {right}", dict(type="Strip", strip_left=left, strip_right=right), None, ["random"]
    yield "Prepend", dict(type="Prepend", prepend="x\u2581"), None, ["random"]
    yield "Replace spaces", replace("Regex", " {2,}", "\u2581"), None, ["random"]
    yield "Replace white space", replace("Regex", r"\s+", " \u3000"), None, most
    yield "Replace class", replace("Regex", "[\\n\\r\\t a-]".replace("-", "b"), ""), None, ["random"]
    yield "Replace text", replace("String", "a1", "<\u00e9>"), None, most
    yield "Precompiled", precompiled, None, every
    yield "albert", sequence(replace("String", "``", '"'), replace("String", "''", '"'), one("NFKD"),
                             one("StripAccents"), one("Lowercase"), precompiled,
                             replace("Regex", " {2,}", " ")), metaspace("always"), most
    yield "deberta", sequence(one("Lowercase"), dict(type="Strip", strip_left=True, strip_right=True),
                              precompiled, replace("Regex", " {2,}", " ")), \
        dict(type="Sequence", pretokenizers=[dict(type="Punctuation", behavior="Isolated"),
                                             metaspace("first")]), most
    yield "nfc reordered", sequence(one("NFD"), one("NFC"), one("Lowercase"), one("NFKD")), None, ["random"]
    yield "gpt2", None, byte_level(False), every
    yield "gpt2 prefix", one("NFC"), byte_level(True), ["random"]
    yield "byte level plain", None, byte_level(True, False), ["random"]
    yield "llama 3", None, split("Regex", llama, "Isolated"), most
    yield "qwen 2", None, split("Regex", llama.replace("{1,3}", ""), "Removed", True), most
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield f"Split {behavior}", None, split("Regex", r"\s", behavior), ["random"]
        yield f"Split not {behavior}", None, split("String", "a", behavior, True), ["random"]
        yield f"Punctuation {behavior}", None, dict(type="Punctuation", behavior=behavior), ["random"]
    yield "Punctuation", None, one("Punctuation"), most
    for individual in (True, False):
        yield f"Digits {individual}", None, dict(type="Digits", individual_digits=individual), most
    for name in ("Whitespace", "WhitespaceSplit"):
        yield name, None, one(name), every if name == "Whitespace" else most
    for scheme in ("always", "first", "never"):
        yield f"Metaspace {scheme}", None, metaspace(scheme), ["random"]
    yield "Metaspace whole", None, metaspace("always", False), ["random"]
    yield "UnicodeScripts", None, one("UnicodeScripts"), every
    for length in (1, 3):
        yield f"FixedLength {length}", None, dict(type="FixedLength", length=length), ["random"]
    for delimiter in ("a", "\u3000"):
        yield f"CharDelimiterSplit {delimiter}", None, dict(type="CharDelimiterSplit", delimiter=delimiter), ["random"]
    yield "words, then first", None, dict(type="Sequence", pretokenizers=[
        one("WhitespaceSplit"), metaspace("first")]), ["random"]


CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def character_tokenizer():
    """A tokenizer with a token for every character, and no other."""
    vocab = {chr(c): i for i, c in enumerate(CODE_POINTS)}
    model = dict(type="BPE", vocab=vocab, merges=[], unk_token=None, fuse_unk=False, dropout=None,
                 byte_fallback=False, ignore_merges=False)
    return Tokenizer.from_str(json.dumps(dict(version="1.0", added_tokens=[], model=model)))


class Oracle:
    points = np.array(CODE_POINTS, dtype="<u4")
    tokenizer = None

    def __init__(self, normalizer, pre_tokenizer):
        parts = Tokenizer.from_str(json.dumps(dict(
            version="1.0", added_tokens=[], normalizer=normalizer, pre_tokenizer=pre_tokenizer,
            model=dict(type="BPE", vocab={}, merges=[]))))
        Oracle.tokenizer = Oracle.tokenizer or character_tokenizer()
        Oracle.tokenizer.normalizer = parts.normalizer
        Oracle.tokenizer.pre_tokenizer = parts.pre_tokenizer

    def result(self, text):
        encoding = Oracle.tokenizer.encode(text, add_special_tokens=False)
        if not encoding.ids:
            return np.zeros(0, "<u4")
        words = np.array(encoding.word_ids)
        ends = np.append(np.nonzero(np.diff(words))[0] + 1, len(words))
        rows = np.column_stack([Oracle.points[encoding.ids], np.array(encoding.offsets)]).astype("<u4")
        return np.insert(rows.ravel(), ends * 3, 0xFFFFFFFF).astype("<u4")


def main():
    if sys.argv[1:2] == ["--dump"]:
        for name, normalizer, pre_tokenizer, _ in parts():
            if name == sys.argv[2]:
                oracle = Oracle(normalizer, pre_tokenizer)
                for text in strings(sys.argv[3]):
                    print(ascii(text), *oracle.result(text))
        return
    OUT.mkdir(parents=True, exist_ok=True)
    head = "# Written by scripts/goldens/text_parts.py\n"
    (OUT / "ranges.tsv").write_text(head + "".join(f"{a:x}\t{b:x}\n" for a, b in RANGES))
    with open(OUT / "parts.tsv", "w", encoding="utf-8") as out:
        out.write(head)
        for name, normalizer, pre_tokenizer, sets in parts():
            oracle = Oracle(normalizer, pre_tokenizer)
            for which in sets:
                digest = xxhash.xxh3_128()
                for text in strings(which):
                    digest.update(oracle.result(text).tobytes())
                fields = [name, json.dumps(normalizer), json.dumps(pre_tokenizer), which, digest.hexdigest()]
                print("\t".join(fields), file=out, flush=True)
                print(name, which, flush=True)


if __name__ == "__main__":
    main()
