#!/usr/bin/env python3
"""Writes lib/text/unicode/*.cpp: the properties of all code points as Hugging Face's tokenizers sees them.

Each property is requested from the library itself, code point by code point: its parts follow different
versions of Unicode (categories of 8.0, normal forms of 9.0, Oniguruma's classes of 16.0, lower case of
the Rust compiler that built it). Nothing comes from Python's unicodedata but one mark of each combining
class, and those classes never change, and the characters that the rule of the final sigma looks at. Written with tokenizers 0.23.3, Python 3.11.7. Takes a minute and
a half; run from anywhere.
"""

import itertools
import pathlib
import struct
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parents[1] / "lib" / "text" / "unicode"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
BLOCK = 128


def ask(function):
    """The set of the code points for whose character the function is true."""
    return {c for c in CODE_POINTS if function(chr(c))}


def bert(**on):
    flags = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**flags, **on}).normalize_str


# --- a charsmap of a few keys, to see where Precompiled cuts graphemes ------------------------------
def charsmap(entries):
    """A precompiled charsmap (darts-clone's units) of {key: replacement}, placed by first fit."""
    strings, trie = b"", {}
    for key, value in entries.items():
        node = trie
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = len(strings)
        strings += value.encode() + b"\0"
    units, used, bases = [0] * 1024, {0}, set()

    def place(node, at):
        for base in itertools.count(1):
            slots = [base ^ label for label in node]
            if base not in bases and not used & set(slots):
                break
        bases.add(base)  # a label is checked, not a parent: no two nodes may share a base
        used.update(slots)
        units[at] |= (base ^ at) << 10 | (0x100 if 0 in node else 0)
        for label, child in node.items():
            if label == 0:
                units[base] = child | 0x80000000
            else:
                units[base ^ label] = label
                place(child, base ^ label)

    place(trie, 0)
    data = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(data)) + data + strings


def grapheme_classes():
    """Class of each code point for the cutting of extended grapheme clusters, and three flags."""
    def precompiled(keys):
        return normalizers.Precompiled(charsmap({k: "Z" for k in keys})).normalize_str

    run = precompiled("a\u00a9\u1100\u1161\u11a8\u0915")
    run_mark = precompiled("\u0301")

    # A cluster of less than 6 bytes is replaced whole by the value of its first character; a longer
    # one keeps its Extend. So the last character of the result says whether `after` began a cluster.
    def joins(before, after, extend):
        return run(before + after + extend).endswith(extend)

    wide, narrow = "\u0900", "\u0301"  # Extend, of 3 and of 2 bytes
    sets = {
        "no_break_before": ask(lambda c: run("a" + c) == "Z"),
        "extend": ask(lambda c: joins("\u00a9" + c + "\u200d", "\u00a9", narrow)),
        "prepend": ask(lambda c: ord(c) > 0x7F and joins(c, "a", wide)),
        "l": ask(lambda c: ord(c) > 0x7F and joins(c, "\u1100", narrow)),
        "v": ask(lambda c: ord(c) > 0x7F and joins(c, "\u1161", narrow)),
        "t": ask(lambda c: ord(c) > 0x7F and joins(c, "\u11a8", narrow)),
        "pictographic": ask(lambda c: joins(c + "\u200d", "\u00a9", narrow)),
        "consonant": ask(lambda c: joins(c + "\u094d", "\u0915", narrow)),
        "linker": ask(lambda c: joins("\u0915" + c, "\u0915", narrow)),
        "linker_or_extend": ask(lambda c: joins("\u0915" + c + "\u094d", "\u0915", narrow)),
        "not_control": ask(lambda c: run_mark(c + narrow + wide).endswith(wide)),
    }
    classes = {}
    for c in CODE_POINTS:
        has = {name for name, members in sets.items() if c in members}
        if 0xAC00 <= c <= 0xD7A3:
            name = "kLV" if (c - 0xAC00) % 28 == 0 else "kLVT"
        elif c in (0x0D, 0x0A, 0x200D):
            name = {0x0D: "kCR", 0x0A: "kLF", 0x200D: "kZwj"}[c]
        elif 0x1F1E6 <= c <= 0x1F1FF:
            name = "kRegionalIndicator"
        elif "not_control" not in has:
            name = "kControl"
        elif "no_break_before" in has:
            name = "kExtend" if "extend" in has else "kSpacingMark"
        elif "prepend" in has:
            name = "kPrepend"
        elif "l" in has:
            name = "kL"
        elif "v" in has:
            name = "kV"
        elif "t" in has:
            name = "kT"
        else:
            name = "kOther"
        classes[c] = name
    prepend = sets["prepend"]
    return classes, {
        "pictographic": sets["pictographic"],
        "conjunct_consonant": sets["consonant"],
        "conjunct_linker": sets["linker"] - prepend,  # nothing ends a cluster after a Prepend
        "conjunct_extend": sets["linker_or_extend"] - sets["linker"] - sets["consonant"],
    }


