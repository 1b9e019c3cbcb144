# %% [markdown]
# # Plan and look
# A GPT of four layers on two RTX 3090. Every key of a config is a keyword.

# %%
from pathlib import Path

import pfeife

configs = Path(__file__).resolve().parents[2] / "configs"
plan = pfeife.plan(configs / "models/tiny_gpt.pt2", "3090_x8", devices=2, microbatches=8)
plan  # in a notebook: the table, the timeline, the memory

# %% [markdown]
# Where it is cut, how far it is above what no plan can beat, and what each device holds at most.

# %%
print(plan)
print(plan.title, plan.cut_modules, f"{plan.step:.3f} ms, {plan.gap:.1%} above the bound", plan.peaks)

# %% [markdown]
# Where each rank's time goes, and every event as a numpy record array.

# %%
trace = plan.simulate()
for rank, causes in enumerate(trace.attribution):
    print(rank, {cause: f"{time / 1e6:.3f} ms" for cause, time in causes.items() if time})
sends = trace.events[trace.events.kind == "transfer"]
print(sends[:3], (sends.end - sends.start).sum() / 1e6, "ms on the links")

# %% [markdown]
# Saved, judged by a program that shares no code with the search, and loaded again.

# %%
plan.save("plan_of_tiny_gpt")
print(pfeife.certify("plan_of_tiny_gpt").text)
assert pfeife.load_plan("plan_of_tiny_gpt").estimated.step == plan.estimated.step
