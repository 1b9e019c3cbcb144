"""The page of on_card: what was found so far, each figure with where it was measured."""
import json

MIB = 1 << 20


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def number(value, digits=4):
    return f"{value:.{digits}g}"


def mib(count):
    return number(count / MIB)


class Page:
    def __init__(self, state, folder):
        self.state, self.folder = state, folder
        self.source = "stand-in" if state["stand_in"] else "measured"

    def answers(self, verb):
        """(rest of the task's name, its answer) of the tasks of a verb that have one, whole or in part."""
        for name, entry in self.state["tasks"].items():
            words = name.split()
            file = self.folder / "answers" / entry.get("found", {}).get("answer", "none")
            if words[0] != verb or not file.is_file():
                continue
            partial = "" if entry["state"] == "done" else f" ({entry['state']}: in part)"
            yield " ".join(words[1:]) + partial, json.loads(file.read_text())

    def head(self):
        state = self.state
        text = "# On the stand-in\n\n**No card was there: the same code on a device that is the CPU. No time, rate or " \
               "size below says anything about a GPU.**\n\n" if state["stand_in"] else \
               f"# On a card: {state['driver'].split(',')[0]}\n\n"
        text += f"Begun {state['begun']}; {state['used_seconds']:.0f} s used in {state['pieces']} pieces. " \
                f"{state['machine']}. {state['bundle']}\n"
        if state["driver"]:
            text += f"\n`{state['driver']}` (name, memory, driver, SM clock, memory clock, temperature, power)\n"
        rows = [(name, e["state"], e.get("seconds", ""), self.first_line(e)) for name, e in state["tasks"].items()]
        return text + "\n## Tasks\n\n" + table(("task", "state", "s", "what it said"), rows)

    @staticmethod
    def first_line(entry):
        text = entry.get("found", {}).get("text", "").strip()
        return text.splitlines()[-1][:160].replace("|", "\\|") if text else ""

    def tests(self):
        entry = self.state["tasks"].get("tests", {}).get("found", {})
        found = entry.get("tests")
        if not found:
            return ""
        count = {v: sum(t["verdict"] == v for t in found) for v in ("passed", "failed", "cut off", "skipped")}
        text = "\n## Tests\n\n" + ", ".join(f"{n} {v}" for v, n in count.items()) + f" ({self.source}).\n"
        reasons = ["\n".join(t["first_lines"]) for t in found if t["verdict"] == "skipped"]
        for reason in dict.fromkeys(reasons):
            text += f"\n{reasons.count(reason)} skipped:\n```\n{reason}\n```\n"
        for t in found:
            if t["verdict"] in ("failed", "cut off"):
                text += f"\n{t['name']}, {t['verdict']} after {t['seconds']} s:\n```\n" + "\n".join(t["first_lines"]) + "\n```\n"
        return text

    def unexpected(self, blocks, columns, row):
        """How many blocks are as CUDA's rule says, and those that are not; of the stand-in's, which has another rule, none."""
        if self.state["stand_in"]:
            return f" {len(blocks)} tried; the stand-in has a rule of its own.\n"
        wrong = [b for b in blocks if b["reported"] != b["expected"]]
        text = f" {len(blocks)} tried, {'**' if wrong else ''}{len(wrong)} not as expected{'**' if wrong else ''}.\n"
        return text + ("\n" + table(columns, [row(b) for b in wrong]) if wrong else "")

    def assumptions(self):
        text = ""
        for _, a in self.answers("assumptions"):
            text += f"\n## What the stand-in takes for granted ({self.source})\n"
            text += "\nBlocks (CUDA: multiples of 512 bytes, whole unless more than 1 MiB would be left):"
            text += self.unexpected(a.get("blocks", []),
                                    ("asked", "reported", "allocated", "requested", "reserved", "expected",
                                     "expected reserved"),
                                    lambda b: [b[k] for k in ("asked", "reported", "allocated", "requested", "reserved",
                                                              "expected", "expected_reserved")])
            text += "\nA larger free block, MiB:"
            text += self.unexpected(a.get("reuse", []), ("free", "asked", "given", "expected"),
                                    lambda b: [mib(b[k]) for k in ("free", "asked", "reported", "expected")])
            runs = [(name, i + 1, [r[w][k] for w in ("first", "second") for k in ("kept", "most_beside_result")])
                    for name, runs in a.get("workspaces", {}).items() for i, r in enumerate(runs)]
            some = [(name, stream, *map(mib, bytes)) for name, stream, bytes in runs if any(bytes)]
            text += "\nWorkspaces, MiB: what the first and second call on a new stream keep, and take beside the result; " \
                    f"{len(runs)} tried, {len(runs) - len(some)} without any.\n"
            if some:
                text += "\n" + table(("operator", "stream", "first keeps", "first takes", "second keeps", "second takes"), some)
            if "order" in a:
                o = a["order"]
                text += f"\nOrder, of {o['tries']} tries each: {o['wrong_with_event']} wrong copies behind an event (must be " \
                        f"0), {o['stale_without_event']} stale ones without (a device that runs ahead has some). The host " \
                        f"gives work for {number(o['device_ms'])} ms in {number(o['host_ms'])} ms; two events in a row are " \
                        f"{number(o['two_events_us'])} us apart.\n"
            if "stream_pool" in a:
                p = a["stream_pool"]
                text += f"\nStreams before one comes again: {p['streams_before_one_comes_again']} (of {p['asked']} asked for; " \
                        "CUDA: 32).\n"
            if "copies" in a:
                text += "\n" + table(("copy to the device", "host held, ms", "GB/s"),
                                     [(n, number(c["host_ms"]), number(c["gb_per_s"])) for n, c in a["copies"].items()])
            for name, error in a.get("errors", {}).items():
                text += f"\n{name}: **{error.splitlines()[0]}**\n"
        return text

    def one_rank(self):
        rows = []
        for name, a in self.answers("one_rank"):
            for precision, variants in a.get("precisions", {}).items():
                plain = variants.get("plain", {}).get("step_ms")
                for variant, v in variants.items():
                    if not v:
                        continue
                    n = v.get("launches", {})
                    rows.append((name, precision, variant, number(v["step_ms"]), number(v["host_ms"]),
                                 number(v["step_ms"] / plain, 3) if plain else "", mib(v["allocated"]),
                                 mib(v["requested"]), mib(v["reserved"]), n.get("kernels", ""), n.get("copies", ""),
                                 n.get("waits", ""), number(n.get("kernel_ms", 0)), number(v["first_loss"], 6)))
        if not rows:
            return ""
        return f"\n## One rank against a plain loop ({self.source})\n\n`plain` = the same operator calls without stages or " \
               "messages, the host never waits; `pfeife` = as it trains; `pfeife_timed` = as it measures, waiting for the " \
               "device after each action. Four microbatches and AdamW; peaks in MiB. fp16 without a loss scale: times only.\n\n" \
               + table(("model", "precision", "step of", "ms", "host, ms", "of plain", "allocated", "requested", "reserved",
                        "kernels", "copies", "waits", "kernels, ms", "first loss"), rows)

    def ranks(self):
        text = ""
        for name, a in self.answers("ranks"):
            if not text:
                text = f"\n## Ranks as threads ({self.source})\n\nTwo processes on one card: not possible, ranks on an " \
                       "accelerator are threads of one process.\n"
            text += f"\n{name}, {a.get('precision')}: "
            if "gradients" in a:
                text += a["gradients"]["text"].strip() + "\n"
            if "memory" in a:
                m = a["memory"]
                rows = [(r, mib(p), mib(q), number(q / p, 3)) for r, (p, q) in enumerate(zip(m["planned"], m["measured"]))]
                text += "\n" + table(("rank", "planned, MiB", "measured, MiB", "of planned"), rows)
                planned = sum(m["planned_reserved"])
                text += f"\nReserved by torch's allocator, all ranks: {mib(planned)} MiB planned (modelled), " \
                        f"{mib(m['reserved'])} {self.source}, {number(m['reserved'] / planned, 3)} of planned.\n"
            if "timeline" in a:
                t = a["timeline"]
                text += f"\nStep {number(t['step_ms'])} ms; {number(t['shared_device_ms'])} ms if k ranks that compute had a " \
                        f"k-th of the device each; {number(t['own_devices_ms'])} ms with a device each. Starts of actions " \
                        f"are {number(t['mean_start_off_ms'])} ms off on average, {number(t['largest_start_off_ms'])} at most.\n"
        return text

    def speed(self):
        text = ""
        for _, a in self.answers("speed"):
            text += f"\n## Speed of the device ({self.source})\n\nCluster file: answers/cluster.yaml.\n\n"
            text += table(("launched one after another", "host, us", "done, us"),
                          [(n, number(v["host_us"]), number(v["done_us"])) for n, v in a.get("launches", {}).items()])
            text += "\n" + table(("kernel", "MB", "GB/s"), [(s["kernel"], number(s["bytes"] / 1e6), number(s["gb_per_s"]))
                                                           for s in a.get("streaming", [])])
            for key in ("squares", "shapes"):
                units = a.get(key, {})
                shapes = [r["shape"] for r in next(iter(units.values()), [])]
                rows = [(" x ".join(map(str, shape)), *(number(rows[i]["flops"] / 1e12) if i < len(rows) else ""
                                                        for rows in units.values())) for i, shape in enumerate(shapes)]
                text += "\n" + table(("product, TFLOP/s", *units), rows)
        return text

    def profile(self):
        text = ""
        for name, a in self.answers("profile"):
            for precision, p in a.get("precisions", {}).items():
                if not text:
                    text = f"\n## Roofline against profile, node by node ({self.source})\n\nF, I and W of a node together; the " \
                           "roofline is that of the cluster file named.\n"
                text += f"\n{name}, {precision} (answers/{p['file']}; cluster {a['cluster']}): " \
                        f"{number(p['measured_ms'])} ms in the profile, {number(p['roofline_ms'])} by the roofline; nodes are " \
                        f"off by {number(100 * p['off_of_time'], 3)} % of the time, by {number(100 * p['mean_off_of_nodes'], 3)} % " \
                        "of their own on average. The three furthest off (the answer has ten):\n\n"
                text += table(("node", "operator", "profile, us", "roofline, us"),
                              [(w["node"], w["operator"], number(w["measured_us"]), number(w["roofline_us"]))
                               for w in p["worst"][:3]])
        return text

    def rest(self):
        text = ""
        sanitizer = self.state["tasks"].get("sanitizer")
        if sanitizer:
            text += f"\n## compute-sanitizer\n\n{sanitizer['state']}"
            text += ": " + sanitizer["found"]["text"] + "\n" if "text" in sanitizer.get("found", {}) else "\n\n"
            for t in sanitizer.get("found", {}).get("tests", []):
                text += f"{t['name']}: exit code {t['code']}\n```\n" + "\n".join(t["first_lines"]) + "\n```\n"
        doctor = self.state["tasks"].get("doctor", {}).get("found", {})
        if "page" in doctor:
            text += f"\n## pfeife-run doctor\n\n```\n{doctor['page']}```\n"
        for _, a in self.answers("nccl"):
            text += f"\n## NCCL with one rank ({self.source})\n\n"
            text += "".join(f"- {k}: {v}\n" for k, v in a.items() if k not in ("device", "stand_in", "where"))
        return text


def page(state, folder):
    """Markdown of all that the tasks have found; what cannot be shown says why and hides nothing else."""
    p = Page(state, folder)
    text = ""
    for part in (p.head, p.tests, p.assumptions, p.one_rank, p.ranks, p.speed, p.profile, p.rest):
        try:
            text += part()
        except Exception as error:
            text += f"\n**{part.__name__}: the page cannot show it ({error!r}); the answers are in answers/**\n"
    return text
