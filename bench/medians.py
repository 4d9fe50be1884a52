# SPDX-License-Identifier: MIT
"""Medians over the lines of the same measurement (rounds), for tables.py and goals.py."""

import statistics

OURS = "tensorgrad"


def medians(lines, keys, value):
    """Returns {values of `keys`: median of `value` over the lines that have it}, in order of first
    appearance."""
    found = {}
    for line in lines:
        if value in line:
            found.setdefault(tuple(line.get(key, "") for key in keys), []).append(line[value])
    return {key: statistics.median(values) for key, values in found.items()}


def is_step(line):
    return "us_per_step" in line and "measure" not in line
