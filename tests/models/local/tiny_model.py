"""Writes the smallest model that llama.cpp loads: one layer of random weights, with a token for each byte.

What it says makes no sense, but it is said by the real server, at once and without a download.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CONTEXT = 32768
_WIDTH, _HIDDEN, _HEADS = 32, 64, 2
_ALIGNMENT = 32
_RANDOM = ("token_embd.weight", "output.weight")
_U32, _I32, _F32, _BOOL, _TEXT, _LIST = 4, 5, 6, 7, 8, 9
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6


def write_tiny_model(path: Path, context: int = CONTEXT) -> Path:
    """Write the model and return its path."""
    # The first after the bytes stands for a space.
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, _NORMAL]
    fields: dict[str, tuple[int, Any]] = {
        "general.architecture": (_TEXT, "llama"),
        "llama.context_length": (_U32, context),
        "llama.embedding_length": (_U32, _WIDTH),
        "llama.block_count": (_U32, 1),
        "llama.feed_forward_length": (_U32, _HIDDEN),
        "llama.attention.head_count": (_U32, _HEADS),
        "llama.attention.layer_norm_rms_epsilon": (_F32, 1e-5),
        "llama.rope.dimension_count": (_U32, _WIDTH // _HEADS),
        "tokenizer.ggml.model": (_TEXT, "llama"),
        "tokenizer.ggml.tokens": (_LIST, (_TEXT, tokens)),
        "tokenizer.ggml.scores": (_LIST, (_F32, [0.0] * len(tokens))),
        "tokenizer.ggml.token_type": (_LIST, (_I32, kinds)),
        "tokenizer.ggml.add_space_prefix": (_BOOL, False),
        "tokenizer.ggml.bos_token_id": (_U32, 1),
        "tokenizer.ggml.eos_token_id": (_U32, 2),
    }
    square, wide = (_WIDTH, _WIDTH), (_WIDTH, _HIDDEN)
    tensors: dict[str, Sequence[int]] = {
        "token_embd.weight": (_WIDTH, len(tokens)),
        "output.weight": (_WIDTH, len(tokens)),
        "output_norm.weight": (_WIDTH,),
        "blk.0.attn_norm.weight": (_WIDTH,),
        **{f"blk.0.attn_{name}.weight": square for name in ("q", "k", "v", "output")},
        "blk.0.ffn_norm.weight": (_WIDTH,),
        "blk.0.ffn_gate.weight": wide,
        "blk.0.ffn_up.weight": wide,
        "blk.0.ffn_down.weight": (_HIDDEN, _WIDTH),
    }
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    head += b"".join(
        _text(name) + struct.pack("<I", kind) + _value(kind, value) for name, (kind, value) in fields.items()
    )
    data = b""
    draw = random.Random(0)
    for name, shape in tensors.items():
        size = 1
        for length in shape:
            size *= length
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        weights = [draw.gauss(0, 0.3) if name.endswith(_RANDOM) else 0.0 for _ in range(size)]
        if "norm" in name:
            weights = [1.0] * size
        # The first number of every state is the same, and keeps the model from bytes that are no text by themselves.
        if name == "token_embd.weight":
            weights[::_WIDTH] = [5.0] * len(tokens)
        elif name == "output.weight":
            weights[::_WIDTH] = [0.0 if token == "</s>" or _is_text(token) else -30.0 for token in tokens]
        data += _pad(struct.pack(f"<{size}f", *weights))
    path.write_bytes(_pad(head) + data)
    return path


def _is_text(token: str) -> bool:
    return token == "\u2581" or (token.startswith("<0x") and 32 <= int(token[3:5], 16) < 127)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(kind: int, value: Any) -> bytes:
    if kind == _TEXT:
        return _text(value)
    if kind == _LIST:
        of, values = value
        return struct.pack("<IQ", of, len(values)) + b"".join(_value(of, each) for each in values)
    return struct.pack({_U32: "<I", _F32: "<f", _I32: "<i", _BOOL: "<?"}[kind], value)


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
