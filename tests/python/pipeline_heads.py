"""Ranks that share a model's head, each with a part of the words, beside the plain module.

Usage: pipeline_heads.py RANKS FOLDER, as pipeline_ranks.py; test_shared_head.py judges it.
"""

import contextlib
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint
import torch.nn.functional as F
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import pfeife
from pfeife._pipeline import Pipeline
from pfeife._shared_head import FAMILIES
from pipeline_models import TinyGPT
from pipeline_ranks import SEED, Context, difference, planned, run


class GPT(TinyGPT):
    """kind: "tied"; "untied"; "bias"; "shifted": labels are those of the next position, logits are also returned."""

    def __init__(self, kind):
        super().__init__(blocks=8)
        if kind not in ("tied", "shifted"):
            self.head = nn.Linear(8, 11, bias=kind == "bias")
        self.kind = kind

    def forward(self, tokens, labels):
        batch, length = tokens.shape
        h = self.embedding(tokens) + self.position(torch.arange(length, device=tokens.device))
        for block in self.blocks:
            q, k, v = block["qkv"](block["before"](h)).view(batch, length, 3, 2, -1).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + block["out"](mixed.transpose(1, 2).reshape(batch, length, -1))
            left, right = block["up"](block["between"](h)).chunk(2, -1)
            h = h + block["down"](F.gelu(left) * right)
        scores = self.head(h)
        if self.kind == "shifted":
            scores = scores.float() if scores.dtype == torch.bfloat16 else scores
            return {"loss": F.cross_entropy(scores[:, :-1].contiguous().view(-1, 11), labels[:, 1:].reshape(-1)), "logits": scores}
        return F.cross_entropy(scores.flatten(0, 1), labels.flatten())


KINDS = ("tied", "untied", "bias", "shifted")


def made(kind):
    torch.manual_seed(SEED)
    return GPT(kind).double()


def batch_of(samples, seed):
    """Microbatches have different counts of labels, of which some have none."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(11, (samples, 6), generator=generator)
    labels[::3, 2:] = -100
    labels[:2] = -100
    return {"tokens": torch.randint(11, (samples, 6), generator=generator), "labels": labels}


def loss_of(returned):
    return returned["loss"] if isinstance(returned, dict) else returned


def own_words(pipe, name, tensor):
    divided = pipe._head is not None and name in pipe._head.names and not pipe._head.holds_all
    return pipe._head.own.of_tensor(tensor) if divided and tensor is not None else tensor


def far(pipe, module, what=lambda parameter: parameter.grad):
    wanted = dict(module.named_parameters())
    return max(difference(what(own), own_words(pipe, name, what(wanted[name]))) for name, own in pipe.named_parameters())


class Heads(Context):
    def __init__(self, ranks, folder):
        super().__init__(ranks, folder)
        self.microbatches = 2 * ranks
        self.planned = {}
        for kind in KINDS:
            captured = pfeife.capture(made(kind), **batch_of(2 * self.microbatches, 0), microbatches=self.microbatches)
            self.planned[kind] = captured, planned(captured, "1f1b", ranks, self.microbatches)

    def piped(self, kind, family, own=None, **how):
        """A pipeline of a module of its own, on a plan that all ranks know."""
        own = own or made(kind)
        plan = self.planned[kind][1]
        plan.capture = pfeife.capture(own, **batch_of(2 * self.microbatches, 0), microbatches=self.microbatches)
        return Pipeline(own, plan, seed=SEED, schedule=family, **how)


def family_case(kind, family):
    def work(context):
        module, own = made(kind), made(kind)
        holder = 0 if kind in ("tied", "shifted") else context.ranks - 1
        if context.rank != holder:  # its words come from the rank that has all of them in a pipeline without shared head
            with torch.no_grad():
                own.head.weight += 1
        pipe = context.piped(kind, family, own)
        ours, plain = (torch.optim.AdamW(parameters, lr=1e-2) for parameters in (pipe.parameters(), module.parameters()))
        found = {}
        for number, samples in enumerate((0, 1, 0)):
            batch = batch_of(2 * context.microbatches + samples, number)
            loss = pipe.step(**batch)
            wanted = loss_of(module(**batch))
            wanted.backward()
            now = {"loss": difference(loss, wanted), "gradients": far(pipe, module)}
            now["norm"] = difference(pipe.clip_grad_norm_(0.5), torch.nn.utils.clip_grad_norm_(module.parameters(), 0.5))
            for optimizer in (ours, plain):
                optimizer.step()
                optimizer.zero_grad()
            now["weights"] = far(pipe, module, lambda parameter: parameter)
            with torch.no_grad():
                now["evaluation"] = difference(pipe.evaluate(**batch), loss_of(module(**batch)))
            found = {what: max(value, found.get(what, 0.0)) for what, value in now.items()}
            module.load_state_dict(gathered(pipe, module))  # so that rounding does not add up
        checked = pipe.check(**batch)
        found["checked"] = max(abs(checked.loss - checked.plain_loss), *checked.gradients.values())
        return found

    return work


def gathered(pipe, module):
    """The state of the unsplit module, of all ranks' states."""
    state = dict(module.state_dict())
    for of_rank in pipe._messages.all({name: tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor for name, tensor in pipe.state_dict().items()}):
        state.update(of_rank)
    return state


