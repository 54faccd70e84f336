"""Models that transformers lacks, in numpy float64: T-TA, RoFormerV2, GAU-alpha, NeoBERT.

Written from their descriptions (arXiv 2004.08097; kexue.fm 8998; kexue.fm 8934 and 9052; arXiv 2502.19587), with the names
and configurations of the PyTorch files that people have. Each class gives the tensors of a checkpoint
with their shapes, and what it computes for a record.
"""

import numpy as np
import scipy.special

ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + scipy.special.erf(x / np.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
    "swish": lambda x: x * scipy.special.expit(x),
}


def softmax(scores, visible=None):
    """Over the last axis; a row that sees nothing is zero."""
    visible = np.ones_like(scores, bool) if visible is None else np.broadcast_to(visible, scores.shape)
    top = np.max(np.where(visible, scores, -np.inf), -1, keepdims=True, initial=-np.inf)
    e = np.where(visible, np.exp(np.where(visible, scores, 0) - np.where(np.isfinite(top), top, 0)), 0)
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def rotate(x, dtype=np.float64):
    """RoPE with base 10000 on the last axis of (…, T, size), pairs (2t, 2t + 1), positions 0 … T − 1; angles in `dtype`."""
    size = x.shape[-1]
    frequencies = (10000.0 ** (-2 * np.arange(size // 2) / size)).astype(dtype)
    angle = np.outer(np.arange(x.shape[-2]).astype(dtype), frequencies).astype(np.float64)
    sin, cos = np.sin(angle), np.cos(angle)
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, odd * cos + even * sin], -1).reshape(x.shape)


class Model:
    """`tensors` as stored, out × in; computed in `dtype`."""

    def __init__(self, config, tensors, dtype=np.float64):
        self.config = config
        self.tensors = {name: np.asarray(value, dtype) for name, value in tensors.items()}
        self.dtype = dtype

    def dense(self, x, name):
        y = x @ self.tensors[name + ".weight"].T
        return y + self.tensors[name + ".bias"] if name + ".bias" in self.tensors else y

    def layer_norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return scaled * self.tensors[name + ".weight"] + self.tensors[name + ".bias"]

    def bare_norm(self, x):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.config["layer_norm_eps"])

    def act(self, x):
        return ACTIVATIONS[self.config["hidden_act"]](x)

    def heads(self, x):
        """(T, hidden) to (heads, T, head size)."""
        return x.reshape(len(x), self.config["num_attention_heads"], -1).swapaxes(0, 1)

    def result(self, states, weights, logits, **more):
        values = dict(hidden_states=np.stack(states), attentions=np.stack(weights), logits=logits, **more)
        return {name: np.asarray(value, np.float64) for name, value in values.items()}


