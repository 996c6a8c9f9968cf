# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small networks of the common kinds, each with a batch: what the comparison of saved bytes and the
curves are made of."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Residual(nn.Module):
    """x + body(x)."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


class Attention(nn.Module):
    """Multi-head attention of (batch, tokens, width) to itself. dropout: of the weights."""

    def __init__(self, width: int, heads: int, causal: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        p = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(*parts, is_causal=self.causal, dropout_p=p)
        return self.out(mixed.transpose(1, 2).flatten(2))


class WrittenAttention(nn.Module):
    """The same as its formula says."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Gated(nn.Module):
    """SwiGLU (Shazeer 2020)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(width, hidden, False), nn.Linear(width, hidden, False)
        self.down = nn.Linear(hidden, width, False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Excite(nn.Module):
    """Squeeze and excitation of channels (Hu et al. 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(channels, channels // 4), nn.Linear(channels // 4, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.sigmoid(self.up(F.relu(self.down(x.mean((2, 3))))))
        return x * scale[:, :, None, None]


class Dense(nn.Module):
    """A layer of a DenseNet: channels grow."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, growth, 3, padding=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.conv(F.relu(self.norm(x)))], 1)


class Variational(nn.Module):
    """An autoencoder whose code is a normal distribution; noise is an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(196, 128), nn.ReLU(), nn.Linear(128, 32))
        self.decode = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 196))

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        mean, spread = self.encode(x).chunk(2, -1)
        found = torch.sigmoid(self.decode(mean + noise * torch.exp(0.5 * spread)))
        divergence = -0.5 * (1 + spread - mean**2 - spread.exp()).sum(-1).mean()
        return F.mse_loss(found, x) + 1e-3 * divergence


class Language(nn.Module):
    """A causal language model's loss over the tokens (batch, length)."""

    def __init__(self, *layers: nn.Module, width: int = 64, vocabulary: int = 97) -> None:
        super().__init__()
        self.embed, self.layers = nn.Embedding(vocabulary, width), nn.Sequential(*layers)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.layers(self.embed(tokens)))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def conv(channels: int, out: int, size: int = 3, **settings: int) -> nn.Conv2d:
    return nn.Conv2d(channels, out, size, padding=size // 2, bias=False, **settings)


def conv_block(channels: int, out: int, size: int = 3, **settings: int) -> nn.Sequential:
    return nn.Sequential(conv(channels, out, size, **settings), nn.BatchNorm2d(out), nn.ReLU())


def basic(channels: int) -> nn.Module:
    """A block of a ResNet."""
    last = nn.Sequential(conv(channels, channels), nn.BatchNorm2d(channels))
    return nn.Sequential(Residual(conv_block(channels, channels), last), nn.ReLU())


def pre_norm(width: int, attention: nn.Module, hidden: nn.Module, norm=nn.LayerNorm) -> nn.Module:
    return nn.Sequential(Residual(norm(width), attention), Residual(norm(width), hidden))


def feed_forward(width: int, activation: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 4 * width), activation, nn.Linear(4 * width, width))


def _images(channels: int = 3, size: int = 16, batch: int = 8) -> tuple[torch.Tensor, ...]:
    return (torch.rand(batch, channels, size, size),)


def _rows(*shape: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(*shape),)


def _tokens() -> tuple[torch.Tensor, ...]:
    return (torch.randint(0, 97, (4, 32)),)


def _head(channels: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]


def _mobile() -> nn.Module:
    body = [conv_block(16, 64, 1), conv_block(64, 64, groups=64), conv(64, 16, 1)]
    return nn.Sequential(conv(3, 16), Residual(*body, nn.BatchNorm2d(16)), *_head(16))


def _next() -> nn.Module:
    body = [conv(32, 32, 7, groups=32), nn.GroupNorm(1, 32), conv(32, 128, 1), nn.GELU()]
    return nn.Sequential(nn.Conv2d(3, 32, 4, 4), Residual(*body, conv(128, 32, 1)), *_head(32))


