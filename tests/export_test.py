"""What export_test.sh has exported, read by the frameworks' own parsers; each must refuse or tell a broken one, too."""

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER, KEPT = Path(os.environ["FOLDER"]), Path(os.environ["KEPT"])
sys.path[:0] = [str(package) for package in KEPT.iterdir() if package.name != "deepspeed"]


def has(package):
    if not (KEPT / package / "ready").exists():
        print(f"skipped: {package}")
        return False
    return True


def plans(framework):
    return sorted(folder for folder in FOLDER.glob(f"{framework}_*") if (folder / "plan.yaml").exists())


# Published figures of the models: huggingface.co's config.json; parameters as transformers counts them.
MODELS = {
    "archive": {"layers": 32},  # Llama 2 7B
    "recompute": {"layers": 32},
    "mesh": {"layers": 32, "hidden": 4096, "heads": 32, "groups": 8, "width": 14336, "vocabulary": 128256, "parameters": 8030261248},
    "llama3_70b": {"layers": 80, "hidden": 8192, "heads": 64, "groups": 8, "width": 28672, "vocabulary": 128256, "parameters": 70553706496},
    "gpt_22b": {"layers": 48, "hidden": 6144, "heads": 64, "groups": 64, "width": 24576, "vocabulary": 51200},
    "mixtral": {"layers": 32, "hidden": 4096, "heads": 32, "groups": 8, "width": 14336, "vocabulary": 32000, "experts": (8, 2),
                "parameters": 46702792704},
    "qwen3_moe": {"layers": 48, "hidden": 2048, "heads": 32, "groups": 4, "width": 768, "vocabulary": 151936, "experts": (128, 8),
                  "parameters": 30532122624},
}
# [case] tp, cp, pp, dp, ep as export_test.sh asks for them; 32 sequences a step.
DEGREES = {
    "megatron_mesh": (2, 1, 4, 2, 1), "megatron_llama3_70b": (8, 1, 4, 1, 1), "megatron_gpt_22b": (4, 1, 4, 1, 1),
    "megatron_mixtral": (2, 1, 4, 4, 4), "megatron_qwen3_moe": (1, 1, 4, 4, 4),
    "torchtitan_mesh": (2, 1, 4, 2, 1), "torchtitan_llama3_70b": (8, 1, 4, 1, 1),
    "torchtitan_mixtral": (1, 1, 4, 4, 4), "torchtitan_qwen3_moe": (1, 1, 4, 4, 2),
    "automodel_mesh": (2, 1, 4, 2, 1), "automodel_qwen3_moe": (1, 1, 4, 4, 4),
    "deepspeed_mesh": (1, 1, 4, 4, 1), "deepspeed_qwen3_moe": (1, 1, 4, 4, 1),
}  # fmt: skip


def model_of(plan):
    return MODELS[plan.name.partition("_")[2]]


