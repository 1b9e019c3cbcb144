"""What export_test.sh has exported, read by the frameworks' own parsers; each must refuse or tell a broken one, too."""

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER, KEPT = Path(os.environ["FOLDER"]), Path(os.environ["KEPT"])
BLOCKS = 32  # of Llama 2 7B and Llama 3 8B
sys.path[:0] = [str(package) for package in KEPT.iterdir() if package.name != "deepspeed"]


def has(package):
    if not (KEPT / package / "ready").exists():
        print(f"skipped: {package}")
        return False
    return True


def plans(framework):
    return sorted(folder for folder in FOLDER.glob(f"{framework}_*") if (folder / "plan.yaml").exists())


def blocks_of_stages(plan):
    """[stage] How many blocks it has, by the names of the modules before the cuts in plan.yaml."""
    import yaml

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


def check_megatron():
    import warnings

    import torch

    warnings.simplefilter("ignore")
    from megatron.core.transformer import TransformerConfig
    from megatron.core.transformer.enums import LayerType

    def config(flags, **more):
        known = {flag[2:].replace("-", "_"): value for flag, value in flags.items()}
        values = {"pipeline_dtype": torch.bfloat16, "hidden_size": 64, "num_attention_heads": 4}
        for name in (
            "num_layers tensor_model_parallel_size pipeline_model_parallel_size sequence_parallel "
            "pipeline_model_parallel_layout bf16 recompute_granularity recompute_method recompute_num_layers"
        ).split():
            if name in known:
                value = known[name]
                values[name] = True if value is None else int(value) if value.isdigit() else value
        return TransformerConfig(**{**values, **more})

    for plan in plans("megatron"):
        words = subprocess.run(
            ["bash", "-c", f'. {plan}/megatron_args.sh; printf "%s\\n" "${{PLAN_ARGS[@]}}"'],
            check=True, capture_output=True, text=True,
        ).stdout.split()
        flags = {}
        for word in words:
            if word.startswith("--"):
                last, flags[word] = word, None
            else:
                flags[last] = word
        blocks, ranks = blocks_of_stages(plan)
        layout = config(flags).pipeline_model_parallel_layout.layout
        found = [layout[rank][ranks[:stage].count(rank)] for stage, rank in enumerate(ranks)]
        assert [stage.count(LayerType.decoder) for stage in found] == blocks, (found, blocks)
        assert found[0][0] == LayerType.embedding and found[-1][-1] == LayerType.loss
        text = flags["--pipeline-model-parallel-layout"]
        for broken in (text.replace("t", "", 1), text + "|t", text.replace("E", ""), text.replace("|", ",", 1)):
            assert refused(config, flags, pipeline_model_parallel_layout=broken), broken
        if "recompute" in flags:
            assert refused(config, flags, recompute_method=None)
    archive, mesh = ((FOLDER / f"megatron_{kind}/megatron_args.sh").read_text() for kind in ("archive", "mesh"))
    assert "--recompute-granularity full" in archive and "--recompute-granularity" not in mesh
    for flag in ("--tensor-model-parallel-size 2", "--use-distributed-optimizer", "--global-batch-size 32", "--bf16"):
        assert flag in mesh, flag


def names_of_stages(stages, blocks, embedding, head):
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