def accumulates(context):
    """Steps without sums over ranks, then one with them, add up; so do steps behind it."""
    found = {}
    for kind in ("tied", "untied"):
        module, pipe = made(kind), context.piped(kind, "vocab_2")
        for number in range(4):
            batch = batch_of(2 * context.microbatches, number)
            with pipe.no_sync() if number in (0, 2) else contextlib.nullcontext():
                pipe.step(**batch)
            loss_of(module(**batch)).backward()
        found[kind] = far(pipe, module)
    return found


def checkpoints(context):
    """A checkpoint has the names and sizes of the unsplit module, and goes on under a plan without shared head, and back."""
    found = {}
    for kind in ("tied", "bias"):
        pipe, batch = context.piped(kind, "vocab_1"), batch_of(2 * context.microbatches, 0)
        with torch.no_grad():
            for parameter in pipe.parameters():
                parameter.mul_(1.5)
        loss, folder = pipe.evaluate(**batch), context.folder / f"checkpoint_{kind}"
        torch.distributed.checkpoint.save(pipe.state_dict(), checkpoint_id=folder)
        for family in (None, "interlaced"):
            second = context.piped(kind, family)
            state = second.state_dict()
            torch.distributed.checkpoint.load(state, checkpoint_id=folder)
            second.load_state_dict(state)
            found[f"{kind} {family}"] = difference(second.evaluate(**batch), loss)
        whole = made(kind).state_dict()
        torch.distributed.checkpoint.load(whole, checkpoint_id=folder)
        third = context.piped(kind, "vocab_2")
        third.load_state_dict(whole)
        found[f"{kind} whole"] = difference(third.evaluate(**batch), loss)
    return found


def other_lengths(context):
    """With microbatches of different lengths, too."""
    module, own = made("tied"), made("tied")
    batches = [{name: tensor[:, :length] for name, tensor in batch_of(3, m).items()} for m, length in zip(range(context.microbatches), (6, 3, 4, 5, 6, 2, 3, 4))]
    captured = pfeife.capture(own, **batch_of(4, 0), dynamic_shapes={"tokens": {1: "length"}, "labels": {1: "length"}})
    plan = planned(captured, "1f1b", context.ranks, context.microbatches)
    plan.capture = captured
    pipe = Pipeline(own, plan, schedule="vocab_2")
    counts = [float((batch["labels"] != -100).sum()) for batch in batches]
    wanted = sum(module(**batch) * (count / sum(counts)) for batch, count in zip(batches, counts) if count)
    wanted.backward()
    return {"loss": difference(pipe.step(batches), wanted), "gradients": far(pipe, module)}


def replicas(context):
    """Two pipelines of two ranks, each with its own batch: gradients of words are summed over both."""
    found = {}
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    for kind in ("tied", "untied"):
        module, own = made(kind), made(kind)
        captured = pfeife.capture(own, **batch_of(8, 0), microbatches=4)
        plan = planned(captured, "1f1b", 2, 4)
        plan.capture = captured
        pipe = Pipeline(own, plan, group=mesh["pp"], replicas=mesh["dp"], schedule="vocab_2")
        for step in range(2):
            batches = [batch_of(8, 2 * step + replica) for replica in range(2)]
            loss = pipe.step(**batches[mesh["dp"].get_local_rank()])
            counts = [float((batch["labels"] != -100).sum()) for batch in batches]
            wanted = sum(module(**batch) * (count / sum(counts)) for batch, count in zip(batches, counts))
            wanted.backward()
            found[f"{kind} {step}"] = max(difference(loss, wanted), far(pipe, module))
    return found