def bert_layer_shapes(prefix, config, norm_and_bias):
    """Names and shapes of a layer of BERT's kind."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {}
    for name, out, into in (
            ("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", inner, hidden), ("output.dense", hidden, inner)):
        shapes[f"{prefix}.{name}.weight"] = (out, into)
        if norm_and_bias:
            shapes[f"{prefix}.{name}.bias"] = (out,)
    for name in ("attention.output.LayerNorm", "output.LayerNorm") if norm_and_bias else ():
        shapes[f"{prefix}.{name}.weight"] = shapes[f"{prefix}.{name}.bias"] = (hidden,)
    return shapes


class Tta(Model):
    """BERT's tensors. Keys and values of every layer are made of M, the embedding of the tokens; the
    query stream starts as the embedding of [MASK] at every position; nobody reads its own position.
    """

    @staticmethod
    def shapes(config):
        hidden, vocab = config["hidden_size"], config["vocab_size"]
        shapes = {"bert.embeddings.word_embeddings.weight": (vocab, hidden),
                  "bert.embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden)}
        if config["type_vocab_size"]:
            shapes["bert.embeddings.token_type_embeddings.weight"] = (config["type_vocab_size"], hidden)
        for name in ("bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"):
            shapes[name + ".weight"] = shapes[name + ".bias"] = (hidden,)
        for layer in range(config["num_hidden_layers"]):
            shapes |= bert_layer_shapes(f"bert.encoder.layer.{layer}", config, True)
        shapes["cls.predictions.transform.dense.weight"] = (hidden, hidden)
        shapes["cls.predictions.transform.dense.bias"] = (hidden,)
        shapes["cls.predictions.bias"] = (vocab,)
        return shapes

    def embed(self, ids, record):
        at = "bert.embeddings."
        x = self.tensors[at + "word_embeddings.weight"][ids]
        x = x + self.tensors[at + "position_embeddings.weight"][record.get("pos", np.arange(len(ids)))]
        if at + "token_type_embeddings.weight" in self.tensors:
            x = x + self.tensors[at + "token_type_embeddings.weight"][record.get("seg", [0] * len(ids))]
        return self.layer_norm(x, at + "LayerNorm")

    def run(self, record):
        length = len(record["ids"])
        memory = self.embed(record["ids"], record)
        query = self.embed([self.config["mask_token_id"]] * length, record)
        states, weights = [query], []
        others = ~np.eye(length, dtype=bool)
        for layer in range(self.config["num_hidden_layers"]):
            at = f"bert.encoder.layer.{layer}."
            q = self.heads(self.dense(query, at + "attention.self.query"))
            k = self.heads(self.dense(memory, at + "attention.self.key"))
            v = self.heads(self.dense(memory, at + "attention.self.value"))
            weight = softmax(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), others)
            context = (weight @ v).swapaxes(0, 1).reshape(length, -1)
            query = self.layer_norm(query + self.dense(context, at + "attention.output.dense"),
                                    at + "attention.output.LayerNorm")
            inner = self.act(self.dense(query, at + "intermediate.dense"))
            query = self.layer_norm(query + self.dense(inner, at + "output.dense"), at + "output.LayerNorm")
            states.append(query)
            weights.append(weight)
        head = self.act(self.dense(query, "cls.predictions.transform.dense"))
        head = self.layer_norm(head, "cls.predictions.transform.LayerNorm")
        logits = head @ self.tensors["bert.embeddings.word_embeddings.weight"].T
        return self.result(states, weights, logits + self.tensors["cls.predictions.bias"], input_states=memory)


def su_shapes(prefix, config):
    """What RoFormerV2 and GAU-alpha have around their layers."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    shapes = {prefix + ".embeddings.word_embeddings.weight": (vocab, hidden),
              prefix + ".embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden)}
    if not config.get("tie_word_embeddings", True):
        shapes["cls.predictions.decoder.weight"] = (vocab, hidden)
    return shapes


class RoFormerV2(Model):
    """RoFormer without biases, with norms that only divide by the root mean square; no layer before
    the decoder.
    """

    @staticmethod
    def shapes(config):
        shapes = su_shapes("roformer", config)
        for layer in range(config["num_hidden_layers"]):
            shapes |= bert_layer_shapes(f"roformer.encoder.layer.{layer}", config, False)
        return shapes

    prefix = "roformer"

    def embed(self, record):
        at = self.prefix + ".embeddings."
        x = self.tensors[at + "word_embeddings.weight"][record["ids"]]
        types = record.get("seg", [0] * len(record["ids"]))
        return self.bare_norm(x + self.tensors[at + "token_type_embeddings.weight"][types])

    def decode(self, x):
        tied = self.prefix + ".embeddings.word_embeddings.weight"
        return x @ self.tensors.get("cls.predictions.decoder.weight", self.tensors[tied]).T

    def run(self, record):
        x = self.embed(record)
        states, weights = [x], []
        for layer in range(self.config["num_hidden_layers"]):
            at = f"roformer.encoder.layer.{layer}."
            q, k, v = (self.heads(self.dense(x, at + "attention.self." + name))
                       for name in ("query", "key", "value"))
            weight = softmax(rotate(q) @ rotate(k).swapaxes(1, 2) / np.sqrt(q.shape[-1]))
            context = (weight @ v).swapaxes(0, 1).reshape(len(x), -1)
            x = self.bare_norm(x + self.dense(context, at + "attention.output.dense"))
            x = self.bare_norm(x + self.dense(self.act(self.dense(x, at + "intermediate.dense")), at + "output.dense"))
            states.append(x)
            weights.append(weight)
        return self.result(states, weights, self.decode(x))


