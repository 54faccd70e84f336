#!/usr/bin/env python3
"""Writes tests/data/nn/mixers.tsv: the mixers of lib/nn/mixer/mixer in other hands.

Columns: mixer, parameters (name:rows:columns, in order), mask, tokens, y row by row. The sizes are those
of SHAPE. Number k of array a (x is array 0, parameters follow) is 0.7 sin(0.37 k² + 1.3 k + 0.9 a).

Written from the papers' formulas, with numpy in double; norms, gelu, convolutions and attention are torch's,
transforms numpy's. Written with torch 2.15.0, numpy 2.4.6. Run from anywhere.
"""

import pathlib

import numpy as np
import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "nn" / "mixers.tsv"

N, D, HEADS, INNER, SMALL, TAPS, DILATION, CHUNK = SHAPE = (7, 6, 2, 4, 3, 4, 2, 3)
SIZE = D // HEADS


def numbers(a, rows, columns):
    k = np.arange(rows * columns, dtype=np.float64)
    return (0.7 * np.sin(0.37 * k * k + 1.3 * k + 0.9 * a)).reshape(rows, columns)


def torched(f, *arrays):
    return f(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays)).numpy()


def gelu(x):
    return torched(F.gelu, x)


def norm(x, weight, bias):
    return torched(lambda x, w, b: F.layer_norm(x, x.shape[-1:], w[0], b[0], 1e-6), x, weight, bias)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(s, mask):
    e = np.where(mask, np.exp(s), 0)
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def head(x, h):
    """The columns of a head."""
    return x[:, h * SIZE:(h + 1) * SIZE]


def part(w, h, rows):
    """The rows of a head."""
    return w[h * rows:(h + 1) * rows]


def synthesize(x, mask, value, scores):
    """scores(h) of each head → softmax over visible keys, times the values."""
    T = len(x)
    v = x @ value.T
    return np.hstack([softmax(scores(h)[:T, :T], mask) @ head(v, h) for h in range(HEADS)])


def two_layers(x, h, w1, b1, w2, b2, outputs):
    hidden = np.maximum(x @ part(w1, h, INNER).T + b1[h], 0)
    return hidden @ part(w2, h, outputs).T + b2[h]


def dense_parameters(name="dense", outputs=N):
    return [(name + "1.weight", HEADS * INNER, D), (name + "1.bias", HEADS, INNER),
            (name + "2.weight", HEADS * outputs, INNER), (name + "2.bias", HEADS, outputs)]


