"""Files of tensors, written and read anew from the description of the format."""

import json
import struct

from torch import Tensor

CODES = {"F32": ("f", 4), "BOOL": ("?", 1)}


def save_file(tensors, path):
    header, data = {}, b""
    for name, t in tensors.items():
        packed = struct.pack(f"<{len(t.values)}{CODES[t.dtype][0]}", *t.values)
        header[name] = {"dtype": t.dtype, "shape": t.shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def load_file(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    out = {}
    for name, t in header.items():
        code, width = CODES[t["dtype"]]
        start, end = t["data_offsets"]
        values = list(struct.unpack(f"<{(end - start) // width}{code}", data[start:end]))
        out[name] = Tensor(values, t["shape"], t["dtype"])
    return out
