# SPDX-License-Identifier: MIT
"""The command-line tool tg. `program()` returns its path."""

import pathlib

__all__ = ["program"]


def program():
    """Returns the path of the executable tg."""
    return pathlib.Path(__file__).resolve().parent / "bin" / "tg"
