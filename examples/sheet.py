# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A picture of images with their labels and predictions."""

from __future__ import annotations

import torch
from PIL import Image, ImageDraw

from examples.fashion_mnist import CLASSES


def draw_sheet(
    images: torch.Tensor, labels: torch.Tensor, predicted: torch.Tensor, columns: int = 6
) -> Image.Image:
    """The images in rows; under each its label and, in green or red, the prediction."""
    size, caption, gap = 112, 30, 8
    cell_width, cell_height = size + gap, size + caption + gap
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (columns * cell_width + gap, rows * cell_height + gap), "white")
    draw = ImageDraw.Draw(sheet)
    for number, (image, label, guess) in enumerate(zip(images, labels, predicted, strict=True)):
        left = gap + number % columns * cell_width
        top = gap + number // columns * cell_height
        pixels = 255 - (image.squeeze(0) * 255).to(torch.uint8)
        picture = Image.fromarray(pixels.numpy()).resize((size, size), Image.Resampling.NEAREST)
        sheet.paste(picture, (left, top))
        draw.text((left, top + size), CLASSES[label], "black")
        color = "green" if bool(label == guess) else "red"
        draw.text((left, top + size + 13), f"as {CLASSES[guess]}", color)
    return sheet
