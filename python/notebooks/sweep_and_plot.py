# %% [markdown]
# # Sweep and plot
# How the step falls with devices and microbatches. A sweep with a folder goes on where it was.

# %%
from pathlib import Path

import pfeife

configs = Path(__file__).resolve().parents[2] / "configs"
rows = pfeife.sweep(
    configs / "models/tiny_gpt.pt2",
    "3090_x8",
    devices=[1, 2, 4],
    microbatches=[4, 8],
    iterations=20,
    baselines=["1f1b"],
    folder="sweep_of_tiny_gpt",
    frame=False,  # a pandas.DataFrame otherwise, where there is pandas
)
for row in rows:
    print(row["devices"], row["microbatches"], row["plan"], row["simulate_ms"], row["gap_fraction"])

# %%
planned = [row for row in rows if row["plan"] == "planned"]
try:
    import matplotlib.pyplot as plt
except ImportError:
    print("matplotlib draws the rest")
else:
    for microbatches in (4, 8):
        of = [row for row in planned if row["microbatches"] == microbatches]
        plt.plot([row["devices"] for row in of], [row["samples_per_s"] for row in of], "o-", label=f"N = {microbatches}")
    plt.xlabel("devices"), plt.ylabel("samples/s (simulated)"), plt.legend()
    plt.savefig("sweep.svg")