VALUE = ("value.weight", D, D)
A = int(np.ceil(np.sqrt(N)))
B = -(-N // A)


def synthesizer_dense(x, mask, value, *dense):
    return synthesize(x, mask, value, lambda h: two_layers(x, h, *dense, N))


def synthesizer_random(x, mask, value, r):
    return synthesize(x, mask, value, lambda h: part(r, h, N))


def synthesizer_factorized_random(x, mask, value, r1, r2):
    return synthesize(x, mask, value, lambda h: part(r1, h, N) @ part(r2, h, N).T)


def synthesizer_factorized_dense(x, mask, value, *p):
    def scores(h):
        left = two_layers(x, h, *p[:4], A)
        right = two_layers(x, h, *p[4:], B)
        return np.repeat(left, B, axis=1) * np.tile(right, (1, A))
    return synthesize(x, mask, value, scores)


KINDS = {
    "dense": (dense_parameters(), lambda x, h, *p: two_layers(x, h, *p, N)),
    "factorized_dense": (dense_parameters("left", A) + dense_parameters("right", B),
                         lambda x, h, *p: np.repeat(two_layers(x, h, *p[:4], A), B, axis=1)
                         * np.tile(two_layers(x, h, *p[4:], B), (1, A))),
    "random": ([("random.weight", HEADS * N, N)], lambda x, h, r: part(r, h, N)),
    "factorized_random": ([("random1.weight", HEADS * N, INNER), ("random2.weight", HEADS * N, INNER)],
                          lambda x, h, r1, r2: part(r1, h, N) @ part(r2, h, N).T),
    "vanilla": ([("query.weight", D, D), ("key.weight", D, D)],
                lambda x, h, q, k: head(x @ q.T, h) @ head(x @ k.T, h).T / np.sqrt(SIZE)),
}


def mixture(name, kinds):
    """A row of MIXERS: scores of several kinds, weighted by the softmax of trained numbers."""
    parameters = [VALUE, ("mixture.weight", 1, len(kinds))] + [p for kind in kinds for p in KINDS[kind][0]]

    def mix(x, mask, value, mixed, *rest):
        share = np.exp(mixed[0]) / np.exp(mixed[0]).sum()
        T = len(x)

        def scores(h):
            total, first = 0, 0
            for alpha, kind in zip(share, kinds):
                own, f = KINDS[kind]
                total = total + alpha * f(x, h, *rest[first:first + len(own)])[:T, :T]
                first += len(own)
            return total
        return synthesize(x, mask, value, scores)
    return (mix, name, ANY, parameters)


def resmlp(x, mask, alpha, beta, w, b, gamma):
    T = len(x)
    return gamma * (np.where(mask, w[:T, :T], 0) @ (alpha * x + beta) + b[0, :T, None])


def mlp_mixer(x, mask, gain, shift, w1, b1, w2, b2):
    T = len(x)
    turned = norm(x, gain, shift).T
    return (gelu(turned @ w1[:, :T].T + b1) @ w2[:T].T + b2[:, :T]).T


def gated(x, mask, spatial, p, extra=0):
    gain, shift, w_in, b_in, gain2, shift2, _, b, w_out, b_out = p[:10]
    T = len(x)
    z1, z2 = np.split(gelu(norm(x, gain, shift) @ w_in.T + b_in), 2, axis=1)
    gate = np.where(mask, spatial, 0) @ norm(z2, gain2, shift2) + b[0, :T, None] + extra
    return (z1 * gate) @ w_out.T + b_out


def gmlp(x, mask, *p):
    return gated(x, mask, p[6][:len(x), :len(x)], p)


def gmlp_toeplitz(x, mask, *p):
    i = np.arange(len(x))
    return gated(x, mask, p[6][0][i[None, :] - i[:, None] + N - 1], p)


def amlp(x, mask, *p):
    q, k, v = np.split(norm(x, p[0], p[1]) @ p[10].T + p[11], 3, axis=1)
    context = torched(lambda *qkv: F.scaled_dot_product_attention(*(t[None] for t in qkv[:3]), qkv[3])[0],
                      q, k, v, mask)
    context = np.where(mask.any(1, keepdims=True), context, 0)
    return gated(x, mask, p[6][:len(x), :len(x)], p, context @ p[12].T + p[13])


def fnet(x, mask):
    return np.fft.fft2(x).real


def external_attention(x, mask, key, value):
    a = np.exp(x @ key.T)
    a = a / a.sum(0, keepdims=True)
    return a / a.sum(1, keepdims=True) @ value


def external_attention_softmax(x, mask, key, value):
    return softmax(x @ key.T, True) @ value


def aft(x, mask, query, key, value, w=None):
    T = len(x)
    bias = 0 if w is None else w[:T, :T, None]
    e = np.where(mask[:, :, None], np.exp((x @ key.T)[None] + bias), 0)  # t, s, channel
    total = e.sum(1)
    mean = np.divide((e * (x @ value.T)[None]).sum(1), total, out=np.zeros_like(x), where=total > 0)
    return sigmoid(x @ query.T) * mean


def linear_attention(x, mask, query, key, value):
    """Pair by pair, as the masked kernel attention that it is."""
    def features(w, h):
        return torched(F.elu, head(x @ w.T, h)) + 1
    out = []
    for h in range(HEADS):
        a = np.where(mask, features(query, h) @ features(key, h).T, 0)
        out.append(a / a.sum(1, keepdims=True) @ head(x @ value.T, h))
    return np.hstack(out)


def mixed_chunk(x, mask, w_gate, w_value, w_shared, scale, offset, position):
    u, v, z = (torched(F.silu, x @ w.T) for w in (w_gate, w_value, w_shared))
    q, k, q_linear, k_linear = (scale[m] * z + offset[m] for m in range(4))
    i = np.arange(len(x))
    near = i[:, None] // CHUNK == i[None, :] // CHUNK
    causal = not mask.all()
    bias = position[0][np.clip(i[None, :] - i[:, None], 1 - CHUNK, CHUNK - 1) + CHUNK - 1]
    squares = np.where(near & mask, np.maximum(q @ k.T / np.sqrt(SMALL) + bias, 0) ** 2, 0) / CHUNK
    far = i[None, :] // CHUNK < i[:, None] // CHUNK if causal else np.ones_like(mask)
    linear = np.where(far, q_linear @ k_linear.T, 0) / np.maximum(far.sum(1, keepdims=True), 1)
    return u * ((squares + linear) @ v)


def padding(mask):
    """Left and right, as fairseq's LightweightConv1d pads; all at the left where causal."""
    left = (TAPS - 1) // 2 if mask.all() else TAPS - 1
    return DILATION * left, DILATION * (TAPS - 1 - left)


def inputs(x, w_in, w_gate):
    return torched(lambda t: F.glu(t, 1), np.hstack([x @ w_in.T, x @ w_gate.T]))


def convolve(v, mask, taps):
    """taps (D, TAPS)."""
    return torched(lambda v, w: F.conv1d(F.pad(v.T[None], padding(mask)), w[:, None], dilation=DILATION,
                                         groups=D)[0].T, v, taps)


def depthwise_convolution(x, mask, w_in, w_gate, kernel):
    return convolve(inputs(x, w_in, w_gate), mask, kernel)


def light_convolution(x, mask, w_in, w_gate, kernel):
    return convolve(inputs(x, w_in, w_gate), mask, np.repeat(softmax(kernel, True), SIZE, axis=0))


def dynamic_convolution(x, mask, w_in, w_gate, kernel):
    v = inputs(x, w_in, w_gate)
    taps = softmax((v @ kernel.T).reshape(len(x), HEADS, TAPS), True)
    rows = [convolve(v, mask, np.repeat(taps[i], SIZE, axis=0))[i] for i in range(len(x))]
    return np.array(rows)


GATED = [("norm.weight", 1, D), ("norm.bias", 1, D), ("in.weight", INNER, D), ("in.bias", 1, INNER),
         ("gate_norm.weight", 1, INNER // 2), ("gate_norm.bias", 1, INNER // 2), ("spatial.weight", N, N),
         ("spatial.bias", 1, N), ("out.weight", D, INNER // 2), ("out.bias", 1, D)]
TOEPLITZ = [("spatial.weight", 1, 2 * N - 1) if p[0] == "spatial.weight" else p for p in GATED]
TINY = [("attention_in.weight", 3 * SMALL, D), ("attention_in.bias", 1, 3 * SMALL),
        ("attention_out.weight", INNER // 2, SMALL), ("attention_out.bias", 1, INNER // 2)]
RANDOM = ("random.weight", HEADS * N, N)
MEMORIES = [("memory_key.weight", INNER, D), ("memory_value.weight", INNER, D)]
QKV = [("query.weight", D, D), ("key.weight", D, D), VALUE]
GLU = [("in.weight", D, D), ("in_gate.weight", D, D)]

ANY = ["full", "causal", "tta"]
MIXERS = [
    (aft, "aft", ANY, QKV + [("position.weight", N, N)]),
    (aft, "aft_simple", ANY, QKV),
    (amlp, "amlp", ANY, GATED + TINY),
    (depthwise_convolution, "depthwise_convolution", ANY[:2], GLU + [("kernel.weight", D, TAPS)]),
    (dynamic_convolution, "dynamic_convolution", ANY[:2], GLU + [("kernel.weight", HEADS * TAPS, D)]),
    (external_attention, "external_attention", ANY[:1], MEMORIES),
    (external_attention_softmax, "external_attention_softmax", ANY[:1], MEMORIES),
    (fnet, "fnet", ANY[:1], []),
    (gmlp, "gmlp", ANY, GATED),
    (gmlp_toeplitz, "gmlp_toeplitz", ANY, TOEPLITZ),
    (light_convolution, "light_convolution", ANY[:2], GLU + [("kernel.weight", HEADS, TAPS)]),
    (linear_attention, "linear_attention", ANY[:2], QKV),
    (mixed_chunk, "mixed_chunk", ANY[:2],
     [("gate.weight", D, D), VALUE, ("shared.weight", SMALL, D), ("scale.weight", 4, SMALL),
      ("offset.weight", 4, SMALL), ("position.weight", 1, 2 * CHUNK - 1)]),
    (mlp_mixer, "mlp_mixer", ANY[:1],
     [("norm.weight", 1, D), ("norm.bias", 1, D), ("token1.weight", INNER, N), ("token1.bias", 1, INNER),
      ("token2.weight", N, INNER), ("token2.bias", 1, N)]),
    (resmlp, "resmlp", ANY,
     [("affine.weight", 1, D), ("affine.bias", 1, D), ("token.weight", N, N), ("token.bias", 1, N),
      ("scale.weight", 1, D)]),
    (synthesizer_dense, "synthesizer_dense", ANY, [VALUE] + dense_parameters()),
    mixture("synthesizer_dense_factorized_random", ["dense", "factorized_random"]),
    mixture("synthesizer_dense_factorized_random_vanilla", ["dense", "factorized_random", "vanilla"]),
    mixture("synthesizer_dense_random", ["dense", "random"]),
    mixture("synthesizer_dense_vanilla", ["dense", "vanilla"]),
    (synthesizer_factorized_dense, "synthesizer_factorized_dense", ANY,
     [VALUE] + dense_parameters("left", A) + dense_parameters("right", B)),
    mixture("synthesizer_factorized_dense_factorized_random", ["factorized_dense", "factorized_random"]),
    mixture("synthesizer_factorized_dense_factorized_random_vanilla", ["factorized_dense", "factorized_random", "vanilla"]),
    mixture("synthesizer_factorized_dense_random", ["factorized_dense", "random"]),
    mixture("synthesizer_factorized_dense_random_vanilla", ["factorized_dense", "random", "vanilla"]),
    mixture("synthesizer_factorized_dense_vanilla", ["factorized_dense", "vanilla"]),
    (synthesizer_factorized_random, "synthesizer_factorized_random", ANY,
     [VALUE, ("random1.weight", HEADS * N, INNER), ("random2.weight", HEADS * N, INNER)]),
    mixture("synthesizer_factorized_random_vanilla", ["factorized_random", "vanilla"]),
    (synthesizer_random, "synthesizer_fixed", ANY, [VALUE, RANDOM]),
    mixture("synthesizer_mixture", ["dense", "random", "vanilla"]),
    (synthesizer_random, "synthesizer_random", ANY, [VALUE, RANDOM]),
    mixture("synthesizer_random_vanilla", ["random", "vanilla"]),
]


def main():
    lines = ["# Written by scripts/goldens/mixers.py."]
    for mix, name, masks, parameters in MIXERS:
        listed = ",".join(f"{n}:{rows}:{columns}" for n, rows, columns in parameters) or "-"
        arrays = [numbers(a + 1, rows, columns) for a, (_, rows, columns) in enumerate(parameters)]
        for tokens in (5, N):
            i = np.arange(tokens)
            visible = {"full": np.ones((tokens, tokens), bool), "causal": i[None, :] <= i[:, None],
                       "tta": i[None, :] != i[:, None]}
            for mask in masks if tokens < N else masks[:1]:
                y = mix(numbers(0, tokens, D), visible[mask], *arrays)
                assert y.shape == (tokens, D) and np.isfinite(y).all()
                lines.append("\t".join([name, listed, mask, str(tokens),
                                        " ".join(f"{v:.13g}" for v in y.ravel())]))
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
