"""HTML that notebooks show: a heading, a table of values, and a picture, without scripts."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping
from html import escape

import numpy as np

from mercer.array_types import Array

# blue, white, red: sign and size at a glance, also for people who do not tell red from green
_COLOURS = np.array([[33, 102, 172], [247, 247, 247], [178, 24, 43]], dtype=float)


def page(title: str, values: Mapping[str, str], text: str = "", picture: str = "") -> str:
    """Write a heading, a text, a picture and a table of names and values."""
    cell = "style='text-align:left;padding:1px 12px 1px 0'"
    rows = "".join(
        f"<tr><td {cell}>{escape(name)}</td><td {cell}>{escape(value)}</td></tr>"
        for name, value in values.items()
    )
    said = f"<div>{escape(text)}</div>" if text else ""
    table = f"<table>{rows}</table>" if rows else ""
    return f"<div><strong>{escape(title)}</strong>{said}{picture}{table}</div>"


def matrix_picture(matrix: Array, side: int = 120) -> str:
    """Draw a matrix as an image, largest entry red, zero white, negative ones blue."""
    most = float(np.abs(matrix).max(initial=0.0)) or 1.0
    at = 1.0 + matrix / most
    colours = [np.interp(at, [0.0, 1.0, 2.0], channel) for channel in _COLOURS.T]
    address = png_address(np.stack(colours, axis=-1).round().astype(np.uint8))
    style = f"width:{side}px;height:{side}px;image-rendering:pixelated;margin:4px"
    return f"<img alt='matrix' style='{style}' src='{address}'>"


def curve_picture(x: Array, y: Array, width: int = 180, height: int = 120) -> str:
    """Draw a curve, with the axis y = 0."""
    low, high = min(0.0, float(y.min())), max(0.0, float(y.max()))
    across = (x - x[0]) / (x[-1] - x[0]) * width
    down = (high - y) / ((high - low) or 1.0) * (height - 8) + 4
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    axis = high / ((high - low) or 1.0) * (height - 8) + 4
    return (
        f"<svg width='{width}' height='{height}' style='margin:4px'>"
        f"<line x1='0' x2='{width}' y1='{axis:.1f}' y2='{axis:.1f}' stroke='#999'/>"
        f"<polyline points='{points}' fill='none' stroke='#2166ac' stroke-width='2'/></svg>"
    )


def png_address(pixels: Array) -> str:
    """Return an image (height, width, 3 or 4) of bytes as an address that holds its PNG."""
    return f"data:image/png;base64,{b64encode(_png(pixels)).decode()}"


def _png(pixels: Array) -> bytes:
    """Write an image (height, width, 3 or, with opacity, 4) of bytes as PNG."""
    height, width, channels = pixels.shape
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 6 if channels == 4 else 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