class Peak(TorchDispatchMode):
    """The most bytes that tensors made while it holds had at once."""

    def __init__(self):
        super().__init__()
        self.live, self.most = {}, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self.live[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.live = {key: entry for key, entry in self.live.items() if not entry[0].expired()}
        self.most = max(self.most, sum(size for _, size in self.live.values()))
        return result


class Wide(nn.Module):
    def __init__(self, words=4096):
        super().__init__()
        self.embedding, self.head = nn.Embedding(words, 16), nn.Linear(16, words, bias=False)
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(12))

    def forward(self, tokens, labels):
        h = self.embedding(tokens)
        for layer in self.layers:
            h = h + torch.tanh(layer(h))
        return F.cross_entropy(self.head(h).flatten(0, 1), labels.flatten())


def memory(context):
    """Bytes of tensors of a step: of the last rank the largest part sinks to the ranks' share and what S and T hold at once."""
    torch.manual_seed(SEED)
    tokens, labels = torch.randint(4096, (2, 4 * context.microbatches, 16), generator=torch.Generator().manual_seed(0))
    batch = {"tokens": tokens, "labels": labels}
    peaks = {}
    for family in (None, *FAMILIES):
        own = Wide()
        captured = pfeife.capture(own, **batch, microbatches=context.microbatches)
        plan = planned(captured, "1f1b", context.ranks, context.microbatches)
        plan.capture = captured
        pipe = Pipeline(own, plan, schedule=family)
        pipe.step(**batch)
        for parameter in pipe.parameters():
            parameter.grad = None
        with Peak() as peak:
            pipe.step(**batch)
        peaks[family] = pipe._messages.all(peak.most)[-1]
    print({str(family): peak for family, peak in peaks.items()}, file=sys.stderr) if context.rank == 0 else None
    return {f"of {family}": 0.0 if peaks[family] < 0.75 * peaks[None] else f"{peaks}" for family in FAMILIES}


class Ends(nn.Module):
    def __init__(self, end):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(8))
        self.last, self.end = nn.Linear(8, 3), end

    def forward(self, x, y):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.end(self.last(x), y)


REFUSED = {
    "the loss is mse_loss": lambda scores, y: F.mse_loss(scores[:, 0], y.to(scores.dtype)),
    "the loss is mul": lambda scores, y: F.cross_entropy(scores, y) * 2,
    "the loss has weights of words or label_smoothing": lambda scores, y: F.cross_entropy(scores, y, label_smoothing=0.1),
    "stands between the linear layer and the loss": lambda scores, y: F.cross_entropy(torch.tanh(scores), y),
    "cuts the words": lambda scores, y: F.cross_entropy(scores[:, :2].contiguous(), y.clamp(max=1)),
}


def refused(context):
    """What is not executed, with the reason."""
    found = {}

    def refuses(words, call):
        try:
            call()
            found[words] = 1.0
        except pfeife.ConfigError as error:
            found[words] = 0.0 if words in str(error) else str(error)

    x, y = torch.randn(4 * context.ranks, 8), torch.randint(3, (4 * context.ranks,))
    for words, end in REFUSED.items():
        module = Ends(end)
        captured = pfeife.capture(module, x, y, microbatches=context.microbatches)
        plan = planned(captured, "1f1b", context.ranks, context.microbatches)
        plan.capture = captured
        refuses(words, lambda: Pipeline(module, plan, schedule="vocab_1"))
    pipe = context.piped("shifted", "vocab_1")
    refuses("no rank has all logits", lambda: pipe(**batch_of(2 * context.microbatches, 0)))
    refuses("Pipeline(compile=): a head on all ranks has not been tried", lambda: context.piped("tied", "vocab_1", compile=True))
    refuses("schedule: unknown word '1f1b'; use vocab_1, vocab_2, interlaced", lambda: context.piped("tied", "1f1b"))
    refuses("its rows have no S and T", lambda: context.piped("tied", pfeife.schedule("1f1b", ranks=context.ranks, microbatches=context.microbatches)))
    fewer = pfeife.schedule("vocab_1", ranks=context.ranks, microbatches=context.microbatches - 1)
    refuses(f"{context.microbatches - 1} microbatches, and the plan has {context.ranks} and {context.microbatches}", lambda: context.piped("tied", fewer))
    return found


def cases(ranks):
    found = {f"{kind}-{family}": family_case(kind, family) for kind in KINDS for family in FAMILIES}
    also = (accumulates, checkpoints, other_lengths, refused, memory) if ranks == 2 else (accumulates, checkpoints, replicas, memory)
    return {**found, **{work.__name__: work for work in also}}


def main():
    ranks, folder, *only = int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    torch.set_num_threads(1)
    asked = {name: work for name, work in cases(ranks).items() if not only or name in only}
    context = Heads(ranks, folder)
    run(context, asked, lambda name: asked[name](context))


if __name__ == "__main__":
    main()