def check_torchtitan():
    import dataclasses
    import importlib.util
    import types

    import torch
    from torch.distributed.pipelining.schedules import ScheduleDualPipeV, ScheduleZBVZeroBubble, get_schedule_class
    from torchtitan.config import ConfigManager, ParallelismConfig, TrainingConfig

    source = KEPT / "torchtitan/torchtitan/distributed/pipeline_parallel.py"
    scope = cut_out(
        source,
        ["_get_pp_rank_to_stage_indices_mapping", "_split_module"],
        {"get_schedule_class": get_schedule_class, "ScheduleDualPipeV": ScheduleDualPipeV, "nn": torch.nn, "copy": __import__("copy"),
         "ScheduleZBVZeroBubble": ScheduleZBVZeroBubble, "ModuleDict": torch.nn.ModuleDict, "ModuleList": torch.nn.ModuleList},
    )

    @dataclasses.dataclass
    class Config:
        parallelism: ParallelismConfig = dataclasses.field(default_factory=ParallelismConfig)
        training: TrainingConfig = dataclasses.field(default_factory=TrainingConfig)
        activation_checkpoint: object = None
        hf_assets_path: str = ""

    base = types.ModuleType("base_of_plan")
    base.config = Config
    sys.modules["base_of_plan"] = base
    for plan in plans("torchtitan"):
        blocks, ranks = blocks_of_stages(plan)
        spec = importlib.util.spec_from_file_location("torchtitan_plan", plan / "torchtitan_plan.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.BASE = "base_of_plan:config"
        sys.modules["torchtitan_plan"] = module
        recompute, module.RECOMPUTE = module.RECOMPUTE, False  # its class needs more packages
        config = ConfigManager().parse_args(["--module", "torchtitan_plan", "--config", "planned"])
        assert recompute == ("recompute" in plan.name)
        parallelism = config.parallelism
        stages = parallelism.module_fqns_per_model_part
        names_of_stages(stages, blocks, "tok_embeddings", ["norm", "lm_head"])
        pp = parallelism.pipeline_parallel_degree
        assert pp == max(ranks) + 1 and config.training.disable_cuda_graphs
        if "mesh" in plan.name:
            assert config.training.seq_len == 8192 and parallelism.tensor_parallel_degree == 2
        # Where torchtitan puts the stages.
        for rank in range(pp):
            own = scope["_get_pp_rank_to_stage_indices_mapping"](rank, pp, parallelism.pipeline_parallel_schedule, len(stages))
            assert sorted(own) == [s for s, r in enumerate(ranks) if r == rank], (own, ranks)
        # What it keeps of a model for them: each parameter once.
        whole = torch.nn.Module()
        whole.tok_embeddings, whole.norm, whole.lm_head = torch.nn.Embedding(2, 2), torch.nn.LayerNorm(2), torch.nn.Linear(2, 2)
        whole.layers = torch.nn.ModuleDict({str(n): torch.nn.Linear(2, 2) for n in range(BLOCKS)})
        kept = [name for names in stages for name, _ in scope["_split_module"](whole, names).named_parameters()]
        assert sorted(kept) == sorted(name for name, _ in whole.named_parameters())
        if parallelism.pipeline_parallel_schedule_csv:
            torch_reads(Path(parallelism.pipeline_parallel_schedule_csv), ranks, blocks)
        # The main branch, whose sizes are tokens.
        newer = types.SimpleNamespace(parallelism=types.SimpleNamespace(num_pp_microbatches=1), training=types.SimpleNamespace())
        assert module.apply(newer).parallelism.num_pp_microbatches == module.MICROBATCHES
        module.PARALLELISM["pipeline_parallel_degre"] = 2
        assert refused(module.apply, Config())


def check_automodel():
    import yaml
    from nemo_automodel.recipes._dist_utils import parse_distributed_section
    from torch.distributed.pipelining.schedules import get_schedule_class

    for plan in plans("automodel"):
        blocks, ranks = blocks_of_stages(plan)
        recipe = yaml.safe_load((plan / "automodel.yaml").read_text())
        parsed = parse_distributed_section(recipe["distributed"])
        pipeline = parsed["pipeline_config"]
        assert parsed["pp_size"] == max(ranks) + 1
        stages = pipeline.module_fqns_per_model_part
        assert all(names.pop() == "model.rotary_emb" for names in stages)
        if "mesh" in plan.name:
            names_of_stages(stages, blocks, "model.embed_tokens", ["model.norm", "lm_head"])
            assert parsed["tp_size"] == 2 and parsed["dp_size"] == 2
        else:
            numbers = [name for names in stages for name in names if ".layers." in name]
            assert numbers == [f"model.layers.{n}" for n in range(BLOCKS)], numbers
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
        blocks, ranks = blocks_of_stages(plan)
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