def _auto() -> nn.Module:
    down = [nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()]
    up = [nn.ConvTranspose2d(32, 16, 2, 2), nn.ReLU(), nn.ConvTranspose2d(16, 1, 2, 2)]
    return nn.Sequential(*down, *up, nn.Sigmoid())


def _layer(**settings) -> nn.Module:
    return nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, **settings)


MODELS: dict[str, Callable[[], Made]] = {
    "mlp relu": lambda: (_mlp(nn.ReLU), _rows(32, 196)),
    "mlp tanh": lambda: (_mlp(nn.Tanh), _rows(32, 196)),
    "mlp gelu": lambda: (_mlp(nn.GELU), _rows(32, 196)),
    "mlp silu, layer norm": lambda: (_mlp(nn.SiLU, nn.LayerNorm), _rows(32, 196)),
    "mlp batch norm": lambda: (_mlp(nn.ReLU, nn.BatchNorm1d), _rows(32, 196)),
    "gated mlp": lambda: (Residual(nn.LayerNorm(64), Gated(64, 160)), _rows(64, 64)),
    "cnn": lambda: (
        nn.Sequential(conv_block(3, 16), nn.MaxPool2d(2), conv_block(16, 32), *_head(32)),
        _images(),
    ),
    "resnet": lambda: (
        nn.Sequential(conv_block(3, 16), basic(16), basic(16), *_head(16)),
        _images(),
    ),
    "mobile": lambda: (_mobile(), _images()),
    "convnext": lambda: (_next(), _images()),
    "densenet": lambda: (
        nn.Sequential(conv(3, 16), Dense(16, 8), Dense(24, 8), Dense(32, 8), *_head(40)),
        _images(),
    ),
    "squeeze": lambda: (
        nn.Sequential(conv_block(3, 32), Excite(32), conv_block(32, 32), *_head(32)),
        _images(),
    ),
    "autoencoder": lambda: (_auto(), _images(1, 28)),
    "variational": lambda: (Variational(), (torch.rand(32, 196), torch.randn(32, 16))),
    "encoder layer": lambda: (_layer(dropout=0.0), _rows(4, 32, 64)),
    "encoder layer, norm first": lambda: (
        _layer(dropout=0.0, norm_first=True, activation="gelu"),
        _rows(4, 32, 64),
    ),
    "written attention": lambda: (WrittenAttention(64, 4), _rows(4, 32, 64)),
    "gpt": lambda: (
        Language(pre_norm(64, Attention(64, 4, True), feed_forward(64, nn.GELU("tanh")))),
        _tokens(),
    ),
    "llama": lambda: (
        Language(pre_norm(64, Attention(64, 4, True), Gated(64, 160), nn.RMSNorm)),
        _tokens(),
    ),
    "vit": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 64, 4, 4),
            nn.Flatten(2),
            Transposed(),
            pre_norm(64, Attention(64, 4), feed_forward(64, nn.GELU())),
            nn.LayerNorm(64),
        ),
        _images(),
    ),
    "mixer": lambda: (
        nn.Sequential(
            Residual(nn.LayerNorm(64), Transposed(), feed_forward(16, nn.GELU()), Transposed()),
            Residual(nn.LayerNorm(64), feed_forward(64, nn.GELU())),
        ),
        _rows(8, 16, 64),
    ),
    "group norm": lambda: (
        nn.Sequential(
            conv(3, 32),
            Residual(nn.GroupNorm(8, 32), nn.SiLU(), conv(32, 32), nn.GroupNorm(8, 32), nn.SiLU()),
            *_head(32),
        ),
        _images(),
    ),
}


class Transposed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2)


def _mlp(activation: type[nn.Module], norm: type[nn.Module] = nn.Identity) -> nn.Module:
    layers: list[nn.Module] = []
    for wide, narrow in ((196, 128), (128, 64)):
        layers += [nn.Linear(wide, narrow), norm(narrow), activation()]
    return nn.Sequential(*layers, nn.Linear(64, 10))
