"""A file of layer times measured here: of a model in the form of transformers, and the meshes that are planned from it."""

import csv
import types

import pytest

torch = pytest.importorskip("torch")

import pfeife  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

LAYERS, HIDDEN, HEADS, KV, WIDTH, WORDS, TOKENS = 3, 32, 4, 2, 64, 48, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        size = HIDDEN // HEADS
        self.q_proj, self.o_proj = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(HIDDEN, KV * size, bias=False) for _ in "kv")

    def forward(self, x, rotation):
        size = HIDDEN // HEADS
        q, k, v = (part(x).view(*x.shape[:2], -1, size).transpose(1, 2) for part in (self.q_proj, self.k_proj, self.v_proj))
        context = functional.scaled_dot_product_attention(q * rotation, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(context.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        self.self_attn = Attention()
        self.mlp = nn.ModuleDict({"up_proj": nn.Linear(HIDDEN, WIDTH, bias=False), "gate_proj": nn.Linear(HIDDEN, WIDTH, bias=False)})
        self.mlp["down_proj"] = nn.Linear(WIDTH, HIDDEN, bias=False)

    def forward(self, hidden_states, rotation=None):
        x = hidden_states + self.self_attn(self.input_layernorm(hidden_states), rotation)
        y = self.post_attention_layernorm(x)
        return x + self.mlp["down_proj"](functional.silu(self.mlp["gate_proj"](y)) * self.mlp["up_proj"](y))


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens, self.norm = nn.Embedding(WORDS, HIDDEN), nn.RMSNorm(HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, input_ids):
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, rotation=torch.ones(1, device=x.device, dtype=x.dtype))
        return self.norm(x)


class Causal(nn.Module):
    base_model_prefix = "model"

    def __init__(self):
        super().__init__()
        self.model, self.lm_head = Base(), nn.Linear(HIDDEN, WORDS, bias=False)
        self.config = types.SimpleNamespace(num_key_value_heads=KV, num_attention_heads=HEADS, use_cache=True)
        layer = {f"model.layers.*.{name}": style for name, style in PLAN.items()}
        self.tp_plan = {**layer, "lm_head": "colwise_gather_output", "model.embed_tokens": "embedding_rowwise"}

    base_model = property(lambda self: self.model)

    def get_input_embeddings(self):
        return self.model.embed_tokens

    def get_output_embeddings(self):
        return self.lm_head

    def forward(self, input_ids):
        return self.lm_head(self.model(input_ids))


PLAN = {f"self_attn.{name}_proj": "colwise" for name in "qkv"}
PLAN |= {"self_attn.o_proj": "rowwise", "mlp.gate_proj": "colwise", "mlp.up_proj": "colwise", "mlp.down_proj": "rowwise"}
BATCH = {"input_ids": torch.ones(2, TOKENS, dtype=torch.long)}
ARCHITECTURE = dict(name="tiny", layers=LAYERS, hidden=HIDDEN, heads=HEADS, key_value_heads=KV, feed_forward=WIDTH, vocabulary=WORDS, sequence=TOKENS)
ARCHITECTURE |= dict(norm="rms", activation="swiglu", attention="fused", position="rotary", bias=False, tied_embedding=False)


def measured(model, times, **how):
    return pfeife.measure(model, BATCH, times=times, device="cpu", compile=False, repetitions=2, **how)


def bytes_of(rows):
    return {row["kind"]: row["parameter_bytes"] for row in rows}


# In a layer 2 x 32 x 32 + 2 x 32 x 16 of attention, 3 x 32 x 64 of the feed-forward part, two norms of 32, which are on each rank.
@pytest.mark.parametrize("tp", [1, 2])
def test_a_rank_has_its_part_of_each_layer(tp, tmp_path):
    model = Causal().bfloat16()
    before = {name: parameter.shape for name, parameter in model.named_parameters()}
    rows = measured(model, tmp_path / "layers.csv", mesh={"tp": tp})
    products = 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64
    assert bytes_of(rows) == {
        "embedding": 2 * WORDS * HIDDEN // tp,
        "attention+dense": 2 * (products // tp + 2 * HIDDEN),
        "head": 2 * (WORDS * HIDDEN // tp + HIDDEN),
    }
    assert [(row["microbatch"], row["sequence"], row["precision"], row["output_bytes"]) for row in rows][1] == (2, TOKENS, "bf16", 2 * 2 * TOKENS * HIDDEN)
    assert all(row["forward_ms"] > 0 for row in rows[1:2]) and rows[1]["saved_bytes"] > 0
    assert {name: parameter.shape for name, parameter in model.named_parameters()} == before
    assert len(model.model.layers) == LAYERS and model.config.use_cache


# What torch's own DTensor gives a rank of two, under its fake process group.
def test_parts_are_those_of_dtensor():
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    from pfeife._layer_times import Layout, sharded
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = Causal()
    layout = Layout(model)
    ours = sharded(layout.layers[0], layout, layout.prefix, 2)
    distributed.init_process_group("fake", rank=0, world_size=2, store=fake.FakeStore())
    try:
        styles = {name: ColwiseParallel() if style == "colwise" else RowwiseParallel() for name, style in PLAN.items()}
        theirs = parallelize_module(layout.layers[0], init_device_mesh("cpu", (2,)), styles)
        local = {name: getattr(value, "to_local", lambda value=value: value)().shape for name, value in theirs.named_parameters()}
    finally:
        distributed.destroy_process_group()
    assert {name: value.shape for name, value in ours.named_parameters()} == local


def test_rows_of_other_settings_stay_and_equal_ones_are_replaced(tmp_path):
    with torch.device("meta"):
        model = Causal().bfloat16()
    file = tmp_path / "layers.csv"
    for tp in (1, 2, 2):
        measured(model, file, mesh={"tp": tp})
    with open(file, newline="") as text:
        rows = list(csv.DictReader(text))
    assert [(row["kind"], row["tp"]) for row in rows] == [(kind, tp) for tp in "12" for kind in ("embedding", "attention+dense", "head")]


def test_meshes_are_planned_from_the_file(tmp_path):
    measured(Causal().bfloat16(), tmp_path / "layers.csv")
    how = dict(devices=2, batch=8, sequence=TOKENS, frame=False)
    with_times, without = (pfeife.mesh(ARCHITECTURE, "h100_sxm_hosts", **how, **more) for more in ({"times": tmp_path / "layers.csv"}, {}))
    assert with_times[0]["step_ms"] != without[0]["step_ms"]
    (tmp_path / "layers.csv").write_text((tmp_path / "layers.csv").read_text().replace(",2,16,", ",2,17,"))
    refused = pfeife.mesh(ARCHITECTURE, "h100_sxm_hosts", **how, times=tmp_path / "layers.csv")
    assert "has no times of embedding at tp 1" in refused[0]["lack"]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda model: model.tp_plan.update({"model.layers.*.mlp.up_proj": "packed_colwise"}), "mlp.up_proj by 'packed_colwise'"),
        (lambda model: model.tp_plan.clear(), "no plan of tensor parallelism"),
        (lambda model: setattr(model.config, "num_key_value_heads", 1), "tp 2 does not divide the 1 key and value heads"),
        (lambda model: setattr(model.config, "layer_types", ["linear_attention"] * LAYERS), "of type linear_attention"),
    ],
)
def test_what_cannot_be_measured_is_named(change, message, tmp_path):
    model = Causal()
    change(model)
    with pytest.raises(pfeife.ConfigError, match=message):
        measured(model, tmp_path / "layers.csv", mesh={"tp": 2})


def test_wishes_that_no_measurement_has_are_refused(tmp_path):
    with pytest.raises(pfeife.ConfigError, match="add times="):
        pfeife.measure(Causal(), BATCH, mesh={"tp": 2})
    with pytest.raises(pfeife.ConfigError, match="'pp' does not change a layer"):
        measured(Causal(), tmp_path / "layers.csv", mesh={"pp": 2})
    with pytest.raises(pfeife.ConfigError, match="without ep so far"):
        measured(Causal(), tmp_path / "layers.csv", mesh={"ep": 2})
    with pytest.raises(pfeife.ConfigError, match="no causal language model of transformers"):
        measured(nn.Linear(2, 2), tmp_path / "layers.csv")


def test_llama_of_transformers_shards_by_its_own_plan(tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=48)
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, tie_word_embeddings=False)).bfloat16()
    assert bytes_of(measured(model, tmp_path / "layers.csv", mesh={"tp": 2}))["attention+dense"] == 2 * ((3072 + 6144) // 2 + 64)