class GauAlpha(RoFormerV2):
    """Layers of one gated attention unit each, with one head."""

    prefix = "gau_alpha"

    @staticmethod
    def shapes(config):
        shapes = su_shapes("gau_alpha", config)
        hidden, inner, size = config["hidden_size"], config["intermediate_size"], config["attention_key_size"]
        for layer in range(config["num_hidden_layers"]):
            at = f"gau_alpha.encoder.layer.{layer}.gau."
            shapes |= {at + "i_dense.weight": (2 * inner + size, hidden), at + "o_dense.weight": (hidden, inner),
                       at + "q_scaleoffset.weight": (size,), at + "k_scaleoffset.weight": (size,)}
            if config["use_bias"]:
                shapes |= {at + "i_dense.bias": (2 * inner + size,), at + "o_dense.bias": (hidden,),
                           at + "q_scaleoffset.bias": (size,), at + "k_scaleoffset.bias": (size,)}
        return shapes

    def normalise(self, scores):
        """All keys are visible."""
        kind, visible = self.config["normalization"], scores.shape[-1]
        if kind == "squared_relu":
            return np.maximum(scores, 0) ** 2 / visible
        return softmax(scores * (np.log(max(visible, 16)) / np.log(512) if kind == "softmax_plus" else 1.0))

    def run(self, record):
        x = self.embed(record)
        states, weights = [x], []
        inner, size = self.config["intermediate_size"], self.config["attention_key_size"]
        for layer in range(self.config["num_hidden_layers"]):
            at = f"gau_alpha.encoder.layer.{layer}.gau."
            gate, value, base = np.split(self.act(self.dense(x, at + "i_dense")), [inner, 2 * inner], -1)

            def scaled(name):
                return base * self.tensors[at + name + ".weight"] + self.tensors.get(at + name + ".bias", 0)
            scores = rotate(scaled("q_scaleoffset")) @ rotate(scaled("k_scaleoffset")).T
            weight = self.normalise(scores / np.sqrt(size) if self.config["attention_scale"] else scores)
            x = self.bare_norm(x + self.dense(gate * (weight @ value), at + "o_dense"))
            states.append(x)
            weights.append(weight[None])
        return self.result(states, weights, self.decode(x))