# --- normal forms -----------------------------------------------------------------------------------
def combining_classes(nfd):
    """Class of each code point, by how it is ordered next to one mark of every class."""
    low, high = "\u0334", "\u0345"  # of classes 1 and 240, the lowest and the highest
    moves = {low, high}
    for s in map(chr, CODE_POINTS):
        if nfd(s) == s and (nfd(s + low) != s + low or nfd(high + s) != high + s):
            moves.add(s)
    marks = {}
    for s in sorted(moves):
        marks.setdefault(unicodedata.combining(s), s)
    marks.pop(0, None)
    known = sorted(marks)
    assert (marks[known[0]], marks[known[-1]]) == (low, high)
    out = {}
    for c in map(ord, moves):
        s = chr(c)
        above = [k for k in known if nfd(s + marks[k]) != s + marks[k]]  # classes below that of c
        below = [k for k in known if nfd(marks[k] + s) != marks[k] + s]
        exact = [k for k in known if k not in above and k not in below]
        assert len(exact) == 1, (hex(c), exact)
        out[c] = exact[0]
    return out


def compositions(nfd, nfc, decomposed):
    """{(first, second): composed} of everything that NFC composes, without Hangul."""
    pairs = {}
    for c, parts in decomposed.items():
        if 0xAC00 <= c <= 0xD7A3 or nfc(chr(c)) != chr(c):
            continue
        first = nfc(parts[:-1])
        assert len(first) == 1 and nfc(first + parts[-1]) == chr(c), hex(c)
        pairs[(ord(first), ord(parts[-1]))] = c
    return pairs


# --- two-stage tables ---------------------------------------------------------------------------------
def two_stage(values):
    """(first stage, blocks) of a list of 0x110000 small numbers."""
    blocks, first = {}, []
    for i in range(0, len(values), BLOCK):
        first.append(blocks.setdefault(tuple(values[i : i + BLOCK]), len(blocks)))
    return first, list(itertools.chain.from_iterable(blocks))


def array(kind, name, numbers, per_line=256):
    lines = [
        ",".join(map(str, numbers[i : i + per_line])) for i in range(0, len(numbers), per_line)
    ]
    return f"const {kind} {name}[{len(numbers)}] = {{\n" + ",\n".join(lines) + "};\n"


def write(name, what, arrays):
    text = f"// {what} Written by scripts/unicode_tables.py.\n"
    text += "// clang-format off\n"
    text += '#include "text/unicode/tables.hpp"\n#include "text/unicode/unicode.hpp"\n\nnamespace masque::text::tables {\n\n'
    text += "\n".join(arrays) + "\n}  // namespace masque::text::tables\n"
    (OUT / name).write_text(text)