def launched(plan):
    """What launch.sh gives to torchrun, after its hosts, which are compared; and the environment."""
    words = (plan / "launch.txt").read_text().splitlines()
    variables = dict(line.partition("=")[::2] for line in (plan / "launch.txt.env").read_text().splitlines())
    hosts = dict(zip(words[0:10:2], words[1:10:2]))
    tp, cp, pp, dp, _ = DEGREES.get(plan.name, (1, 1, 4, 1, 1))
    devices = tp * cp * pp * dp
    far = plan.name in DEGREES
    assert hosts == {
        "--nnodes": str(max(1, devices // 8)), "--nproc-per-node": str(min(8, devices)), "--node-rank": "1" if far else "0",
        "--master-addr": "host7" if far else "localhost", "--master-port": "29500",
    }, hosts  # fmt: skip
    assert words[-2:] == ["--own", "1"]
    return words[10:-2], variables, "7" if far else "20"


def blocks_of_stages(plan):
    """[stage] How many blocks it has, by the names of the modules before the cuts in plan.yaml."""
    import yaml

    BLOCKS = model_of(plan)["layers"]
    written = yaml.safe_load((plan / "plan.yaml").read_text())
    ends = [0]
    for module in written["cut_modules"]:
        number = re.search(r"\.(\d+)(\.|$)", module)
        ends.append(int(number[1]) + 1 if number else 0 if "embed" in module else BLOCKS)
    ends.append(BLOCKS)
    return [end - begin for begin, end in zip(ends, ends[1:])], written["placement"]["rank_of_stage"]


def refused(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception:
        return True
    return False


def arguments_of_megatron(words, devices):
    """Megatron-LM's own argument checks, where MEGATRON_LM names a checkout: its programs are in no package."""
    checkout = os.environ.get("MEGATRON_LM")
    if not checkout:
        return print("skipped: Megatron-LM's argument checks; set MEGATRON_LM to a checkout")
    # Without a GPU, Transformer Engine and Triton: what Megatron-LM imports of them, and asks of a device.
    program = """
import sys, typing
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock

class Absent:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in ("six", "triton") else None
    def create_module(self, spec):
        module = MagicMock(__version__="3")
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        return module
    def exec_module(self, module):
        pass

import torch, typing_extensions
typing.override = typing_extensions.override
sys.meta_path.insert(0, Absent())
sys.path.insert(0, sys.argv.pop(1))
torch.cuda.get_device_capability = lambda *_: (9, 0)
torch.cuda.get_device_properties = lambda *_: MagicMock(major=9, minor=0)
torch.cuda.current_device = lambda: 0
from megatron.training import arguments
arguments.core_transformer_config_from_args(arguments.validate_args(arguments.parse_args(), {}))
"""
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": str(devices), "CUDA_DEVICE_MAX_CONNECTIONS": "1", "PYTHONPATH": ":".join(sys.path)}

    def runs(arguments):
        return subprocess.run([sys.executable, "-c", program, checkout, *arguments, "--no-rope-fusion"], env=environment, capture_output=True, text=True)

    taken = runs(words)
    assert taken.returncode == 0, taken.stderr[-2000:]
    assert runs([*words, "--num-layers", "7"]).returncode


def check_megatron():
    import warnings

    import torch

    warnings.simplefilter("ignore")
    from megatron.core.transformer import TransformerConfig
    from megatron.core.transformer.enums import LayerType

    def config(flags, **more):
        known = {flag[2:].replace("-", "_"): value for flag, value in flags.items()}
        values = {"pipeline_dtype": torch.bfloat16, "hidden_size": 64, "num_attention_heads": 4}
        if "num_experts" in known:
            known["num_moe_experts"] = known["num_experts"]
            known["add_bias_linear"] = ""
        for name in (
            "num_layers tensor_model_parallel_size pipeline_model_parallel_size sequence_parallel hidden_size "
            "num_attention_heads num_query_groups ffn_hidden_size kv_channels expert_model_parallel_size num_moe_experts "
            "moe_ffn_hidden_size moe_router_topk moe_token_dispatcher_type moe_grouped_gemm add_bias_linear "
            "pipeline_model_parallel_layout bf16 recompute_granularity recompute_method recompute_num_layers"
        ).split():
            if name in known:
                value = known[name]
                values[name] = True if value is None else int(value) if value.isdigit() else value
        return TransformerConfig(**{**values, **more})

    for plan in plans("megatron"):
        (program, *words), variables, steps = launched(plan)
        assert program == f"{FOLDER}/Megatron-LM/pretrain_gpt.py" and variables["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
        assert variables["PYTHONPATH"].startswith(f"{FOLDER}/Megatron-LM")
        flags, model = {}, model_of(plan)
        for word in words:
            if word.startswith("--"):
                assert word not in flags, word
                last, flags[word] = word, None
            else:
                flags[last] = word if flags[last] is None else flags[last] + " " + word
        assert flags["--train-iters"] == steps and "--mock-data" in flags
        if plan.name in DEGREES:
            tp, _, pp, dp, ep = DEGREES[plan.name]
            wanted = {
                "tensor-model-parallel-size": tp, "pipeline-model-parallel-size": pp, "num-layers": model["layers"],
                "hidden-size": model["hidden"], "num-attention-heads": model["heads"], "ffn-hidden-size": model["width"],
                "vocab-size": model["vocabulary"] - 1, "global-batch-size": 32, "micro-batch-size": 1, "seq-length": 2048,
            }  # fmt: skip
            if "experts" in model:
                wanted |= {"num-experts": model["experts"][0], "moe-router-topk": model["experts"][1],
                           "moe-ffn-hidden-size": model["width"], "expert-model-parallel-size": ep}
            if model["groups"] != model["heads"]:
                wanted["num-query-groups"] = model["groups"]
            assert not {name: flags.get(f"--{name}") for name, value in wanted.items() if flags.get(f"--{name}") != str(value)}
            assert ("--num-experts" in flags) == ("experts" in model) and ("--swiglu" in flags) == (model["width"] != 24576)
            assert ("--use-distributed-optimizer" in flags) == ("gpt" not in plan.name)
            assert ("--untie-embeddings-and-output-weights" in flags) == ("gpt" not in plan.name)
            assert ("--qk-layernorm" in flags) == ("qwen3" in plan.name)
            arguments_of_megatron(words, tp * pp * dp)
        else:
            assert flags["--hidden-size"] == "4096"  # the user's MODEL_ARGS
        blocks, ranks = blocks_of_stages(plan)
        layout = config(flags).pipeline_model_parallel_layout.layout
        found = [layout[rank][ranks[:stage].count(rank)] for stage, rank in enumerate(ranks)]
        assert [stage.count(LayerType.decoder) for stage in found] == blocks, (found, blocks)
        assert found[0][0] == LayerType.embedding and found[-1][-1] == LayerType.loss
        text = flags["--pipeline-model-parallel-layout"]
        for broken in (text.replace("t", "", 1), text + "|t", text.replace("E", ""), text.replace("|", ",", 1)):
            assert refused(config, flags, pipeline_model_parallel_layout=broken), broken
        if flags.get("--recompute-granularity") == "full":
            assert refused(config, flags, recompute_method=None)
    recomputed = {plan.name: re.findall(r"--recompute-granularity (\w+)", (plan / "megatron_args.sh").read_text()) for plan in plans("megatron")}
    assert recomputed["megatron_archive"] == recomputed["megatron_mixtral"] == ["full"] and recomputed["megatron_mesh"] == []
    assert recomputed["megatron_llama3_70b"] == ["full"]


def names_of_stages(stages, blocks, embedding, head, BLOCKS):
    """A stage names what it has: the embedding first, each block once and in order, norm and head last."""
    numbers = [[int(name.rpartition(".")[2]) for name in names if re.search(r"layers\.\d+$", name)] for names in stages]
    assert [len(one) for one in numbers] == blocks, (numbers, blocks)
    assert sum(numbers, []) == list(range(BLOCKS))
    assert stages[0][0] == embedding and stages[-1][-len(head) :] == head, (stages[0], stages[-1])
    assert sum(embedding in names for names in stages) == 1 and sum(head[-1] in names for names in stages) == 1


def torch_reads(csv, ranks, blocks):
    """torch's runtime takes the rows for stages that lie where the plan has them."""
    import torch
    from torch.distributed import destroy_process_group, init_process_group
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
    from torch.testing._internal.distributed.fake_pg import FakeStore

    init_process_group("fake", rank=0, world_size=max(ranks) + 1, store=FakeStore())
    try:
        microbatches = 1 + max(int(n) for n in re.findall(r"\d+[FBIW](\d+)", csv.read_text()))
        own = [PipelineStage(torch.nn.Linear(1, 1), s, len(ranks), torch.device("cpu")) for s, r in enumerate(ranks) if r == 0]
        schedule = _PipelineScheduleRuntime(own, microbatches, loss_fn=lambda *_: None)
        schedule._load_csv(str(csv))
        for rank, row in schedule.pipeline_order.items():
            assert {action.stage_index for action in row if action} == {s for s, r in enumerate(ranks) if r == rank}
        broken = csv.with_name("broken.csv")
        broken.write_text("".join(csv.read_text().splitlines(True)[1:]))
        assert refused(schedule._load_csv, str(broken))
        broken.write_text(re.sub(r"^([^,]*),", "", csv.read_text(), count=1))  # an action is missing
        assert refused(schedule._load_csv, str(broken))
    finally:
        destroy_process_group()


def cut_out(file, names, scope):
    """Functions of a file without what it imports."""
    import ast

    wanted = [node for node in ast.walk(ast.parse(file.read_text())) if getattr(node, "name", None) in names]
    assert {node.name for node in wanted} == set(names), file
    exec(compile(ast.Module(wanted, []), str(file), "exec"), scope)
    return scope


class Absent:
    """Finds packages that torchtitan imports and no check of ours needs."""

    ROOTS = ("absl", "tensorboard", "datasets", "jinja2", "wandb", "PIL", "torch_checkpointing", "tokenizers")

    def find_spec(self, name, path=None, target=None):
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.ROOTS else None

    def create_module(self, spec):
        from unittest.mock import MagicMock

        module = MagicMock()
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        return module

    def exec_module(self, module):
        pass


def check_torchtitan():
    import dataclasses
    import importlib.util
    from unittest.mock import MagicMock

    import torch
    import torch.distributed.fsdp

    # What a newer torch has, and kernels that need Triton.
    absent = Absent()
    sys.meta_path.insert(0, absent)
    torch.distributed.fsdp.DataParallelMeshDims = getattr(torch.distributed.fsdp, "DataParallelMeshDims", MagicMock())
    sys.modules["torch.utils.tensorboard"] = sys.modules["torchtitan.distributed.minimal_async_ep.kernels"] = MagicMock()
    from torchtitan.config import ConfigManager
    from torchtitan.distributed import pipeline_parallel
    from torchtitan.distributed.parallel_dims import ParallelDims
    from torchtitan.models.llama3.config_registry import llama3_8b
    from torchtitan.trainer import Trainer

    base = sys.modules["base_of_plan"] = type(sys)("base_of_plan")
    base.config = lambda: dataclasses.replace(llama3_8b(), hf_assets_path="")
    for plan in plans("torchtitan"):
        model, (blocks, ranks) = model_of(plan), blocks_of_stages(plan)
        words, variables, steps = launched(plan)
        assert words == ["-m", "torchtitan.train", "--module", "torchtitan_plan", "--config", "planned", "--training.steps", steps]
        assert variables["PYTHONPATH"].split(":")[0] == str(plan)
        os.environ["TORCHTITAN_BASE"] = "base_of_plan:config"
        spec = importlib.util.spec_from_file_location("torchtitan_plan", plan / "torchtitan_plan.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules["torchtitan_plan"] = module
        config = ConfigManager().parse_args(words[2:])
        assert isinstance(config, Trainer.Config) and config.training.steps == int(steps)
        whole_blocks = type(config.activation_checkpoint).__qualname__ if config.activation_checkpoint else ""
        assert (whole_blocks == "FullAC.Config") == module.RECOMPUTE == (plan.name != "torchtitan_mesh")
        parallelism, training = config.parallelism, config.training
        stages = parallelism.module_fqns_per_model_part
        names_of_stages(stages, blocks, "tok_embeddings", ["norm", "lm_head"], model["layers"])
        pp = parallelism.pipeline_parallel_degree
        assert pp == max(ranks) + 1 and training.disable_cuda_graphs and training.mixed_precision_param == "bfloat16"
        if plan.name in DEGREES:
            tp, cp, degree, dp, ep = DEGREES[plan.name]
            assert (training.seq_len, training.global_batch_size, degree) == (2048, 32, pp)
            ParallelDims.from_config(parallelism, tp * cp * pp * dp)
            assert (parallelism.tensor_parallel_degree, parallelism.expert_parallel_degree) == (tp, ep)
            assert parallelism.data_parallel_replicate_degree * parallelism.data_parallel_shard_degree == dp
            # The planned model: torchtitan checks it beside its parallelism, and builds it.
            planned = config.model_spec.model
            planned.update_from_config(config=config)
            with torch.device("meta"):
                built = planned.build()
            assert sum(parameter.numel() for parameter in built.parameters()) == model["parameters"], plan.name
            assert len(planned.layers) == model["layers"] and planned.vocab_size == model["vocabulary"]
            assert (planned.layers[0].moe is not None) == ("experts" in model)
            if "experts" in model:
                assert (planned.layers[0].moe.num_experts, planned.layers[0].moe.router.top_k) == model["experts"]
                assert (planned.layers[0].attention.qk_norm is not None) == (plan.name == "torchtitan_qwen3_moe")
            # Tokens are made up.
            data = iter(config.dataloader.build(dp_world_size=dp, dp_rank=0, tokenizer=None, seq_len=8, local_batch_size=2))
            batch, labels = next(data)
            assert batch["input"].shape == labels.shape == batch["positions"].shape == (2, 8)
            assert torch.equal(batch["input"][:, 1:], labels[:, :-1]) and not torch.equal(next(data)[1], labels)
            assert config.tokenizer.build(tokenizer_path="").get_vocab_size() == model["vocabulary"]
            del built
        # Where torchtitan puts the stages.
        for rank in range(pp):
            own = pipeline_parallel._get_pp_rank_to_stage_indices_mapping(
                rank, pp, parallelism.pipeline_parallel_schedule, len(stages))
            assert sorted(own) == [s for s, r in enumerate(ranks) if r == rank], (own, ranks)
        # What it keeps of a model for them: each parameter once.
        whole = torch.nn.Module()
        whole.tok_embeddings, whole.norm, whole.lm_head = torch.nn.Embedding(2, 2), torch.nn.LayerNorm(2), torch.nn.Linear(2, 2)
        whole.layers = pipeline_parallel.ModuleDict({str(n): torch.nn.Linear(2, 2) for n in range(model["layers"])})
        kept = [name for names in stages for name, _ in pipeline_parallel._split_module(whole, names).named_parameters()]
        assert sorted(kept) == sorted(name for name, _ in whole.named_parameters())
        if parallelism.pipeline_parallel_schedule_csv:
            torch_reads(Path(parallelism.pipeline_parallel_schedule_csv), ranks, blocks)
        # The main branch, whose sizes are tokens.
        newer = type(sys)("newer")
        newer.parallelism, newer.training = type(sys)("parallelism"), type(sys)("training")
        newer.parallelism.num_pp_microbatches = 1
        assert module.apply(newer).parallelism.num_pp_microbatches == module.MICROBATCHES
        module.BLOCKS += 1  # another model
        assert refused(module.planned)
        module.BLOCKS -= 1
        module.PARALLELISM["pipeline_parallel_degre"] = 2
        assert refused(module.planned)
    sys.meta_path.remove(absent)
    for name in [name for name in sys.modules if name.split(".")[0] in Absent.ROOTS]:
        del sys.modules[name]


def exists(section):
    """Each _target_ of the framework is a name that its file defines."""
    import ast

    for key, value in section.items():
        if isinstance(value, dict):
            exists(value)
        elif key == "_target_" and value.startswith("nemo_automodel.components"):
            module, _, name = value.rpartition(".")
            tree = ast.parse((KEPT / "nemo-automodel" / (module.replace(".", "/") + ".py")).read_text())
            assert name in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}, value


def check_config(plan, model):
    """config.json has the sizes of the model; where transformers is at hand, so many parameters."""
    import json

    written = json.loads((plan / "config.json").read_text())
    experts = "experts" in model
    qwen = written["model_type"] == "qwen3_moe"
    found = {"layers": written["num_hidden_layers"], "hidden": written["hidden_size"], "heads": written["num_attention_heads"],
             "groups": written["num_key_value_heads"], "vocabulary": written["vocab_size"],
             "width": written["moe_intermediate_size" if qwen else "intermediate_size"]}
    if experts:
        found["experts"] = (written["num_experts" if qwen else "num_local_experts"], written["num_experts_per_tok"])
    assert found | {"parameters": model["parameters"]} == model, found
    if not has("transformers"):
        return
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        built = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(plan))
    assert sum(parameter.numel() for parameter in built.parameters()) == model["parameters"]


def check_automodel():
    import yaml
    from nemo_automodel.recipes._dist_utils import parse_distributed_section
    from torch.distributed.pipelining.schedules import get_schedule_class

    from nemo_automodel.cli.utils import resolve_recipe_name

    for plan in plans("automodel"):
        model, (blocks, ranks) = model_of(plan), blocks_of_stages(plan)
        words, variables, steps = launched(plan)
        wanted = ["-m", "nemo_automodel.cli.app", "automodel.yaml", "--step_scheduler.max_steps", steps]
        far = plan.name in DEGREES
        assert words == wanted + ([] if far else ["--model.pretrained_model_name_or_path", "llama"]), words
        assert variables["PWD"] == str(plan)  # the recipe names its files from there
        recipe = yaml.safe_load((plan / "automodel.yaml").read_text())
        assert resolve_recipe_name(recipe["recipe"]) and refused(resolve_recipe_name, recipe["recipe"] + "s")
        exists(recipe)
        parsed = parse_distributed_section(recipe["distributed"])
        pipeline = parsed["pipeline_config"]
        assert parsed["pp_size"] == max(ranks) + 1
        stages = pipeline.module_fqns_per_model_part
        assert all(names.pop() == "model.rotary_emb" for names in stages)
        if far:
            names_of_stages(stages, blocks, "model.embed_tokens", ["model.norm", "lm_head"], model["layers"])
            tp, _, pp, dp, ep = DEGREES[plan.name]
            assert (parsed["tp_size"], parsed["pp_size"], parsed["dp_size"], parsed["ep_size"]) == (tp, pp, dp, ep)
            check_config(plan, model)
            assert (recipe["dataset"]["seq_len"], recipe["dataset"]["vocab_size"]) == (2048, model["vocabulary"])
            assert recipe["dataset"]["batch_size"] == recipe["step_scheduler"]["local_batch_size"]
            assert recipe["step_scheduler"]["global_batch_size"] == 32
        else:
            numbers = [name for names in stages for name in names if ".layers." in name]
            assert numbers == [f"model.layers.{n}" for n in range(model["layers"])], numbers
            assert "model.embed_tokens" in stages[0] and {"model.norm", "lm_head"} <= set(stages[-1])
        multi = len(stages) > parsed["pp_size"]
        assert ("MultiStage" in str(get_schedule_class(pipeline.pp_schedule).__mro__) or "Multi" in str(
            get_schedule_class(pipeline.pp_schedule).__mro__)) == multi
        size = recipe["step_scheduler"]["local_batch_size"]
        assert size % pipeline.pp_microbatch_size == 0
        if pipeline.pp_schedule_csv:
            torch_reads(plan / pipeline.pp_schedule_csv, ranks, blocks)
        assert refused(parse_distributed_section, {**recipe["distributed"], "pp_schedule": "1f1b"})
        assert refused(parse_distributed_section, {**recipe["distributed"], "pipeline": {"modules": stages}})


def layers_of_transformers(module, model):
    """The planned model's layers take one another's outputs, and have all of its parameters."""
    import torch

    class LayerSpec:
        def __init__(self, typename, *arguments):
            self.typename, self.arguments = typename, arguments

        def build(self):
            return self.typename(*self.arguments)

    sys.modules["deepspeed.pipe"].LayerSpec = LayerSpec
    parameters, value = 0, torch.zeros((1, 16), dtype=torch.long, device="meta")
    with torch.device("meta"):
        for spec in module.marked(module.layers()):
            layer = spec.build()
            parameters += sum(parameter.numel() for parameter in layer.parameters())
            value = layer(value) if "experts" not in model else value  # routers need values
    assert "experts" in model or value.shape == (1, 16, model["vocabulary"])
    assert parameters == model["parameters"]
    tokens, labels = next(module.tokens())
    assert tokens.shape == labels.shape == (1, 2048) and torch.equal(tokens[:, 1:], labels[:, :-1])
    assert module.loss(torch.zeros(1, 4, 10), torch.zeros(1, 4, dtype=torch.long)).item() - 2.302585 < 1e-4


def check_deepspeed():
    import importlib.util
    import types

    import torch

    sources = KEPT / "deepspeed/deepspeed/runtime"
    utils = cut_out(sources / "utils.py", ["prefix_sum_inc", "partition_uniform", "partition_balanced"], {})

    class LayerSpec:
        def __init__(self, typename):
            self.typename = typename

    scope = {"regex": re, "nn": torch.nn, "LayerSpec": LayerSpec, "logger": types.SimpleNamespace(info=lambda *_: None),
             "ds_utils": types.SimpleNamespace(**{name: utils[name] for name in ("partition_uniform", "partition_balanced")})}
    cut_out(sources / "pipe/module.py", ["_partition_layers", "_find_layer_type"], scope)

    class PipelineModule:
        _partition_layers, _find_layer_type = scope["_partition_layers"], scope["_find_layer_type"]
        global_rank, loss_fn = 1, None
        _topo = types.SimpleNamespace(get_coord=lambda rank: types.SimpleNamespace(pipe=rank))

        def __init__(self, layers, num_stages, partition_method, activation_checkpoint_interval):
            self._layer_specs, self.num_stages = layers, num_stages
            self._set_bounds = lambda start, stop: None
            self._partition_layers(method=partition_method)

    package, pipe = types.ModuleType("deepspeed"), types.ModuleType("deepspeed.pipe")
    pipe.PipelineModule = PipelineModule
    sys.modules.update({"deepspeed": package, "deepspeed.pipe": pipe})

    class Block(torch.nn.Module):
        pass

    for plan in plans("deepspeed"):
        model, (blocks, ranks) = model_of(plan), blocks_of_stages(plan)
        BLOCKS = model["layers"]
        words, variables, steps = launched(plan)
        assert words == [f"{plan}/deepspeed_plan.py", steps]
        if plan.name in DEGREES:
            check_config(plan, model)
        else:
            assert variables["LAYERS"] == "own"
        spec = importlib.util.spec_from_file_location("deepspeed_plan", plan / "deepspeed_plan.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        ends, total = [0], 1
        for count in blocks:
            total += count
            ends.append(total)
        ends[-1] += 1  # the head
        for layers in ([Block() for _ in range(BLOCKS + 2)], [LayerSpec(Block) for _ in range(BLOCKS + 2)]):
            assert [int(n) for n in module.pipeline(layers).parts] == ends, ends
        assert refused(module.pipeline, [Block()] * 3)
        if plan.name in DEGREES and (KEPT / "transformers/ready").exists():
            layers_of_transformers(module, model)
        assert module.CONFIG["gradient_accumulation_steps"] * module.CONFIG["train_micro_batch_size_per_gpu"] * (
            DEGREES.get(plan.name, (1, 1, 1, 1))[3]) == (32 if plan.name in DEGREES else 8 * module.CONFIG["train_micro_batch_size_per_gpu"])
        module.FIRST_LAYERS[1] += 1
        assert [int(n) for n in module.pipeline([Block() for _ in range(BLOCKS + 2)]).parts] != ends
        assert module.CONFIG["gradient_accumulation_steps"] > 0


def chakra_messages():
    """Messages of Chakra's schema as far as traces have them, described here."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="chakra", syntax="proto3")

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for field, number, kind, *rest in fields:
            repeated = "repeated" in rest
            added = made.field.add(name=field, number=number, type=getattr(kinds, f"TYPE_{kind}"),
                                   label=kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL)
            if kind == "MESSAGE":
                added.type_name = ".chakra.Attribute"
            if name == "Attribute" and number > 1:
                added.oneof_index = 0
        if name == "Attribute":
            made.oneof_decl.add(name="value")

    message("Attribute", ("name", 1, "STRING"), ("int32", 7, "INT32"), ("int64", 9, "INT64"), ("uint64", 13, "UINT64"),
            ("truth", 27, "BOOL"), ("text", 29, "STRING"))
    message("Metadata", ("version", 1, "STRING"))
    message("Node", ("id", 1, "UINT64"), ("name", 2, "STRING"), ("type", 3, "INT32"), ("data_deps", 5, "UINT64", "repeated"),
            ("duration", 7, "UINT64"), ("attributes", 10, "MESSAGE", "repeated"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(f"chakra.{name}")) for name in ("Metadata", "Node")]


def chakra_nodes(content):
    """Length, message, length, message: the metadata, then nodes."""
    from google.protobuf.internal.decoder import _DecodeVarint32
    from google.protobuf.unknown_fields import UnknownFieldSet

    metadata, node = chakra_messages()
    found, at = [], 0
    while at < len(content):
        size, at = _DecodeVarint32(content, at)
        assert at + size <= len(content)
        found.append((node if found else metadata).FromString(content[at : at + size]))
        at += size
    assert found[0].version and not any(len(UnknownFieldSet(one)) for one in found)
    return found[1:]


def check_chakra():
    COMPUTE, SEND, RECEIVE = 4, 5, 6
    for plan in plans("chakra"):
        rows = (plan / "schedule.csv").read_text().splitlines()
        sent, received = {}, {}
        traces = [chakra_nodes((plan / f"plan.{rank}.et").read_bytes()) for rank in range(len(rows))]
        for rank, (nodes, row) in enumerate(zip(traces, rows)):
            assert [node.name for node in nodes] == row.split(",")
            assert [node.id for node in nodes] == list(range(len(nodes)))
            last = None
            for node in nodes:
                has = {one.name: getattr(one, one.WhichOneof("value")) for one in node.attributes}
                assert has["is_cpu_op"] is False
                assert all(need < node.id for need in node.data_deps)
                if node.type == COMPUTE:
                    assert last is None or last in node.data_deps
                    last = node.id
                    continue
                own, other, ends = ("comm_src", "comm_dst", sent) if node.type == SEND else ("comm_dst", "comm_src", received)
                assert has[own] == rank
                message = (has["comm_src"], has["comm_dst"], has["comm_tag"])
                assert message not in ends and has["comm_size"] > 0
                ends[message] = has["comm_size"]
            assert any(node.duration > 0 for node in nodes if node.type == COMPUTE)
        assert sent and sent == received
        # Replayed with messages that take no time, the step is not longer than the plan's, and most of it.
        done, clocks, at = {}, [0] * len(rows), [0] * len(rows)
        arrived = {}
        while any(at[r] < len(nodes) for r, nodes in enumerate(traces)):
            moved = False
            for rank, nodes in enumerate(traces):
                while at[rank] < len(nodes):
                    node = nodes[at[rank]]
                    has = {one.name: getattr(one, one.WhichOneof("value")) for one in node.attributes}
                    message = (has.get("comm_src"), has.get("comm_dst"), has.get("comm_tag"))
                    if node.type == RECEIVE and message not in arrived:
                        break
                    start = max([done[rank, need] for need in node.data_deps], default=0)
                    if node.type == RECEIVE:
                        start = max(start, arrived[message])
                    done[rank, node.id] = start + (node.duration if node.type == COMPUTE else 0)
                    if node.type == SEND:
                        arrived[message] = done[rank, node.id]
                    at[rank] += 1
                    moved = True
            assert moved, "the traces wait for one another"
        step = max(done.values()) * 1000
        written = int(re.search(r"step: (\d+) ns", (plan / "plan.yaml").read_text())[1])
        assert 0.8 * written < step <= 1.001 * written, (step, written)
        assert refused(chakra_nodes, (plan / "plan.0.et").read_bytes()[:-1])


CHECKS = {
    "megatron-core": check_megatron,
    "torchtitan": check_torchtitan,
    "nemo-automodel": check_automodel,
    "deepspeed": check_deepspeed,
    "protobuf": check_chakra,
}
for package, check in CHECKS.items():
    if has(package):
        check()
        print(f"{package}: accepted")
