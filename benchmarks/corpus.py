"""Time and memory from a text to encoded splits: tokenising, mapping, building the vocabulary and encoding.

    python benchmarks/corpus.py --corpus gutenberg16m.txt.xz --output benchmarks/results/corpus.csv

Each step is one command of `nplm`, with the options of the experiments ap_news and gutenberg. `peak_megabytes` is the
most that all its processes held at once, each shared page counted once, looked up ten times a second; the last row has
the sum of the seconds and the highest peak. `load_average` shows whether other work shared the machine.
"""

import argparse
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nplm.files import write_csv
from nplm.report.provenance import processor

STEPS = {
    "tokenize-corpus": "--input {corpus} --source {source} --documents {documents} --tokenizer {tokenizer} "
    "--characters clean --output {folder}/tokens.txt --record {folder}/tokens.json",
    "map-tokens": "--tokens {folder}/tokens.txt --lower-case --numbers forms --proper-nouns one "
    "--output {folder}/mapped.txt --record {folder}/mapped.json --proper-noun-table {folder}/proper_nouns.tsv",
    "build-vocabulary": "--tokens {folder}/mapped.txt --size {size} --output {folder}/vocabulary.tsv",
    "encode-corpus": "--tokens {folder}/mapped.txt --vocabulary {folder}/vocabulary.tsv "
    "--train-size {train} --valid-size {valid} --at {at} --record {folder}/tokens.json "
    "--mapping-record {folder}/mapped.json --output-directory {folder}",
}


def measure(step: str, options: str) -> dict[str, object]:
    """Run a command of nplm and measure it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    command = [sys.executable, "-m", "nplm", step, *shlex.split(options)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    peak = 0
    while running.poll() is None:
        peak = max(peak, memory_of_session(running.pid))
        time.sleep(0.1)
    seconds = time.perf_counter() - started
    if running.returncode:
        sys.exit(f"nplm {step} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"step": step, "seconds": seconds, "cpu_seconds": cpu_seconds, "peak_megabytes": peak / 1e6}


def memory_of_session(leader: int) -> int:
    """Bytes in memory of all processes of a session; a page that several share counts once (Linux)."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == leader:
                total += int((folder / "smaps_rollup").read_text().partition("Pss:")[2].split()[0]) * 1024
        except (OSError, IndexError):  # the process has just ended
            continue
    return total


def main() -> None:
    """Measure every step and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="a file or folder")
    parser.add_argument("--source", default="text")
    parser.add_argument("--documents", default="blank_line")
    parser.add_argument("--tokenizer", default="treebank")
    parser.add_argument("--size", type=int, default=17964, help="|V|")
    parser.add_argument("--train", type=int, default=14_000_000, help="tokens")
    parser.add_argument("--valid", type=int, default=1_000_000, help="tokens")
    parser.add_argument("--at", default="document")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        values = {name: shlex.quote(str(value)) for name, value in {**vars(arguments), "folder": folder}.items()}
        for step, options in STEPS.items():
            rows.append(measure(step, options.format(**values)))
            print(f"{step}: {rows[-1]['seconds']:.1f} s, {rows[-1]['peak_megabytes']:.0f} MB", flush=True)
        tokens = json.loads((Path(folder) / "corpus.json").read_text())["tokens"]
    total = {name: sum(row[name] for row in rows) for name in ("seconds", "cpu_seconds")}
    rows.append({"step": "total", **total, "peak_megabytes": max(row["peak_megabytes"] for row in rows)})
    table = [
        {
            "step": row["step"],
            "tokens": tokens,
            "seconds": round(row["seconds"], 2),
            "cpu_seconds": round(row["cpu_seconds"], 2),
            "tokens_per_second": round(tokens / row["seconds"]),
            "peak_megabytes": round(row["peak_megabytes"]),
            "tokenizer": arguments.tokenizer,
            "machine": processor(),
            "cores": os.cpu_count(),
            "load_average": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
        }
        for row in rows
    ]
    write_csv(arguments.output, table, table[0])


if __name__ == "__main__":
    main()