def main():
    print("tokenizers", __import__("tokenizers").__version__, "Python", sys.version.split()[0])
    nfd, nfc = normalizers.NFD().normalize_str, normalizers.NFC().normalize_str
    nfkd, nfkc = normalizers.NFKD().normalize_str, normalizers.NFKC().normalize_str
    clean, cjk, strip = bert(clean_text=True), bert(handle_chinese_chars=True), bert(strip_accents=True)
    lower = bert(lowercase=True)
    stand_alone_lower = normalizers.Lowercase().normalize_str
    accents = normalizers.StripAccents().normalize_str

    def splits(pre_tokenizer):
        return lambda s: pre_tokenizer.pre_tokenize_str(s)

    def removed(regex):
        split = pre_tokenizers.Split(Regex(regex), "removed").pre_tokenize_str
        return ask(lambda c: not split(c))

    decomposed = {c: nfd(chr(c)) for c in CODE_POINTS if nfd(chr(c)) != chr(c)}
    compatible = {c: nfkd(chr(c)) for c in CODE_POINTS if nfkd(chr(c)) != chr(c)}
    lowered = {c: lower(chr(c)) for c in CODE_POINTS if lower(chr(c)) != chr(c)}
    assert all(stand_alone_lower(chr(c)) == lower(chr(c)) for c in CODE_POINTS)

    white_split = splits(pre_tokenizers.WhitespaceSplit())
    bert_split = splits(pre_tokenizers.BertPreTokenizer())
    punctuation_split = splits(pre_tokenizers.Punctuation())
    digits_split = splits(pre_tokenizers.Digits(individual_digits=True))
    word_split = splits(pre_tokenizers.Whitespace())
    flags = {
        "white_space": ask(lambda c: len(white_split("a" + c + "a")) == 2),
        "bert_removed": ask(lambda c: clean(c) == ""),
        "bert_space": ask(lambda c: clean(c) == " "),
        "chinese": ask(lambda c: cjk(c) != c),
        "punctuation": ask(lambda c: len(bert_split("a" + c + "a")) == 3),
        "bert_mark": ask(lambda c: ord(c) not in decomposed and strip(c) == ""),
        "mark": ask(lambda c: accents(c) == ""),
        "letter": removed(r"\p{L}"),
        "number": removed(r"\p{N}"),
        "numeric": ask(lambda c: len(digits_split("a" + c + "a")) == 3),
        "word": ask(lambda c: len(word_split("a" + c + "a")) == 1),
    }
    assert removed(r"\s") == flags["white_space"]
    assert ask(lambda c: len(punctuation_split("a" + c + "a")) == 3) == flags["punctuation"]
    assert not flags["white_space"] & flags["word"]
    assert flags["word"] == single_word_characters()

    classes, grapheme_flags = grapheme_classes()
    flags.update(grapheme_flags)
    combining = combining_classes(nfd)
    pairs = compositions(nfd, nfc, decomposed)
    flags["composes_first"] = {a for a, _ in pairs}
    flags["composes_second"] = {b for _, b in pairs}
    vowels_and_finals = {ord(c) for text in decomposed.values() for c in text[1:] if "\u1161" <= c <= "\u11c2"}
    moves = set(combining) | flags["composes_second"] | vowels_and_finals
    stripped_lower = bert(strip_accents=True, lowercase=True)
    flags["bert_plain"] = ask(lambda c: stripped_lower(c) == c) - set(combining)
    flags["nfc_inert"] = ask(lambda c: nfc(c) == c) - moves
    flags["nfkc_inert"] = ask(lambda c: nfkc(c) == c) - moves

    # Properties: one index per code point into the different combinations.
    # The order of GraphemeClass and CharFlag in unicode.hpp.
    names = ["kOther", "kCR", "kLF", "kControl", "kExtend", "kZwj", "kRegionalIndicator", "kPrepend",
             "kSpacingMark", "kL", "kV", "kT", "kLV", "kLVT"]
    bits = list(flags)
    print({name: len(members) for name, members in flags.items()})
    print({n: sum(v == n for v in classes.values()) for n in names}, len(combining), len(pairs))
    combinations, index = {}, []
    for c in range(0x110000):
        word = sum(1 << i for i, name in enumerate(bits) if c in flags[name])
        value = (word, combining.get(c, 0), names.index(classes.get(c, "kControl")))
        index.append(combinations.setdefault(value, len(combinations)))
    assert len(combinations) <= 256
    first, second = two_stage(index)
    print("properties:", len(combinations), "combinations,", len(second) // BLOCK, "blocks")
    rows = [f"{{{w},{k},GraphemeClass{{{g}}}}}" for w, k, g in combinations]
    write("properties_table.cpp", "Flags, combining classes and grapheme classes.", [
        array("std::uint16_t", "kPropertyBlock", first),
        array("std::uint8_t", "kPropertyIndex", second),
        array("CharProperties", "kProperties", rows, 32)])

    # Mappings: an offset per code point into a pool of "length, characters".
    pool, places, arrays = [0], {}, []
    for name, mapping in (("Lower", lowered), ("Canonical", decomposed), ("Compatible", compatible)):
        values = [0] * 0x110000
        for c, text in mapping.items():
            if 0xAC00 <= c <= 0xD7A3:
                continue
            if text not in places:
                places[text] = len(pool)
                pool += [len(text)] + [ord(x) for x in text]
            values[c] = places[text]
        first, second = two_stage(values)
        print(name, len(mapping), "mappings,", len(second) // BLOCK, "blocks")
        assert len(second) // BLOCK <= 256 and len(pool) < 65536
        arrays += [array("std::uint8_t", f"k{name}Block", first),
                   array("std::uint16_t", f"k{name}Offset", second)]
    arrays.append(array("char32_t", "kPool", pool))
    write("mapping_tables.cpp", "Lower case and decompositions.", arrays)
    ordered = sorted((a << 32 | b, c) for (a, b), c in pairs.items())
    write("composition_table.cpp", "Pairs that compose, sorted: the first in the upper half.", [
        array("std::uint64_t", "kPair", [hex(p) for p, _ in ordered]),
        array("char32_t", "kComposed", [c for _, c in ordered]),
        f"const std::size_t kPairCount = {len(ordered)};\n"])
    case_table()
    script_table()


def script_table():
    """Ranges of characters of one script, as the pre-tokenizer UnicodeScripts knows them; the others go with any script."""
    split = pre_tokenizers.UnicodeScripts().pre_tokenize_str
    one = lambda a, b: len(split(a + b)) == 1
    ends, scripts, known = [], [], []
    last = None
    for c in CODE_POINTS:
        s = chr(c)
        if one("a" + s, "") and one("\u6f22" + s, ""):
            continue
        if last is None or not one(known[last], s):
            last = next((i for i, k in enumerate(known) if one(k, s)), len(known))
            if last == len(known):
                known.append(s)
        if ends and ends[-1] == c - 1 and scripts[-1] == last + 1:
            ends[-1] = c
        else:
            ends += [c, c]
            scripts.append(last + 1)
    print("scripts:", len(known), "in", len(scripts), "ranges")
    write("script_table.cpp", "Ranges of characters of a script, and the number of the script.", [
        array("char32_t", "kScriptRange", ends), array("std::uint8_t", "kScript", scripts),
        f"const std::size_t kScriptCount = {len(scripts)};\n"])


def case_table():
    """Ranges of characters that str.lower takes for cased, and that it looks through."""
    cased = ask(lambda c: (c + "Σ").lower().endswith("ς"))
    ignorable = ask(lambda c: ("a" + c + "Σ").lower().endswith("ς")) - cased
    arrays = []
    for name, members in (("Cased", cased), ("CaseIgnorable", ignorable)):
        ends = []
        for c in sorted(members):
            if ends and ends[-1] == c - 1:
                ends[-1] = c
            else:
                ends += [c, c]
        arrays += [array("char32_t", f"k{name}", ends), f"const std::size_t k{name}Count = {len(ends) // 2};\n"]
    write("case_table.cpp", "Ranges: cased characters, and those that str.lower ignores.", arrays)


def single_word_characters():
    """Characters that keep an added token with single_word from being found."""
    tokenizer = Tokenizer(models.WordLevel({"u": 0}, unk_token="u"))
    tokenizer.add_tokens([AddedToken("qq", single_word=True, normalized=False)])
    token = tokenizer.token_to_id("qq")
    return ask(lambda c: token not in tokenizer.encode("qq" + c).ids)


if __name__ == "__main__":
    main()
