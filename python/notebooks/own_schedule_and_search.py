# %% [markdown]
# # A schedule of your own, and a search of your own

# %%
import random

import pfeife

schedule = pfeife.schedule("1f1b", ranks=3, microbatches=4)
print(schedule)
print(schedule.time(f=1, b=2, transfer=0.1))

# %% [markdown]
# The rows are lists of texts. The last rank may run a forward ahead: valid, and what it holds grows.

# %%
row = schedule.cells[2]
first = row.index("2B0")
row[first], row[first + 1] = row[first + 1], row[first]
assert schedule.violations() == ""
print([int(rank.bytes.max()) for rank in schedule.time(f=1, b=2, transfer=0.1).memory], "microbatches in flight")

# %% [markdown]
# A search of your own asks for prices. Here: cuts of layers whose times are uneven, by chance.

# %%
draw = random.Random(1)
times = [draw.uniform(1, 3) for _ in range(12)]
model = pfeife.layers(times, times, times, output_bytes=4 << 20, saved_bytes=64 << 20, parameter_bytes=32 << 20)
pricer = pfeife.Pricer(model, "3090_x8", devices=4, microbatches=8, families=["1f1b"], stages_per_rank=[1])
choices = [{"family": "1f1b", "cuts": sorted(draw.sample(range(11), 3))} for _ in range(200)]
prices = pricer.price(choices)
best = min((price.step, choice["cuts"]) for price, choice in zip(prices, choices) if price.fits)
print("the best of 200 by chance:", best)

# %%
plan = pfeife.plan(
    model, "3090_x8", devices=4, microbatches=8, families=["1f1b"], stages_per_rank=[1], engines=["estimate"], baselines=[]
)
print("planned:", plan.step, plan.cuts)
assert plan.step <= best[0]
