"""The scattering transform of small images (Bruna, Mallat 2013): a fixed function of an image, without learning.

Moduli of convolutions with Morlet wavelets of 2 scales and 8 angles, and moduli of convolutions of those of the first
scale with wavelets of the second, are averaged by a Gaussian and sampled on a 7 x 7 grid, beside the averaged image:
1 + 16 + 64 channels. Images of 28 x 28 pixels, framed with zeros, are periodic with 32 pixels.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final

import torch
from torch.nn import functional

SIDE, FRAMED, GRID, ANGLES = 28, 32, 7, 8
CHANNELS: Final = 1 + 2 * ANGLES + ANGLES**2
WIDTH: Final = 0.8
"""Deviation of the envelope of the finest wavelet, in pixels; it doubles with the scale."""
SLANT: Final = 4 / ANGLES
"""How much longer an envelope is along its waves' crests: 1 / SLANT times."""
FREQUENCY: Final = 3 * math.pi / 4
"""Central frequency of the finest wavelet; it halves with the scale."""


def scattering(images: Any) -> Any:
    """Return images [n, 28, 28] as channels on a grid, [n, 81, 7, 7]."""
    fine, coarse = _wavelets(0), _wavelets(1)
    edge = (FRAMED - SIDE) // 2
    framed = functional.pad(images, (edge,) * 4)[:, None]
    spectrum = torch.fft.fft2(framed)
    finest = torch.fft.ifft2(spectrum * fine).abs()
    coarser = _halved(spectrum * coarse).abs()
    of_finest = _halved(torch.fft.fft2(finest)[:, :, None] * coarse).abs().flatten(1, 2)
    return torch.cat([_averaged(maps) for maps in (framed, finest, coarser, of_finest)], dim=1)


@cache
def _wavelets(scale: int) -> Any:
    """Return the Fourier transforms of Morlet wavelets of one scale, one for each angle; each has the mean 0."""
    deviation, frequency = WIDTH * 2**scale, FREQUENCY / 2**scale
    copies = 2 * math.pi * (torch.arange(FRAMED)[:, None] / FRAMED + torch.arange(-3, 3))
    down, right = copies[:, None, :, None], copies[None, :, None, :]
    found = []
    for angle in range(ANGLES):
        cosine, sine = math.cos(math.pi * angle / ANGLES), math.sin(math.pi * angle / ANGLES)
        along, across = cosine * right + sine * down, (cosine * down - sine * right) / SLANT
        envelope, shifted = (torch.exp(-(deviation**2) / 2 * ((along - f) ** 2 + across**2)) for f in (0.0, frequency))
        periodic, waves = envelope.sum(dim=(2, 3)), shifted.sum(dim=(2, 3))
        found.append(waves - waves[0, 0] / periodic[0, 0] * periodic)
    return torch.stack(found)


def _halved(spectrum: Any) -> Any:
    """Return every second value of the images of spectra, by folding the spectra."""
    half = FRAMED // 2
    folded = spectrum.unflatten(-1, (2, half)).mean(-2).unflatten(-2, (2, half)).mean(-3)
    return torch.fft.ifft2(folded)


def _averaged(maps: Any) -> Any:
    """Return maps, of every pixel or every second one, averaged around the points of the grid."""
    step, spacing = FRAMED // maps.shape[-1], SIDE / GRID
    pixels = torch.arange(maps.shape[-1]) * step - (FRAMED - 1) / 2
    points = (torch.arange(GRID) - (GRID - 1) / 2) * spacing
    weights = torch.exp(-(((pixels - points[:, None]) / (2 * WIDTH)) ** 2) / 2)
    weights = weights / weights.sum(dim=1, keepdim=True)
    return weights @ maps @ weights.T
