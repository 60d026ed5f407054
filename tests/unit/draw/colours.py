"""Colours of styles, and how well they can be told apart: contrast after WCAG 2.2, distance after CIEDE2000.

Colour-blind eyes are simulated with the matrices of Machado, Oliveira and Fernandes (2009) at full severity.
"""

from __future__ import annotations

import math
import re

Colour = tuple[float, float, float]
"""Red, green and blue from 0 to 1."""

THEMES = {"light": 0, "dark": 1}
EYES = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def tokens(styles: str) -> dict[str, tuple[Colour, Colour]]:
    """Name -> light and dark."""
    found = re.findall(r"--([\w-]+): light-dark\(#(\w{6}), #(\w{6})\)", styles)
    return {name: (parsed(light), parsed(dark)) for name, light, dark in found}


def parsed(text: str) -> Colour:
    red, green, blue = (int(text[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return red, green, blue


def _linear(rgb: Colour) -> Colour:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb)
    return red, green, blue


def luminance(rgb: Colour) -> float:
    red, green, blue = _linear(rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def mixed(over: Colour, under: Colour, share: float) -> Colour:
    red, green, blue = (share * top + (1 - share) * ground for top, ground in zip(over, under, strict=True))
    return red, green, blue


def lab(rgb: Colour, eye: str = "normal") -> Colour:
    """CIE L*a*b* under D65, as an eye sees it."""
    linear = _linear(rgb)
    red, green, blue = (
        min(1, max(0, sum(weight * part for weight, part in zip(row, linear, strict=True)))) for row in EYES[eye]
    )
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    fx, fy, fz = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def distance(one: Colour, other: Colour) -> float:
    """CIEDE2000 of two colours given as L*a*b*."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_c = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(mean_c**7 / (mean_c**7 + 25**7)))
    c1, c2 = math.hypot(a1 * (1 + g), b1), math.hypot(a2 * (1 + g), b2)
    h1, h2 = _hue(a1 * (1 + g), b1), _hue(a2 * (1 + g), b2)
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    dl, dc, dh = l2 - l1, c2 - c1, 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn) / 2)
    ml, mc = (l1 + l2) / 2, (c1 + c2) / 2
    mh = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    t = 1 - 0.17 * _cos(mh - 30) + 0.24 * _cos(2 * mh) + 0.32 * _cos(3 * mh + 6) - 0.20 * _cos(4 * mh - 63)
    sl, sc, sh = 1 + 0.015 * (ml - 50) ** 2 / math.sqrt(20 + (ml - 50) ** 2), 1 + 0.045 * mc, 1 + 0.015 * mc * t
    rotation = (
        -2 * math.sqrt(mc**7 / (mc**7 + 25**7)) * math.sin(math.radians(60 * math.exp(-(((mh - 275) / 25) ** 2))))
    )
    return math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rotation * (dc / sc) * (dh / sh))


def _hue(a: float, b: float) -> float:
    return math.degrees(math.atan2(b, a)) % 360 if a or b else 0.0


def _cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))
