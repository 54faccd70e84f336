"""LLaDA and Dream, which transformers lacks, of the parts of its Llama and Qwen2 under a full mask.

DreamModel is Qwen2ForCausalLM with a mask that hides nothing but padding; its logits are moved one position to
the right, so that those of a position are of the token that stands there (the first position keeps its own).
LLaDAModelLM has the names and options of the authors' files, for blocks of the type "llama"; of options that the
authors' code refuses it raises ValueError. `check()` compares both with LlamaForCausalLM and Qwen2ForCausalLM under
other names. Versions: torch 2.15.0, transformers 5.24.0.
"""

import math

import torch
import transformers as tr
from torch import nn
from transformers.modeling_outputs import MaskedLMOutput
from transformers.models.llama.modeling_llama import LlamaRMSNorm, LlamaRotaryEmbedding, apply_rotary_pos_emb


def full_mask(attention_mask, dtype):
    """Of a batch padded on the right: what is added to scores."""
    if attention_mask is None or bool((attention_mask != 0).all()):
        return None
    hidden = (attention_mask == 0)[:, None, None, :]
    return torch.zeros(hidden.shape, dtype=dtype).masked_fill(hidden, torch.finfo(dtype).min)


class DreamConfig(tr.Qwen2Config):
    model_type = "Dream"
    mask_token_id: int | None = 151666

    def __post_init__(self, **kwargs):
        super().__post_init__(**kwargs)
        # The authors' attention has no windows.
        self.layer_types = ["full_attention"] * self.num_hidden_layers


class DreamModel(tr.Qwen2ForCausalLM):
    config_class = DreamConfig
    base_model_prefix = "model"

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, **kwargs):
        x = self.model.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        bias = full_mask(attention_mask, x.dtype)
        if bias is None:
            bias = torch.zeros(1, 1, 1, x.shape[1], dtype=x.dtype)
        out = super().forward(inputs_embeds=x, attention_mask={"full_attention": bias}, use_cache=False, **kwargs)
        out.logits = torch.cat([out.logits[:, :1], out.logits[:, :-1]], 1)
        return out


class LLaDAConfig(tr.PreTrainedConfig):
    model_type = "llada"
    d_model: int = 768
    n_heads: int = 12
    n_kv_heads: int | None = None
    n_layers: int = 12
    mlp_ratio: int = 4
    mlp_hidden_size: int | None = None
    activation_type: str = "swiglu"
    block_type: str = "sequential"
    block_group_size: int = 1
    alibi: bool = False
    alibi_bias_max: float = 8.0
    rope: bool = False
    rope_full_precision: bool = True
    flash_attention: bool = False
    attention_dropout: float = 0.1
    multi_query_attention: bool | None = None
    attention_layer_norm: bool = False
    residual_dropout: float = 0.1
    embedding_dropout: float = 0.1
    input_emb_norm: bool = False
    layer_norm_type: str = "default"
    layer_norm_with_affine: bool = True
    rms_norm_eps: float = 1e-5
    attention_layer_norm_with_affine: bool = True
    max_sequence_length: int = 1024
    rope_theta: float = 10000.0
    include_qkv_bias: bool | None = False
    include_bias: bool = False
    bias_for_layer_norm: bool | None = None
    scale_logits: bool = False
    vocab_size: int = 50257
    embedding_size: int | None = 50304
    weight_tying: bool = True
    eos_token_id: int | None = 50256
    pad_token_id: int | None = 50256
    mask_token_id: int | None = 50256
    init_device: str | None = None
    init_fn: str = "normal"
    init_std: float = 0.02
    init_cutoff_factor: float | None = None
    precision: str | None = None

    @property
    def hidden_size(self):
        return self.d_model

    @property
    def num_hidden_layers(self):
        return self.n_layers

    def key_heads(self):
        if self.multi_query_attention is None:
            return self.n_heads if self.n_kv_heads is None else self.n_kv_heads
        heads = 1 if self.multi_query_attention else self.n_heads
        if self.n_kv_heads not in (None, heads):
            raise ValueError("multi_query_attention and n_kv_heads")
        return heads


class LLaDANorm(nn.Module):
    def __init__(self, config, size, affine):
        super().__init__()
        self.kind = config.layer_norm_type
        if self.kind not in ("default", "low_precision", "rms", "gemma_rms"):
            raise ValueError("layer_norm_type")
        self.eps = config.rms_norm_eps if "rms" in self.kind else 1e-5
        self.size = size
        bias = config.include_bias if config.bias_for_layer_norm is None else config.bias_for_layer_norm
        self.weight = nn.Parameter(torch.ones(size)) if affine else None
        self.bias = nn.Parameter(torch.zeros(size)) if affine and bias else None
        if self.kind == "gemma_rms" and not affine:
            raise ValueError("layer_norm_with_affine")

    def forward(self, x):
        if "rms" not in self.kind:
            return nn.functional.layer_norm(x, (self.size,), self.weight, self.bias, self.eps)
        one = torch.ones(self.size, dtype=x.dtype)
        norm = LlamaRMSNorm(self.size, self.eps)
        norm.weight = nn.Parameter(one, requires_grad=False)
        x = norm(x)
        if self.weight is None:
            return x
        x = x * (self.weight + 1 if self.kind == "gemma_rms" else self.weight)
        return x if self.bias is None else x + self.bias


class LLaDABlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        width, heads, keys = config.d_model, config.n_heads, config.key_heads()
        size = width // heads
        inner = config.mlp_hidden_size or config.mlp_ratio * width
        three = bool(config.include_bias or config.include_qkv_bias)
        self.attn_norm = LLaDANorm(config, width, config.layer_norm_with_affine)
        self.ff_norm = LLaDANorm(config, width, config.layer_norm_with_affine)
        if config.attention_layer_norm:
            self.q_norm = LLaDANorm(config, width, config.attention_layer_norm_with_affine)
            self.k_norm = LLaDANorm(config, keys * size, config.attention_layer_norm_with_affine)
        self.q_proj = nn.Linear(width, width, bias=three)
        self.k_proj = nn.Linear(width, keys * size, bias=three)
        self.v_proj = nn.Linear(width, keys * size, bias=three)
        self.attn_out = nn.Linear(width, width, bias=config.include_bias)
        self.ff_proj = nn.Linear(width, inner, bias=config.include_bias)
        self.up_proj = nn.Linear(width, inner, bias=config.include_bias)
        self.ff_out = nn.Linear(inner, width, bias=config.include_bias)
        self.activation = dict(silu=nn.functional.silu, gelu=nn.functional.gelu, relu=nn.functional.relu)[config.activation_type]

    def heads(self, x):
        return x.view(*x.shape[:2], -1, self.config.d_model // self.config.n_heads).transpose(1, 2)

    def forward(self, x, angles, bias):
        normed = self.attn_norm(x)
        q, k, v = self.q_proj(normed), self.k_proj(normed), self.v_proj(normed)
        if self.config.attention_layer_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        q, k = apply_rotary_pos_emb(q, k, *angles)
        groups = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        weights = (scores if bias is None else scores + bias).softmax(-1)
        x = x + self.attn_out((weights @ v).transpose(1, 2).flatten(2))
        normed = self.ff_norm(x)
        return x + self.ff_out(self.activation(self.ff_proj(normed)) * self.up_proj(normed)), weights


class LLaDAModel(nn.Module):
    """What LLaDAModelLM calls `model`."""

    def __init__(self, config):
        super().__init__()
        if config.alibi or not config.rope or config.block_type != "llama" or config.block_group_size != 1:
            raise ValueError("another block than that of LLaDA 8B")
        if config.n_heads * (config.d_model // config.n_heads) != config.d_model:
            raise ValueError("n_heads")
        rows = config.embedding_size or config.vocab_size
        if rows < config.vocab_size:
            raise ValueError("embedding_size")
        self.config = config
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(rows, config.d_model), blocks=nn.ModuleList(LLaDABlock(config) for _ in range(config.n_layers)),
            ln_f=LLaDANorm(config, config.d_model, config.layer_norm_with_affine)))
        if not config.weight_tying:
            self.transformer["ff_out"] = nn.Linear(config.d_model, rows, bias=config.include_bias)
        self.rotary_emb = LlamaRotaryEmbedding(tr.LlamaConfig(
            hidden_size=config.d_model, num_attention_heads=config.n_heads, rope_theta=config.rope_theta,
            rope_parameters=dict(rope_type="default", rope_theta=config.rope_theta)))

    def forward(self, input_ids, attention_mask=None, inputs_embeds=None):
        x = self.transformer.wte(input_ids) if inputs_embeds is None else inputs_embeds
        if self.config.input_emb_norm:
            x = x * self.config.d_model**0.5
        angles = self.rotary_emb(x, torch.arange(x.shape[1])[None])
        states, attentions = [], []
        bias = full_mask(attention_mask, x.dtype)
        for block in self.transformer.blocks:
            states.append(x)
            x, weights = block(x, angles, bias)
            attentions.append(weights)
        x = self.transformer.ln_f(x)
        return x, (*states, x), tuple(attentions)


