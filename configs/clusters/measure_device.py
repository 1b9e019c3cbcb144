#!/usr/bin/env python3
"""Measures what a cluster file says of a device: matrix products by size and precision, and copies.

Prints the lines of a device kind for a cluster file (README.md beside this file). Needs PyTorch, and nothing else that
runs on the device meanwhile.

  python3 measure_device.py --device cuda --peak fp32=67 tf32=494.7 bf16=989 fp16=989 --bandwidth 4800
  python3 measure_device.py --device cpu --sizes 256 512 --copy-mib 64
  python3 measure_device.py --products list.csv > my_products.csv

The last form times the products that `pfeife-exp products CONFIG` lists, for `measured_products` of a device kind: each
for --seconds without a pause, so that a power limit settles; the second half counts. Operands are random, in the layout
that the pass has, and in several copies, so that no cache holds them. Products that the device or this PyTorch cannot
run are left out, and named on standard error.

Peaks (TFLOP/s) and bandwidth (GB/s) are those of the data sheet. Without them the best that was measured stands in, so
that the largest fraction is 1. A fraction is that of the median of --repeats runs; each run is timed with the device
idle before and after it, and holds as many operations as fill 20 ms. Not measured: links, kernel overhead of a device
that the host cannot keep busy.
"""
import argparse
import csv
import statistics
import sys
import time

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
FILL_SECONDS = 0.02
PRODUCT_COLUMNS = ("precision", "operator", "pass", "groups", "m", "n", "k")
COLD_BYTES = 256 * 2**20  # of operands, so that no cache holds them
MOST_COPIES = 16


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="\n\n".join(__doc__.split("\n\n")[1:]),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, cpu")
    parser.add_argument("--name", help="name of the device kind; default: the device's own")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 2048, 4096, 8192],
                        help="N of the products N x N x N")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS,
                        help="default: all on a GPU, fp32 on a CPU")
    parser.add_argument("--peak", nargs="+", default=[], metavar="PRECISION=TFLOP/s")
    parser.add_argument("--bandwidth", type=float, metavar="GB/s")
    parser.add_argument("--copy-mib", type=int, default=1024, help="size of the tensor copied")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--products", metavar="LIST", help="times the products of this CSV file, and nothing else")
    parser.add_argument("--seconds", type=float, default=2, help="for each of them")
    options = parser.parse_args()
    peaks = {}
    for entry in options.peak:
        precision, _, value = entry.partition("=")
        try:
            peaks[precision] = float(value)
        except ValueError:
            parser.error(f"--peak {entry}: expected a number of TFLOP/s, such as fp32=19.5")
        if precision not in PRECISIONS or peaks[precision] <= 0:
            parser.error(f"--peak {entry}: expected one of {', '.join(PRECISIONS)} and a number above 0")
    options.peak = peaks
    if min(options.sizes + [options.copy_mib, options.repeats]) < 1:
        parser.error("sizes, --copy-mib and --repeats must be at least 1")
    if not 0 < options.seconds <= 600:
        parser.error("--seconds must be above 0, at most 600")
    return options


