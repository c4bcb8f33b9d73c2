"""Pictures of digits: a bitmap font, moved, blurred and made noisy; 12 by 12 numbers in [0, 1]."""

from __future__ import annotations

import wengert as torch
import wengert.nn.functional as F

SIZE = 12
FONT = (
    "01110100011001110101110011000101110",
    "00100011000010000100001000010001110",
    "01110100010000100010001000100011111",
    "11111000100010000010000011000101110",
    "00010001100101010010111110001000010",
    "11111100001111000001000011000101110",
    "00110010001000011110100011000101110",
    "11111000010001000100010000100001000",
    "01110100011000101110100011000101110",
    "01110100011000101111000010001001100",
)


def digits(count: int, noise: float = 0.1) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of shape (count, 1, 12, 12) and the digits they show."""
    font = torch.tensor([[float(c) for c in row] for row in FONT]).view(10, 7, 5)
    labels = torch.randint(10, (count,))
    images = torch.zeros(count, 1, SIZE, SIZE)
    places = torch.randint(0, 4, (count, 2))
    for k in range(count):
        top, left = 1 + int(places[k, 0]), 2 + int(places[k, 1])
        images[k, 0, top : top + 7, left : left + 5] = font[labels[k]]
    blur = torch.tensor([[0.05, 0.1, 0.05], [0.1, 0.6, 0.1], [0.05, 0.1, 0.05]]).view(1, 1, 3, 3)
    images = F.conv2d(images, blur, padding=1)
    return (images + noise * torch.randn_like(images)).clamp(0, 1), labels
