# SPDX-License-Identifier: MIT
"""Draws the chart of scaling_simulator.py as SVG."""

import math

COLORS = ["#4b8f43", "#3d6fb6", "#8a5fb0", "#c98a1b", "#7a7a7a", "#c0392b"]
WIDTH, HEIGHT = 820, 360      # of the image
PLOT_WIDTH, PLOT_HEIGHT = 330, 230
LEFT, TOP, STRIDE = 50, 50, 400


def svg(title, sizes, panels):
    """Returns an image with a panel for each (name, {line: values}). Values are from 0 to 1, one
    for each size. Sizes are powers of two, on a logarithmic axis."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f"<title>{title}</title>", '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="22" fill="#222" font-size="14" font-weight="bold">{title}</text>']
    last = math.log2(sizes[-1])
    for number, (name, lines) in enumerate(panels):
        left = LEFT + number * STRIDE
        bottom = TOP + PLOT_HEIGHT
        middle = left + PLOT_WIDTH / 2
        out.append(f'<text x="{middle:.1f}" y="{TOP - 8}" text-anchor="middle" fill="#222">{name}</text>')
        for tick in range(0, 11, 2):
            y = bottom - PLOT_HEIGHT * tick / 10
            out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + PLOT_WIDTH}" y2="{y:.1f}" stroke="#ddd"/>')
            out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{tick / 10:.1f}</text>')
        for size in sizes:
            x = left + PLOT_WIDTH * math.log2(size) / last
            out.append(f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 4}" stroke="#555"/>')
            if sizes.index(size) % 2 == 0:
                out.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle" fill="#555">{size}</text>')
        out.append(f'<text x="{middle:.1f}" y="{bottom + 34}" text-anchor="middle" fill="#555">'
                   "ranks</text>")
        out.append(f'<line x1="{left}" y1="{bottom}" x2="{left + PLOT_WIDTH}" y2="{bottom}" stroke="#555"/>')
        for color, values in zip(COLORS, lines.values(), strict=True):
            points = " ".join(f"{left + PLOT_WIDTH * math.log2(size) / last:.1f},{bottom - PLOT_HEIGHT * value:.1f}"
                              for size, value in zip(sizes, values, strict=True))
            out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
    x = LEFT
    for color, line in zip(COLORS, panels[0][1], strict=True):
        out.append(f'<line x1="{x}" y1="{HEIGHT - 18}" x2="{x + 18}" y2="{HEIGHT - 18}" stroke="{color}" '
                   'stroke-width="3"/>')
        out.append(f'<text x="{x + 23}" y="{HEIGHT - 14}" fill="#222">{line}</text>')
        x += 54 + 7 * len(line)
    return "\n".join([*out, "</svg>", ""])
