# SPDX-License-Identifier: MIT
"""Of several lines of one thing (rounds), the median counts: for tables.py and goals.py."""

import statistics

OURS = "tensorgrad"


def medians(lines, keys, value):
    """{keys' values: median of `value` over the lines that have it}, in order of first appearance."""
    found = {}
    for line in lines:
        if value in line:
            found.setdefault(tuple(line.get(key, "") for key in keys), []).append(line[value])
    return {key: statistics.median(values) for key, values in found.items()}


def is_step(line):
    return "us_per_step" in line and "measure" not in line