class Clock:
    """Times an operation on the device."""

    def __init__(self, torch, device, repeats):
        self.torch, self.device, self.repeats = torch, device, repeats

    def wait(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def run(self, operation, count):
        self.wait()
        start = time.perf_counter()
        for _ in range(count):
            operation()
        self.wait()
        return (time.perf_counter() - start) / count

    def mark(self):
        """A point in the device's work, without waiting for it."""
        if self.device.type != "cuda":
            return time.perf_counter()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record(self.torch.cuda.current_stream(self.device))
        return event

    def between(self, first, last):
        """Seconds between two marks."""
        if self.device.type != "cuda":
            return last - first
        last.synchronize()
        return first.elapsed_time(last) / 1e3

    def seconds(self, operation):
        """Median time of one operation."""
        self.run(operation, 2)  # chooses kernels, fills caches
        count = max(1, int(FILL_SECONDS / max(self.run(operation, 1), 1e-9)))
        return statistics.median(self.run(operation, count) for _ in range(self.repeats))


def product_rate(torch, clock, precision, size):
    """TFLOP/s of a product of two size x size matrices."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)
    left = torch.randn(size, size, device=clock.device).to(dtype)
    right = torch.randn(size, size, device=clock.device).to(dtype)
    out = torch.empty(size, size, device=clock.device, dtype=dtype)
    return 2 * size**3 / clock.seconds(lambda: torch.mm(left, right, out=out)) / 1e12


def copy_rate(torch, clock, mib):
    """GB/s of a copy, bytes read and bytes written together."""
    source = torch.ones(mib * 2**18, device=clock.device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / clock.seconds(lambda: target.copy_(source)) / 1e9


def overhead(torch, clock):
    """Microseconds of an operator on next to nothing."""
    tiny = torch.ones(8, device=clock.device)
    return clock.seconds(lambda: tiny.add_(1)) * 1e6


def listed_products(path):
    """Rows of `pfeife-exp products` as dictionaries; stops with the line of a mistake."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if line.strip() and not line.startswith("#")))
    if not rows:
        sys.exit(f"{path}: no products; expected the columns {', '.join(PRODUCT_COLUMNS)}")
    for number, row in enumerate(rows, 1):
        row.setdefault("operator", "product")
        row.setdefault("groups", "1")
        try:
            for size in ("groups", "m", "n", "k"):
                row[size] = int(row[size] or 1)
                if row[size] < 1:
                    raise ValueError
        except (KeyError, TypeError, ValueError):
            sys.exit(f"{path}: row {number}: groups, m, n and k must be whole numbers from 1 on")
        row["operator"] = row["operator"] or "product"
    return rows


def matrices(torch, device, row, dtype):
    """Left and right factor, [groups, m, k] and [groups, k, n], in the layout that the pass has in memory."""
    groups, m, n, k = row["groups"], row["m"], row["n"], row["k"]
    left_turned, right_turned = {"input": (False, False), "weight": (True, False),
                                 "weight_sum": (True, False)}.get(row["pass"], (False, True))

    def matrix(rows, columns, turned):
        shape = (groups, columns, rows) if turned else (groups, rows, columns)
        values = torch.randn(shape, device=device).to(dtype)
        return values.transpose(1, 2) if turned else values

    left, right = matrix(m, k, left_turned), matrix(k, n, right_turned)
    return (left[0], right[0]) if groups == 1 else (left, right)


def scaled_product(torch, device, row):
    """A product of cast operands: both have k in rows, whatever the pass, as casts are written in both layouts."""
    m, n, k = row["m"], row["n"], row["k"]
    if row["groups"] > 1:
        raise ValueError("groups are measured in 16 bits only")

    def ones(count, kind):
        return torch.ones(count, device=device).to(getattr(torch, kind))

    def blocks(rows, block):  # of scales, in tiles of 128 x 4
        return -(-rows // 128) * 128 * (-(-k // (4 * block)) * 4)

    if row["precision"] == "nvfp4":
        def cast(rows):
            packed = torch.randint(0, 256, (rows, k // 2), device=device, dtype=torch.uint8)
            return packed.view(torch.float4_e2m1fn_x2)
        scales = (ones(blocks(m, 16), "float8_e4m3fn"), ones(blocks(n, 16), "float8_e4m3fn"))
    else:
        def cast(rows):
            return torch.randn(rows, k, device=device).to(torch.float8_e4m3fn)
        scales = {"fp8": lambda: (ones(1, "float32"), ones(1, "float32")),
                  "fp8_block": lambda: (ones((k // 128, m), "float32").t(),
                                        ones((n // 128, k // 128), "float32").t()),
                  "mxfp8": lambda: (ones(blocks(m, 32), "float8_e8m0fnu"), ones(blocks(n, 32), "float8_e8m0fnu")),
                  }[row["precision"]]()
    left, right = cast(m), cast(n).t()
    size = left.nbytes + right.nbytes
    return lambda: torch._scaled_mm(left, right, scale_a=scales[0], scale_b=scales[1],
                                    out_dtype=torch.bfloat16), size


def attention(torch, device, row, dtype):
    """Fused attention forward, or its backward alone (pass input). Where queries are a part of the keys, a causal mask
    hides half of the scores on average over the parts: half of the keys are taken instead."""
    causal = row["operator"] == "causal_attention"
    keys = row["n"]
    if causal and row["m"] != keys:
        causal, keys = False, keys // 2
    shape = (1, row["groups"], row["m"], row["k"])
    query = torch.randn(shape, device=device).to(dtype).requires_grad_(row["pass"] == "input")
    key, value = (torch.randn((1, row["groups"], keys, row["k"]), device=device).to(dtype)
                  .requires_grad_(row["pass"] == "input") for _ in range(2))
    attend = torch.nn.functional.scaled_dot_product_attention
    size = query.nbytes + 2 * key.nbytes
    if row["pass"] != "input":
        return lambda: attend(query, key, value, is_causal=causal), size
    out = attend(query, key, value, is_causal=causal)
    incoming = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (query, key, value), incoming, retain_graph=True), 3 * size


def product(torch, device, row):
    """What runs one product of this row, and the bytes of its operands."""
    precision = row["precision"]
    if precision in ("fp8", "fp8_block", "mxfp8", "nvfp4"):
        return scaled_product(torch, device, row)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32}[precision]
    if row["operator"] != "product":
        return attention(torch, device, row, dtype)
    left, right = matrices(torch, device, row, dtype)
    size = left.nbytes + right.nbytes
    if row["pass"] == "weight_sum":
        total = torch.zeros(left.shape[:-1] + right.shape[-1:], device=device, dtype=dtype)
        add = total.addmm_ if left.dim() == 2 else total.baddbmm_
        return lambda: add(left, right), size
    return lambda: torch.matmul(left, right), size


def steady_seconds(clock, operations, seconds):
    """Time of one operation in the second half of `seconds` without a pause."""
    clock.run(operations[0], 2)
    once = max(clock.run(operations[0], 1), 1e-7)
    half = max(1, int(seconds / 2 / once))

    def launch(count):
        for i in range(count):
            operations[i % len(operations)]()
    launch(half)
    start = clock.mark()
    launch(half)
    return clock.between(start, clock.mark()) / half


def print_products(torch, clock, options):
    rows = listed_products(options.products)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(PRODUCT_COLUMNS + ("us",))
    for number, row in enumerate(rows, 1):
        name = " ".join(str(row[column]) for column in PRODUCT_COLUMNS)
        try:
            first, size = product(torch, clock.device, row)
            copies = min(MOST_COPIES, -(-COLD_BYTES // size)) if clock.device.type == "cuda" else 1
            operations = [first] + [product(torch, clock.device, row)[0] for _ in range(copies - 1)]
            taken = steady_seconds(clock, operations, options.seconds)
        except (RuntimeError, ValueError, KeyError, AttributeError, TypeError) as error:
            print(f"{number}/{len(rows)} {name}: left out: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        print(f"{number}/{len(rows)} {name}: {taken * 1e6:.1f} us", file=sys.stderr)
        writer.writerow([row[column] for column in PRODUCT_COLUMNS] + [f"{taken * 1e6:.6g}"])
        sys.stdout.flush()


def memory_mib(torch, device):
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory // 2**20
    import os
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def kind_lines(name, device_type, memory, copy, bandwidth, rates, peaks, sizes, overhead_us, source):
    """The YAML lines of a device kind. rates[precision] = TFLOP/s by size."""
    efficiency = min(copy / bandwidth, 1)
    lines = [f"  {name}:", f"    # {source}"]
    if device_type == "cpu":
        lines.append("    type: cpu")
    lines += [f"    memory: {memory} MiB", f"    memory_bandwidth: {bandwidth:.5g} GB/s",
              f"    memory_efficiency: {efficiency:.3f}   # a copy reaches {copy:.5g} GB/s",
              "    peak: {" + ", ".join(f"{p}: {peaks[p]:.4g} TFLOP/s" for p in rates) + "}",
              "    gemm_efficiency:"]
    for precision, measured in rates.items():
        points = ", ".join(f"[{2 * n**3 / 1e9:.4g} GFLOP, {rate / peaks[precision]:.3g}]"
                           for n, rate in zip(sizes, measured))
        shown = ", ".join(f"{rate:.4g}" for rate in measured)
        lines.append(f"      {precision}: [{points}]   # TFLOP/s: {shown}")
    lines.append(f"    kernel_overhead: {overhead_us:.2f} us")
    return lines


def main():
    options = arguments()
    try:
        import torch
    except ImportError:
        sys.exit("measure_device.py needs PyTorch: pip install torch")
    try:
        device = torch.device(options.device)
        torch.ones(1, device=device)
    except (RuntimeError, AssertionError) as error:
        sys.exit(f"--device {options.device}: {str(error).splitlines()[0]}")
    on_gpu = device.type == "cuda"
    full_name = torch.cuda.get_device_name(device) if on_gpu else "CPU"
    sizes = sorted(set(options.sizes))
    clock = Clock(torch, device, options.repeats)
    if options.products:
        print_products(torch, clock, options)
        return
    rates = {}
    for precision in options.precisions or (PRECISIONS if on_gpu else PRECISIONS[:1]):
        print(f"{precision} ...", file=sys.stderr)
        rates[precision] = [product_rate(torch, clock, precision, n) for n in sizes]
    copy = copy_rate(torch, clock, options.copy_mib)
    peaks = {p: options.peak.get(p, max(measured)) for p, measured in rates.items()}
    threads = "" if on_gpu else f", {torch.get_num_threads()} threads"
    source = (f"{full_name}{threads}: measured {time.strftime('%Y-%m-%d')} with measure_device.py, "
              f"torch {torch.__version__}, median of {options.repeats}")
    name = options.name or full_name.lower().replace(" ", "_").replace("-", "_")
    print("\n".join(kind_lines(name, "gpu" if on_gpu else "cpu", memory_mib(torch, device), copy,
                               options.bandwidth or copy, rates, peaks, sizes,
                               overhead(torch, clock), source)))


if __name__ == "__main__":
    main()