class NeoBert(Model):
    """Pre-norm layers without biases: RMS norms, queries, keys and values of each head side by side, RoPE, SwiGLU; an
    untied vocabulary with a bias.
    """

    @staticmethod
    def inner(config):
        return -(-(2 * config["intermediate_size"] // 3) // 8) * 8

    @staticmethod
    def shapes(config):
        hidden, vocab, inner = config["hidden_size"], config["vocab_size"], NeoBert.inner(config)
        shapes = {"model.encoder.weight": (vocab, hidden), "model.layer_norm.weight": (hidden,)}
        for layer in range(config["num_hidden_layers"]):
            at = f"model.transformer_encoder.{layer}."
            shapes |= {at + "qkv.weight": (3 * hidden, hidden), at + "wo.weight": (hidden, hidden),
                       at + "ffn.w12.weight": (2 * inner, hidden), at + "ffn.w3.weight": (hidden, inner),
                       at + "attention_norm.weight": (hidden,), at + "ffn_norm.weight": (hidden,)}
        if config["architectures"] == ["NeoBERTLMHead"]:
            shapes |= {"decoder.weight": (vocab, hidden), "decoder.bias": (vocab,)}
        return shapes

    def rms_norm(self, x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.config["norm_eps"]) * self.tensors[name + ".weight"]

    def run(self, record):
        x = self.tensors["model.encoder.weight"][record["ids"]]
        states, weights = [x], []
        for layer in range(self.config["num_hidden_layers"]):
            at = f"model.transformer_encoder.{layer}."
            q, k, v = np.split(self.heads(self.dense(self.rms_norm(x, at + "attention_norm"), at + "qkv")), 3, -1)
            weight = softmax(rotate(q, np.float32) @ rotate(k, np.float32).swapaxes(1, 2) / np.sqrt(q.shape[-1]))
            x = x + self.dense((weight @ v).swapaxes(0, 1).reshape(len(x), -1), at + "wo")
            gate, up = np.split(self.dense(self.rms_norm(x, at + "ffn_norm"), at + "ffn.w12"), 2, -1)
            x = x + self.dense(ACTIVATIONS["swish"](gate) * up, at + "ffn.w3")
            states.append(x)
            weights.append(weight)
        states[-1] = self.rms_norm(x, "model.layer_norm")
        if "decoder.weight" not in self.tensors:
            values = dict(hidden_states=np.stack(states), attentions=np.stack(weights))
            return {name: np.asarray(value, np.float64) for name, value in values.items()}
        return self.result(states, weights, self.dense(states[-1], "decoder"))


def random_tensors(shapes, seed, std):
    """float32: norm and scale weights 1 + N(0, 0.2), the rest N(0, std)."""
    rng = np.random.default_rng(seed)
    around_one = ("LayerNorm.weight", "scaleoffset.weight", "_norm.weight")
    return {name: (rng.standard_normal(shape) * (0.2 if name.endswith(around_one) else std)
                   + name.endswith(around_one)).astype(np.float32) for name, shape in shapes.items()}


def vocabulary(mask_id, size):
    """A vocab.txt of the kind that T-TA has, [MASK] at `mask_id`."""
    special = ["[PAD]", "[EOS]", "[UNK]", "[SOS]", "[MASK]", "[CLS]", "[SEP]"]
    special[mask_id], special[4] = special[4], special[mask_id]
    return special + [chr(ord("a") + i % 26) * (1 + i // 26) for i in range(size - len(special))]


COMMON = dict(vocab_size=45, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
              max_position_embeddings=20, layer_norm_eps=1e-12, pad_token_id=0)
TTA = COMMON | dict(architectures=["BertForMaskedLM"], model_type="tta", hidden_act="gelu", type_vocab_size=0)
ROFORMER_V2 = COMMON | dict(
    architectures=["RoFormerForMaskedLM"], model_type="roformer", hidden_act="relu", type_vocab_size=2,
    embedding_size=24, norm_type="rms_norm", use_bias=False, rotary_value=False, pooler_activation="linear")
GAU_ALPHA = COMMON | dict(
    architectures=["GAUAlphaForMaskedLM"], model_type="gau_alpha", hidden_act="swish", type_vocab_size=2,
    embedding_size=24, attention_key_size=14, intermediate_size=32, attention_scale=True, use_bias=False,
    normalization="softmax_plus")
del GAU_ALPHA["num_attention_heads"]

NEOBERT = dict(
    architectures=["NeoBERTLMHead"], model_type="neobert", vocab_size=45, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
    dim_head=8, intermediate_size=48, max_length=20, norm_eps=1e-5, pad_token_id=0)

# (case, class, config, id of [MASK])
CASES = [
    ("tta", Tta, TTA, 4),
    ("tta_over_bert", Tta, TTA | dict(model_type="bert", type_vocab_size=2), 3),
    ("roformer_v2", RoFormerV2, ROFORMER_V2, None),
    ("roformer_v2_untied", RoFormerV2, ROFORMER_V2 | dict(tie_word_embeddings=False, hidden_act="gelu"), None),
    ("neobert", NeoBert, NEOBERT, None),
    ("neobert_headless", NeoBert, NEOBERT | dict(architectures=["NeoBERT"], num_hidden_layers=1, norm_eps=1e-2), None),
    ("gau_alpha", GauAlpha, GAU_ALPHA, None),
    ("gau_alpha_squared_relu", GauAlpha, GAU_ALPHA | dict(
        normalization="squared_relu", use_bias=True, tie_word_embeddings=False), None),
    ("gau_alpha_softmax", GauAlpha, GAU_ALPHA | dict(normalization="softmax", attention_scale=False), None),
]