class LLaDAModelLM(tr.PreTrainedModel):
    config_class = LLaDAConfig
    base_model_prefix = "model"
    _supports_attention_backend = True
    TIE = "weight_tying"  # of config.json

    def __init__(self, config):
        super().__init__(config)
        self.model = LLaDAModel(config)
        self.post_init()
        self.start()

    def _init_weights(self, module):
        if isinstance(module, LlamaRotaryEmbedding):
            super()._init_weights(module)

    def start(self):
        """reset_parameters() of the authors' classes."""
        config, width = self.config, self.config.d_model

        def normal(weight, deviation, cutoff):
            if cutoff:
                nn.init.trunc_normal_(weight, 0, deviation, -cutoff * deviation, cutoff * deviation)
            else:
                nn.init.normal_(weight, 0, deviation)

        def fill(weight, read, factor=1.0, layer=None, residual=False):
            if config.init_fn == "normal":
                normal(weight, config.init_std * factor, config.init_cutoff_factor)
                if residual:
                    weight.data.div_(math.sqrt(2 * config.n_layers))
            elif config.init_fn == "mitchell":
                depth = 1 if layer is None else math.sqrt(2 * (layer + 1))
                normal(weight, factor / math.sqrt(read) / depth, 3)
            elif config.init_fn == "kaiming_normal":
                nn.init.kaiming_normal_(weight, nonlinearity="relu")
            elif config.init_fn == "fan_in":
                normal(weight, factor / math.sqrt(read), None)
            else:
                raise ValueError("init_fn")

        parts = self.model.transformer
        fill(parts.wte.weight, width, 0.5 * math.sqrt(width) if config.scale_logits else 1.0)
        for number, block in enumerate(parts.blocks):
            for name in ("q_proj", "k_proj", "v_proj", "ff_proj", "up_proj"):
                fill(getattr(block, name).weight, width)
            fill(block.attn_out.weight, width, layer=number)
            fill(block.ff_out.weight, block.ff_out.in_features, layer=number, residual=True)
        if not config.weight_tying:
            fill(parts.ff_out.weight, width)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)

    def get_input_embeddings(self):
        return self.model.transformer.wte

    def get_output_embeddings(self):
        parts = self.model.transformer
        return parts.wte if self.config.weight_tying else parts.ff_out

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, **_):
        x, states, attentions = self.model(input_ids, attention_mask, inputs_embeds)
        parts = self.model.transformer
        logits = x @ parts.wte.weight.T if self.config.weight_tying else parts.ff_out(x)
        if self.config.scale_logits:
            logits = logits / math.sqrt(self.config.d_model)
        return MaskedLMOutput(logits=logits, hidden_states=states, attentions=attentions)

    @property
    def base_model(self):
        """Of models.py: what gives the last hidden state."""
        return LastState(self)


class LastState:
    def __init__(self, model):
        self.model, self.config, self.dtype = model, model.config, model.dtype

    def __call__(self, input_ids=None, attention_mask=None, **_):
        x, states, attentions = self.model.model(input_ids, attention_mask)
        return tr.modeling_outputs.BaseModelOutput(last_hidden_state=x, hidden_states=states, attentions=attentions)


LLAMA_NAMES = {"model.transformer.wte.": "model.embed_tokens.", "model.transformer.ln_f.": "model.norm.",
               "model.transformer.ff_out.": "lm_head.", "model.transformer.blocks.": "model.layers.",
               ".attn_norm.": ".input_layernorm.", ".ff_norm.": ".post_attention_layernorm.", ".q_proj.": ".self_attn.q_proj.",
               ".k_proj.": ".self_attn.k_proj.", ".v_proj.": ".self_attn.v_proj.", ".attn_out.": ".self_attn.o_proj.",
               ".ff_proj.": ".mlp.gate_proj.", ".up_proj.": ".mlp.up_proj.", ".ff_out.": ".mlp.down_proj."}


@torch.no_grad()
def check():
    """LLaDA 8B's options against transformers' Llama, and biases of three projections against Qwen2."""
    torch.manual_seed(1)
    for three in (False, True):
        config = LLaDAConfig(d_model=24, n_heads=6, n_kv_heads=2, n_layers=2, mlp_hidden_size=40, activation_type="silu",
                             block_type="llama", rope=True, rope_theta=500.0, layer_norm_type="rms", vocab_size=45,
                             embedding_size=48, weight_tying=False, include_qkv_bias=three, pad_token_id=0, eos_token_id=1,
                             mask_token_id=4)
        own = LLaDAModelLM(config)
        for parameter in own.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.3)
        kind = tr.Qwen2ForCausalLM if three else tr.LlamaForCausalLM
        other = kind(kind.config_class(
            vocab_size=48, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=40, rms_norm_eps=1e-5, tie_word_embeddings=False, attn_implementation="eager",
            rope_parameters=dict(rope_type="default", rope_theta=500.0)))
        state = {}
        for name, value in own.state_dict().items():
            for old, new in LLAMA_NAMES.items():
                name = name.replace(old, new)
            state[name] = value
        other.load_state_dict(state)
        own, other = own.double().eval(), other.double().eval()
        ids = torch.tensor([[6, 17, 36, 8, 31, 22, 9, 47]])
        mask = torch.zeros(1, 1, 8, 8, dtype=torch.float64)
        wanted = other(ids, attention_mask=dict(full_attention=mask) if three else mask).logits
        found = own(ids).logits
        assert (found - wanted).abs().max() < 1e-5, (found - wanted).abs().max()
        dream = DreamModel(DreamConfig(**{k: v for k, v in other.config.to_dict().items() if k not in ("model_type", "architectures")})) if three else None
        if dream is not None:
            dream.load_state_dict(state)
            found = dream.double().eval()(ids).logits
            assert (found[:, 1:] - wanted[:, :-1]).abs().max() < 1e-5 and (found[:, 0] - wanted[:, 0]).abs().max() < 1e-5
    print("equal to transformers' Llama and Qwen2 under a full mask")


if __name__ == "__main__":
    check()
