#!/usr/bin/env python3
"""Writes tests/data/text/models.json and tests/data/text/spiece/: small random models, words, and what
Hugging Face's tokenizers and libsentencepiece make of them. Ran with tokenizers 0.23.3, sentencepiece
0.2.3. With an argument N: writes N times as many cases into the folder given second, for a longer test.
"""
import json
import pathlib
import random
import struct
import sys

import sentencepiece
import tokenizers

OUT = pathlib.Path(__file__).parents[2] / "tests/data/text"
ALPHABETS = ["ab", "abc", "aé中", "abcdefgh", "ab#", "aÄ\u0301😀 ", "▁ab0"]


def word(rng, alphabet, most=12):
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, most)))


def words(rng, alphabet):
    out = [word(rng, alphabet + rng.choice(["", "", "xÿ", "中"])) for _ in range(12)]
    return out + [word(rng, alphabet, 90) for _ in range(2)]


def vocab(rng, alphabet, extra=()):
    tokens = list(extra)
    tokens += [c for c in alphabet if rng.random() < 0.9]
    tokens += [word(rng, alphabet, 5) for _ in range(rng.choice([3, 10, 40]))]
    return list(dict.fromkeys(tokens))


def wordpiece(rng, alphabet):
    tokens = vocab(rng, alphabet, ["[UNK]"] if rng.random() < 0.9 else [])
    prefix = rng.choice(["##", "##", "", "é"])
    tokens = [t if rng.random() < 0.4 else prefix + t for t in tokens] + ["[UNK]"] * (tokens[0] == "[UNK]")
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": rng.choice([100, 10]), "vocab": ids(rng, tokens)}


def ids(rng, tokens):
    tokens = list(dict.fromkeys(tokens))
    step = rng.choice([1, 1, 1, 3])
    return {t: i * step for i, t in enumerate(tokens)}


def bpe(rng, alphabet):
    prefix = rng.choice(["", "", "", "##"])
    suffix = rng.choice(["", "", "", "</w>"])
    tokens = ["<unk>"] if rng.random() < 0.7 else []
    symbols = [c for c in alphabet if rng.random() < 0.9]
    if prefix:
        symbols += [prefix + c for c in symbols]
    if suffix:
        symbols += [s + suffix for s in symbols]
    if rng.random() < 0.4:
        tokens += [f"<0x{b:02X}>" for b in range(256) if rng.random() < 0.95 or b > 0x60]
    tokens += symbols
    merges = []
    for _ in range(rng.choice([3, 10, 60])):
        if not symbols:
            break
        left, right = rng.choice(symbols), rng.choice(symbols)
        if suffix and left.endswith(suffix) or prefix and not right.startswith(prefix) or " " in left + right:
            continue
        merges.append([left, right])
        symbols.append(left + right[len(prefix):])
        tokens.append(symbols[-1])
    model = {"type": "BPE", "dropout": rng.choice([None, 0.0]),
             "unk_token": rng.choice([None, "<unk>"]) if tokens[:1] == ["<unk>"] else None,
             "continuing_subword_prefix": prefix or None, "end_of_word_suffix": suffix or None,
             "fuse_unk": rng.random() < 0.5, "byte_fallback": rng.random() < 0.5,
             "ignore_merges": rng.random() < 0.3, "vocab": ids(rng, tokens), "merges": merges}
    if rng.random() < 0.3:
        model["merges"] = [" ".join(m) for m in merges]
    return model


def scores(rng, n):
    if rng.random() < 0.3:
        return [float(-rng.randint(0, 5)) for _ in range(n)]  # many ties
    return [struct.unpack("f", struct.pack("f", -rng.random() * 12))[0] for _ in range(n)]


def unigram(rng, alphabet):
    tokens = vocab(rng, alphabet, ["<unk>"])
    fallback = rng.random() < 0.3
    if fallback:
        tokens += [f"<0x{b:02X}>" for b in range(256) if rng.random() < 0.98]
    rng.shuffle(tokens)
    return {"type": "Unigram", "unk_id": tokens.index("<unk>") if rng.random() < 0.9 else None,
            "byte_fallback": fallback, "vocab": [list(p) for p in zip(tokens, scores(rng, len(tokens)))]}


def word_level(rng, alphabet):
    return {"type": "WordLevel", "unk_token": "<unk>",
            "vocab": ids(rng, vocab(rng, alphabet, ["<unk>"] if rng.random() < 0.8 else []))}


def trained(kind):
    text = ["the cat sat on the mat", "a cat and a dog sat", "the dogs and the cats", "ëcole élève"] * 3
    model = {"WordPiece": tokenizers.models.WordPiece(unk_token="[UNK]"),
             "BPE": tokenizers.models.BPE(), "Unigram": tokenizers.models.Unigram()}[kind]
    trainer = {"WordPiece": tokenizers.trainers.WordPieceTrainer(vocab_size=70, special_tokens=["[UNK]"]),
               "BPE": tokenizers.trainers.BpeTrainer(vocab_size=60),
               "Unigram": tokenizers.trainers.UnigramTrainer(vocab_size=60, unk_token="<unk>",
                                                             special_tokens=["<unk>"])}[kind]
    out = tokenizers.Tokenizer(model)
    out.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    out.train_from_iterator(text, trainer)
    return json.loads(out.to_str())["model"]


def tokens_of(model, text):
    try:
        return [[t.id, *t.offsets] for t in model.tokenize(text)]
    except Exception as error:
        return str(error)


def case(model, texts):
    oracle = tokenizers.Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": model})).model
    return {"model": model, "words": [[t, tokens_of(oracle, t)] for t in texts]}


