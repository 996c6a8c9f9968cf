# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rates as an SVG of horizontal bars, the same for the same numbers."""

from __future__ import annotations

from html import escape
from pathlib import Path

_WIDTH, _ROW, _LEFT, _RIGHT, _TOP = 720, 24, 150, 90, 34


def draw(rates: dict[str, float], peak: float, caption: str, path: Path) -> None:
    """rates, peak: GFLOP/s; the peak is a line across the bars."""
    scale = (_WIDTH - _LEFT - _RIGHT) / max(peak, *rates.values())
    height = _TOP + _ROW * len(rates) + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, (name, rate) in enumerate(rates.items()):
        top, width = _TOP + number * _ROW, rate * scale
        lines += [
            f'<text x="{_LEFT - 8}" y="{top + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{_LEFT}" y="{top + 4}" width="{width:.1f}" height="{_ROW - 8}" '
            f'fill="{"#4477aa" if not name.startswith(("torch", "numpy")) else "#bbbbbb"}"/>',
            f'<text x="{_LEFT + width + 5:.1f}" y="{top + 15}">{rate:.0f}</text>',
        ]
    end, line = _TOP + _ROW * len(rates), _LEFT + peak * scale
    lines += [
        f'<line x1="{line:.1f}" y1="{_TOP - 6}" x2="{line:.1f}" y2="{end}" stroke="black" '
        'stroke-dasharray="4 3"/>',
        f'<text x="{line:.1f}" y="{_TOP - 12}" text-anchor="middle">peak {peak:.0f}</text>',
        f'<text x="{_LEFT}" y="{end + 20}" font-size="11">{escape(caption)}</text>',
        "</svg>",
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
