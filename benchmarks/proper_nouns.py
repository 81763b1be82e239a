"""Precision and recall of the proper nouns found without a tagger, against Brown's tags (np, nps, fw-np, ...).

    python benchmarks/proper_nouns.py --brown resources/brown --output benchmarks/results/proper_nouns.csv

The thresholds are chosen on one half of Brown (every other file, from the first), by the best F1, and reported on the
other; each half is counted by itself, as a corpus is. Two rules without thresholds stand beside. `name_precision`
counts as right what is part of a name to Brown's tags in a wider sense: titles (-tl) and days and months (nr) too.
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import regex

from nplm.corpus.mapping import LINE_END, count_batches
from nplm.corpus.proper_nouns import Thresholds, Trait, decide, places, stem, traits
from nplm.corpus.tokenize import split_brown
from nplm.files import write_csv

PROPER = regex.compile(r"(?:fw-)?(?:[a-z]+\+)?nps?(?![a-z]).*")
NAME = regex.compile(rf"{PROPER.pattern}|.*-tl.*|nrs?(?![a-z]).*")
SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0)
GRID = [Thresholds(share, count) for count, share in product((1, 2, 3), SHARES)]


class Half:
    """Some files of Brown: their tokens, where each stands and what its tag is."""

    def __init__(self, files: list[Path]) -> None:
        words, tags = [], []
        for file in files:
            for line in file.read_text(encoding="utf-8").splitlines():
                words += [*split_brown(line), LINE_END]
                tags += [*(tagged.rpartition("/")[2] for tagged in line.split()), ""]
        self.cases = count_batches([words], Thresholds()).cases
        self.stems = [stem(word) for word in words]
        kind = np.array([traits(word) for word in words])
        self.capital = kind & Trait.CAPITAL != 0
        self.inside, _ = places(kind, np.array(words) == LINE_END, 0, Thresholds().headline_share)
        self.tokens = sum(tag != "" for tag in tags)
        self.proper = np.array([bool(PROPER.fullmatch(tag)) for tag in tags])
        self.name = np.array([bool(NAME.fullmatch(tag)) for tag in tags])

    def found(self, thresholds: Thresholds) -> np.ndarray:
        """Which tokens are proper nouns by the thresholds: bool [T]."""
        nouns = decide(self.cases, thresholds)
        return self.capital & np.array([word in nouns for word in self.stems])

    def row(self, rule: str, half: str, found: np.ndarray, thresholds: Thresholds | None) -> dict[str, object]:
        """What a rule finds, as a row of the table."""
        right = np.count_nonzero(found & self.proper)
        precision, recall = right / np.count_nonzero(found), right / np.count_nonzero(self.proper)
        return {
            "rule": rule,
            "share": thresholds and thresholds.share,
            "count": thresholds and thresholds.count,
            "half": half,
            "tokens": self.tokens,
            "proper_nouns": np.count_nonzero(self.proper),
            "found": np.count_nonzero(found),
            "precision": round(precision, 4),
            "recall": round(recall, 4),
            "f1": round(2 * precision * recall / (precision + recall), 4),
            "name_precision": round(np.count_nonzero(found & self.name) / np.count_nonzero(found), 4),
        }


def main() -> None:
    """Choose the thresholds, measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brown", type=Path, required=True, help="folder of ca01 ... cr09")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    files = sorted(arguments.brown.glob("c[a-r][0-9][0-9]"))
    halves = {"chosen on": Half(files[0::2]), "reported on": Half(files[1::2])}
    first = halves["chosen on"]
    chosen = max(GRID, key=lambda thresholds: first.row("", "", first.found(thresholds), thresholds)["f1"])
    rows = []
    for name, half in halves.items():
        rows.append(half.row("thresholds", name, half.found(chosen), chosen))
        rows.append(half.row("every capital inside a sentence", name, half.capital & half.inside, None))
        rows.append(half.row("every capital", name, half.capital, None))
    write_csv(arguments.output, rows, rows[0])
    for row in rows:
        print(f"{row['half']}: {row['rule']}: precision {row['precision']}, recall {row['recall']}, F1 {row['f1']}")


if __name__ == "__main__":
    main()
