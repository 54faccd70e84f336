#!/usr/bin/env python3
"""Writes tests/data/text/patterns.*: regular expressions in the hands of Hugging Face's tokenizers.

  patterns.texts.json  the texts
  patterns.tsv         normalizer and pre-tokenizer as JSON, XXH3-128 of their results on all texts

Every expression is that of a Replace, and of a Split with each behavior, inverted and not. Results are
hashed as text_parts.py does it. The texts keep to Unicode 12, because `\\p{L}` and its like depend on the
version of Oniguruma. Written with tokenizers 0.23.3 (Oniguruma 6.9.10), xxhash 4.1.0; takes seconds.

  text_patterns.py --dump EXPRESSION  prints what Replace and Split (Isolated) make of every text
"""

import json
import sys

import xxhash
from text_parts import OUT, Oracle

GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

PATTERNS = [
    # Those of GPT-4 and GPT-4o, and others after those of published tokenizers.
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    GPT4O,
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[0-9][0-9][0-9]",
    r"\d{1,3}(?=(?:\d{3})*\b)",
    r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    r"\s?\p{L}+|\s?\p{N}+|\s?[^\s\p{L}\p{N}]+",
    r"(?:\r?\n)+(?!\r?\n)", r"(?<=[\p{L}])(?=\p{N})|(?<=\p{N})(?=\p{L})",
    # Words, classes, properties.
    r"\w+|[^\w\s]+", r"\W", r"\b", r"\B", r"\s", r"\S+", r"\d", r"\D+", r"\h+", r".", r"[^a]", r"[a-y]+", r"[[:alpha:]]+",
    r"[[:^space:]]+", r"\p{Lu}\p{Ll}*", r"\p{M}+", r"\P{L}", r"\p{^N}+", r"\p{Han}+", r"\p{Hiragana}|\p{Katakana}",
    r"[\w&&[^\d_]]+", r"[^[:ascii:]]", r"[\x{4e00}-\x{9fff}]", r"\p{Sc}|\p{So}",
    # Places, and looking around.
    "^", "$", r"\A", r"\z", r"\Z", r"^.+$", r"(?<=a)b", r"(?<!a)b", r"a(?=b)", r"a(?!b)", r"(?<=\s)\S", r"\G.", r"a\Kb",
    r"(?=[A-Z])", r"(?<=[.!?])\s+",
    # Repetition, possessive or not; groups.
    "a*", "a+?", "a??", "a{2}", "a{,2}", "a{2,}", "a{0,}", r"a++b", r"(?>a+)b", r"(ab|a)(c|bc)?", r"(.)\1", r"(?<c>.)\k<c>",
    r"x|", r"a|(?=b)", r"\((?:[^()]|\g<0>)*\)", r"(?i:SS)|(?i:k)", r"(?i)straße|É", r"(?m:a.b)", r"(?x: a  b ) # c",
    r"a{2", "}", "]", r"\R", r"\t|\u0020|\x41", r"\\", r"(?~ab)", "é|\U0001f600",
]

TEXTS = [
    "a", "b", " ", "\n", "ab", "aab aaab", "abcabc", "acb", "baaac é\nb", "Hello, World!", "I'm sure they'LL say we've 1234567 it's",
    "  two  spaces\tand\r\n\r\nlines \n end ", "snake_case CamelCase x2y3 A1b2", "3.14 1,000,000 0x1F ½ Ⅷ ٣٤ 四",
    "Straße STRASSE ſtraße K İstanbul ıI ÉÈé", "日本語のテキスト、カタカナ。한국어 中文", "กขค ไทย हिन्दी नमस्ते العربية עברית",
    "e\u0301a\u0300\u0323 o\u0302\u0301", "😀👩‍👩‍👧 🇩🇪🇫🇷 👍🏽!", "$5 €6 £7 ¥8 ©®™ ≠∞", "(a(b)c)((d)", "if (x[0] == '\\n') { return \"{}\"; }\n\t// ok",
    "https://example.org/a?b=c&d=%20#e", "aa bb cc aa", "a\u00a0b\u3000c\u2028d\u0085e\u200bf", "<|endoftext|> a<b>", "x" * 40 + "7" * 20,
    "Mr. Smith? Yes! No. \u201cQuoted\u201d \u2013 done\u2026", "\x00\x01\x7f", "]}[{)(", "aXbXc A\tB",
]


def parts():
    """Normalizer and pre-tokenizer."""
    for pattern in PATTERNS:
        regex = dict(Regex=pattern)
        yield dict(type="Replace", pattern=regex, content="<$1\u00e9>"), None
        yield dict(type="Sequence", normalizers=[dict(type="Lowercase"), dict(type="Replace", pattern=regex, content="")]), None
        for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
            for invert in (False, True):
                yield None, dict(type="Split", pattern=regex, behavior=behavior, invert=invert)


def dump(pattern):
    for normalizer, pre_tokenizer in (
            (dict(type="Replace", pattern=dict(Regex=pattern), content="-"), None),
            (None, dict(type="Split", pattern=dict(Regex=pattern), behavior="Isolated", invert=False))):
        oracle = Oracle(normalizer, pre_tokenizer)
        for text in TEXTS:
            print(ascii(text), *oracle.result(text))


def main():
    if sys.argv[1:2] == ["--dump"]:
        dump(sys.argv[2])
        return
    (OUT / "patterns.texts.json").write_text(json.dumps(TEXTS, indent=0) + "\n")
    with open(OUT / "patterns.tsv", "w", encoding="utf-8") as out:
        print("# Written by scripts/goldens/text_patterns.py", file=out)
        for normalizer, pre_tokenizer in parts():
            oracle = Oracle(normalizer, pre_tokenizer)
            digest = xxhash.xxh3_128()
            for text in TEXTS:
                digest.update(oracle.result(text).tobytes())
            print(json.dumps(normalizer), json.dumps(pre_tokenizer), digest.hexdigest(), sep="\t", file=out)


if __name__ == "__main__":
    main()