def models(times):
    out = []
    for seed in range(12 * times):
        for make in wordpiece, bpe, unigram, word_level:
            if make is word_level and seed >= 3:
                continue
            rng = random.Random(f"{make.__name__} {seed}")
            alphabet = rng.choice(ALPHABETS)
            out.append(case(make(rng, alphabet), words(rng, alphabet)))
    limit = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1, "##a": 2, "é": 3, "##\u0301": 4}}
    out.append(case(limit, ["a" * 99, "a" * 100, "a" * 101, "é" + "\u0301" * 99, "é" + "\u0301" * 100]))
    texts = "the cats dogmat élève zzz école t x sat aaaa mätt".split()
    return out + [case(trained(kind), texts) for kind in ("WordPiece", "BPE", "Unigram")]


# --- SentencePiece: ModelProto by hand ----------------------------------------------------------

def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def spiece(rng, alphabet, model_type):
    alphabet = alphabet.replace(" ", "_")
    texts = vocab(rng, alphabet)
    fallback = int(rng.random() < 0.3)
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    values = scores(rng, len(texts))
    if model_type == 2 and rng.random() < 0.5:
        values = [float(-i) for i in range(len(texts))]
    for text, score in zip(texts, values):
        pieces.append((text, score, rng.choice([1] * 12 + [4, 5])))
    if fallback:
        pieces += [(f"<0x{b:02X}>", 0.0, 6) for b in range(256)]
    out = b"".join(field(1, field(1, t.encode()) + field(2, s) + field(3, k)) for t, s, k in pieces)
    trainer = field(3, model_type) + field(35, fallback) + field(40, 0) + field(41, 1) + field(42, 2)
    normalizer = field(1, b"identity") + field(3, 0) + field(4, 0) + field(5, 0)
    return out + field(2, trainer) + field(3, normalizer)


def spieces(times, folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for seed in range(8 * times):
        for model_type in 1, 2:
            rng = random.Random(f"spiece {model_type} {seed}")
            alphabet = rng.choice(ALPHABETS)
            data = spiece(rng, alphabet, model_type)
            processor = sentencepiece.SentencePieceProcessor(model_proto=data)
            name = f"{['', 'unigram', 'bpe'][model_type]}_{seed}.model"
            (folder / name).write_bytes(data)
            texts = [t.replace(" ", "_") for t in words(rng, alphabet) * 2]
            rows.append({"file": name, "words": [[t, processor.encode(t)] for t in dict.fromkeys(texts)]})
    (folder / "words.json").write_text(dump(rows))


# --- whole pipelines --------------------------------------------------------------------------

SCRAPS = ["the", "The", "cat", "Dog's", "we'll", "I'd", "'re", "'", " ", "  ", "\t", "\n", "\r\n", "\x0b", "\x01", "\x7f",
          ".", ",", "!", "...", "$", "é", "É", "e\u0301", "\u0301", "\u0323", "\u0315\u0300", "中", "文", "字", "한", "か\u3099",
          "—", "“", "’", "\u2028", "\u00a0", "\u3000", "\u200b", "\u00ad", "ß", "İ", "Σ", "😀", "\U00020000", "\ufffd", "\x00",
          "1", "23", "٣", "²", "x1", "a" * 17, "b" * 40, "\u037e", "\u0387", "\ue000", "\u0378", "▁", "▁▁", "ﬁ", "\u1885"]


def scraps(rng):
    return "".join(rng.choice(SCRAPS) for _ in range(rng.randint(1, 14)))


def encoders(times):
    out = []
    for seed in range(4 * times):
        rng = random.Random(f"encoder {seed}")
        texts = ["", " "] + [scraps(rng) for _ in range(60)]
        fields = {k: rng.random() < 0.7 for k in ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")}
        parts = [p for s in SCRAPS for p in (s.lower(), s, s[:1], "##" + s[-1:])]
        tokens = ["[UNK]", "##a", "##b", "##t", "##s"] + [p for p in dict.fromkeys(parts) if p and rng.random() < 0.8]
        bert = tokenizers.Tokenizer(tokenizers.models.WordPiece({t: i for i, t in enumerate(dict.fromkeys(tokens))},
                                                                unk_token="[UNK]"))
        bert.normalizer = tokenizers.normalizers.BertNormalizer(**fields)
        bert.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        out.append(encoder("bert", fields, bert, texts))
        prefix = rng.random() < 0.5
        bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
        bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=prefix)
        bpe.train_from_iterator(texts, tokenizers.trainers.BpeTrainer(
            vocab_size=320, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        out.append(encoder("byte_level", {"add_prefix_space": prefix}, bpe, texts))
        scheme = rng.choice(["always", "first", "never"])
        uni = tokenizers.Tokenizer(tokenizers.models.Unigram())
        uni.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme=scheme)
        uni.train_from_iterator([t.replace("\0", "") for t in texts], tokenizers.trainers.UnigramTrainer(
            vocab_size=120, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False))
        out.append(encoder("metaspace", {"prepend_scheme": scheme}, uni, texts))
    return out


def encoder(kind, fields, oracle, texts):
    return {"kind": kind, **fields, "model": json.loads(oracle.to_str())["model"],
            "texts": [[t, oracle.encode(t, add_special_tokens=False).ids] for t in texts]}


def dump(rows):
    return "[" + ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows) + "]\n"


def main():
    times, out = (int(sys.argv[1]), pathlib.Path(sys.argv[2])) if len(sys.argv) > 1 else (1, OUT)
    out.mkdir(parents=True, exist_ok=True)
    (out / "models.json").write_text(dump(models(times)))
    (out / "encoders.json").write_text(dump(encoders(times)))
    spieces(times, out / "spiece")


if __name__ == "__main__":
    main()
