#!/usr/bin/env python3
"""Measures what a cluster file says of a device: matrix products by size and precision, and copies.

Prints the lines of a device kind for a cluster file (README.md beside this file). Needs PyTorch, and nothing else that
runs on the device meanwhile.

  python3 measure_device.py --device cuda --peak fp32=67 tf32=494.7 bf16=989 fp16=989 --bandwidth 4800
  python3 measure_device.py --device cpu --sizes 256 512 --copy-mib 64

Peaks (TFLOP/s) and bandwidth (GB/s) are those of the data sheet. Without them the best that was measured stands in, so
that the largest fraction is 1. A fraction is that of the median of --repeats runs; each run is timed with the device
idle before and after it, and holds as many operations as fill 20 ms. Not measured: links, kernel overhead of a device
that the host cannot keep busy.
"""
import argparse
import statistics
import sys
import time

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
FILL_SECONDS = 0.02


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
