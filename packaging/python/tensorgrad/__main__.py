# SPDX-License-Identifier: MIT
"""Becomes the program tg: what pip's script `tg` and `python -m tensorgrad` run."""

import os
import sys

from tensorgrad import program


def main():
    tg = program()
    os.execv(tg, [str(tg), *sys.argv[1:]])


if __name__ == "__main__":
    main()
