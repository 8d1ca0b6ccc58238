"""Decode the blocks of a page, as its scripts do (python/whywait/report/html/blocks.py)."""

import base64
import json
import zlib

import numpy as np


def columns(text):
    """Return the columns of a block."""
    raw = zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS)
    start = 4 + int.from_bytes(raw[:4], "little")
    found = {}
    for name, kind, rows in json.loads(raw[4:start]):
        dtype = np.dtype(f"<{kind}")
        end = start + rows * dtype.itemsize
        planes = np.frombuffer(raw[start:end], np.uint8).reshape(dtype.itemsize, rows)
        found[name] = np.ascontiguousarray(planes.T).view(dtype).reshape(rows)
        start = end
    return found


def document(text):
    """Return the JSON of a block."""
    return json.loads(zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS))
