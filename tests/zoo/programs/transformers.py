"""Transformer families with Flax nnx and plain JAX: BERT, GPT, Llama, T5, ViT, Whisper, mixture of experts, Mamba, diffusion U-Net."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from programs.flax_nnx import module, rows, tokens


class Attention(nnx.Module):
    """Multi-head attention, on request with rotary positions, fewer heads of keys, relative positions or a causal mask."""

    def __init__(self, width, heads, rngs, groups=None, rotary=False, causal=False, bias=True, relative=False):
        self.heads, self.groups, self.rotary, self.causal = heads, groups or heads, rotary, causal
        self.size = width // heads
        self.q = nnx.Linear(width, heads * self.size, use_bias=bias, rngs=rngs)
        self.k = nnx.Linear(width, self.groups * self.size, use_bias=bias, rngs=rngs)
        self.v = nnx.Linear(width, self.groups * self.size, use_bias=bias, rngs=rngs)
        self.o = nnx.Linear(heads * self.size, width, use_bias=bias, rngs=rngs)
        self.relative = nnx.Embed(16, heads, rngs=rngs) if relative else None

    def __call__(self, x, memory=None):
        memory = x if memory is None else memory
        split = lambda a, heads: a.reshape(*a.shape[:2], heads, self.size)
        q, k, v = split(self.q(x), self.heads), split(self.k(memory), self.groups), split(self.v(memory), self.groups)
        if self.rotary:
            q, k = rotate(q), rotate(k)
        k, v = (jnp.repeat(a, self.heads // self.groups, 2) for a in (k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(np.sqrt(self.size))
        if self.relative is not None:
            distance = jnp.clip(jnp.arange(k.shape[1])[None] - jnp.arange(q.shape[1])[:, None], -8, 7) + 8
            scores = scores + self.relative(distance).transpose(2, 0, 1)
        if self.causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, np.finfo(np.float32).min)
        out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
        return self.o(out.reshape(*x.shape[:2], -1))


def rotate(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * (10000.0 ** (-jnp.arange(half) / half))
    sin, cos = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


class Block(nnx.Module):
    """A layer with norms in front, on request with cross attention; `kind` chooses the feed-forward part."""

    def __init__(self, width, heads, rngs, kind="gelu", norm=nnx.LayerNorm, cross=False, **attention):
        self.n1, self.n2 = norm(width, rngs=rngs), norm(width, rngs=rngs)
        self.attention = Attention(width, heads, rngs, **attention)
        self.cross = Attention(width, heads, rngs, bias=attention.get("bias", True)) if cross else None
        self.n3 = norm(width, rngs=rngs) if cross else None
        self.kind = kind
        self.f1 = nnx.Linear(width, 3 * width, rngs=rngs)
        self.f2 = nnx.Linear(3 * width, width, rngs=rngs)
        self.gate = nnx.Linear(width, 3 * width, rngs=rngs) if kind == "swiglu" else None

    def __call__(self, x, memory=None):
        x = x + self.attention(self.n1(x))
        if self.cross is not None:
            x = x + self.cross(self.n3(x), memory)
        y = self.n2(x)
        if self.kind == "swiglu":
            return x + self.f2(jax.nn.silu(self.gate(y)) * self.f1(y))
        return x + self.f2((jax.nn.relu if self.kind == "relu" else jax.nn.gelu)(self.f1(y)))


class Bert(nnx.Module):
    def __init__(self, rngs, classes=7):
        self.token, self.position = nnx.Embed(97, 14, rngs=rngs), nnx.Embed(64, 14, rngs=rngs)
        self.segment = nnx.Embed(2, 14, rngs=rngs)
        self.norm = nnx.LayerNorm(14, rngs=rngs)
        self.blocks = nnx.List([Block(14, 2, rngs) for _ in range(2)])
        self.pool, self.head = nnx.Linear(14, 14, rngs=rngs), nnx.Linear(14, classes, rngs=rngs)

    def __call__(self, ids):
        x = self.token(ids) + self.position(jnp.arange(ids.shape[1])) + self.segment(ids % 2)
        x = self.norm(x)
        for block in self.blocks:
            x = block(x)
        return jax.nn.softmax(self.head(jnp.tanh(self.pool(x[:, 0]))))


class Gpt(nnx.Module):
    """Decoder with tied embeddings; with `llama`, RMS norms, rotary positions, grouped keys and SwiGLU."""

    def __init__(self, rngs, vocabulary=101, llama=False):
        self.token = nnx.Embed(vocabulary, 20, rngs=rngs)
        self.position = None if llama else nnx.Embed(64, 20, rngs=rngs)
        style = dict(kind="swiglu", norm=nnx.RMSNorm, groups=2, rotary=True, bias=False) if llama else {}
        self.blocks = nnx.List([Block(20, 2 if not llama else 10, rngs, causal=True, **(style | ({"groups": 5} if llama else {}))) for _ in range(2)])
        self.norm = (nnx.RMSNorm if llama else nnx.LayerNorm)(20, rngs=rngs)

    def __call__(self, ids):
        x = self.token(ids)
        if self.position is not None:
            x = x + self.position(jnp.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return jax.nn.log_softmax(self.token.attend(self.norm(x)))


class T5(nnx.Module):
    def __init__(self, rngs):
        self.token = nnx.Embed(100, 14, rngs=rngs)
        style = dict(kind="relu", norm=nnx.RMSNorm, bias=False, relative=True)
        self.encoder = Block(14, 2, rngs, **style)
        self.decoder = Block(14, 2, rngs, cross=True, causal=True, **style)

    def __call__(self, source, target):
        memory = self.encoder(self.token(source))
        return jax.nn.log_softmax(self.token.attend(self.decoder(self.token(target), memory)))


class ViT(nnx.Module):
    def __init__(self, rngs, classes):
        self.patch = nnx.Conv(3, 15, (4, 4), (4, 4), padding="VALID", rngs=rngs)
        self.cls = nnx.Param(jnp.zeros((1, 1, 15)))
        self.position = nnx.Param(jnp.zeros((1, 17, 15)))
        self.block = Block(15, 3, rngs)
        self.head = nnx.Linear(15, classes, rngs=rngs)

    def __call__(self, x):
        x = self.patch(x).reshape(x.shape[0], 16, 15)
        x = jnp.concatenate([jnp.broadcast_to(self.cls[...], (x.shape[0], 1, 15)), x], 1) + self.position[...]
        return jax.nn.softmax(self.head(self.block(x)[:, 0]))


class Whisper(nnx.Module):
    """Convolutions over a spectrogram, an encoder, and a decoder that attends to it."""

    def __init__(self, rngs):
        self.c1 = nnx.Conv(11, 14, (3,), rngs=rngs)
        self.c2 = nnx.Conv(14, 14, (3,), (2,), rngs=rngs)
        self.encoder, self.decoder = Block(14, 2, rngs), Block(14, 2, rngs, cross=True, causal=True)
        self.token = nnx.Embed(51, 14, rngs=rngs)

    def __call__(self, sound, ids):
        x = jax.nn.gelu(self.c2(jax.nn.gelu(self.c1(sound))))
        angle = jnp.arange(x.shape[1])[:, None] * jnp.exp(-jnp.arange(7.0))
        memory = self.encoder(x + jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1))
        return jax.nn.log_softmax(self.token.attend(self.decoder(self.token(ids), memory)))


class Mixture(nnx.Module):
    """Two of five experts for each token: by dense masks, or by sorting tokens into slots of limited capacity."""

    def __init__(self, rngs, capacity=None):
        self.capacity = capacity
        self.router = nnx.Linear(9, 5, rngs=rngs)
        self.w1 = nnx.Param(jnp.zeros((5, 9, 17)))
        self.w2 = nnx.Param(jnp.zeros((5, 17, 9)))

    def __call__(self, x):
        flat = x.reshape(-1, 9)
        probability = jax.nn.softmax(self.router(flat))
        weight, expert = jax.lax.top_k(probability, 2)
        weight = weight / weight.sum(-1, keepdims=True)
        if self.capacity is None:
            gate = (jax.nn.one_hot(expert, 5) * weight[..., None]).sum(1)
            hidden = jax.nn.gelu(jnp.einsum("td,edh->teh", flat, self.w1[...]))
            return x + jnp.einsum("teh,ehd,te->td", hidden, self.w2[...], gate).reshape(x.shape)
        chosen = jax.nn.one_hot(expert.reshape(-1), 5, dtype=jnp.int32)
        slot = (jnp.cumsum(chosen, 0) * chosen).sum(-1) - 1
        used = slot < self.capacity
        places = jnp.zeros((5, self.capacity, 9)).at[expert.reshape(-1), slot].add(jnp.repeat(flat, 2, 0), mode="drop")
        out = jnp.einsum("ech,ehd->ecd", jax.nn.gelu(jnp.einsum("ecd,edh->ech", places, self.w1[...])), self.w2[...])
        back = jnp.where(used[:, None], out.at[expert.reshape(-1), slot].get(mode="clip"), 0) * weight.reshape(-1, 1)
        return x + back.reshape(-1, 2, 9).sum(1).reshape(x.shape)


class Mamba(nnx.Module):
    """Selective state space: causal depthwise convolution, gates, and a scan, in order or associative."""

    def __init__(self, rngs, associative):
        self.associative = associative
        self.inner = nnx.Linear(7, 22, rngs=rngs)
        self.conv = nnx.Conv(11, 11, (4,), padding="CAUSAL", feature_group_count=11, rngs=rngs)
        self.step, self.b, self.c = (nnx.Linear(11, n, rngs=rngs) for n in (11, 5, 5))
        self.decay = nnx.Param(jnp.zeros((11, 5)))
        self.out = nnx.Linear(11, 7, rngs=rngs)

    def __call__(self, x):
        u, gate = jnp.split(self.inner(x), 2, -1)
        u = jax.nn.silu(self.conv(u))
        step = jax.nn.softplus(self.step(u))[..., None]
        decay = jnp.exp(-step * jnp.exp(self.decay[...]))
        add = step * self.b(u)[:, :, None, :] * u[..., None]
        if self.associative:
            combine = lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1])
            states = jax.lax.associative_scan(combine, (decay, add), axis=1)[1]
        else:
            def go(h, da):
                h = da[0] * h + da[1]
                return h, h
            swap = lambda a: a.swapaxes(0, 1)
            states = swap(jax.lax.scan(go, jnp.zeros_like(add[:, 0]), (swap(decay), swap(add)))[1])
        y = (states * self.c(u)[:, :, None, :]).sum(-1)
        return x + self.out(y * jax.nn.silu(gate))


class UNet(nnx.Module):
    """Denoising network: time embedding, group norms, attention at the low resolution, a skip connection."""

    def __init__(self, rngs):
        self.time = nnx.Linear(10, 9, rngs=rngs)
        self.into, self.down = nnx.Conv(3, 9, (3, 3), rngs=rngs), nnx.Conv(9, 9, (3, 3), (2, 2), rngs=rngs)
        self.n1, self.n2 = nnx.GroupNorm(9, 3, rngs=rngs), nnx.GroupNorm(9, 3, rngs=rngs)
        self.attention = Attention(9, 3, rngs)
        self.up = nnx.ConvTranspose(9, 9, (3, 3), (2, 2), rngs=rngs)
        self.out = nnx.Conv(18, 3, (3, 3), rngs=rngs)

    def __call__(self, x, t):
        angle = t[:, None] * jnp.exp(-jnp.arange(5.0))
        time = self.time(jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1))[:, None, None]
        high = jax.nn.silu(self.n1(self.into(x))) + time
        low = jax.nn.silu(self.n2(self.down(high)))
        b, h, w, c = low.shape
        low = low + self.attention(low.reshape(b, h * w, c)).reshape(low.shape)
        return self.out(jnp.concatenate([high, self.up(low)[:, : x.shape[1], : x.shape[2]]], -1))


def register(zoo):
    for batch, length in [(1, 1), (1, 5), (2, 33), (3, 7)]:
        ids, more = tokens(97, batch, length), tokens(97, batch, length + 2)
        size = f"b{batch}_t{length}"
        zoo.model(f"bert.{size}", module(Bert, ids), batch)
        zoo.model(f"gpt.{size}", module(Gpt, ids), batch)
        zoo.model(f"gpt_vocabulary_1000.{size}", module(lambda rngs: Gpt(rngs, 1000), ids), batch, kinds=("forward",))
        zoo.model(f"llama.{size}", module(lambda rngs: Gpt(rngs, llama=True), ids), batch)
        zoo.model(f"t5.{size}", module(T5, ids, more), batch)
        zoo.model(f"whisper.{size}", module(Whisper, rows(batch, 2 * length + 1, 11), tokens(51, batch, length)), batch)
        zoo.model(f"mixture.{size}", module(Mixture, rows(batch, length, 9)), batch)
        zoo.model(f"mixture_capacity.{size}", module(lambda rngs: Mixture(rngs, 3), rows(batch, length, 9)), batch)
        zoo.model(f"mamba.{size}", module(lambda rngs: Mamba(rngs, False), rows(batch, length, 7)), batch)
        zoo.model(f"mamba_associative.{size}", module(lambda rngs: Mamba(rngs, True), rows(batch, length, 7)), batch)
    for batch, classes in [(1, 10), (1, 100), (2, 97), (3, 1001)]:
        zoo.model(f"vit.b{batch}_c{classes}", module(lambda rngs, c=classes: ViT(rngs, c), rows(batch, 16, 16, 3)), batch)
    for batch in (1, 2, 3):
        zoo.model(f"diffusion_unet.b{batch}", module(UNet, rows(batch, 9, 7, 3), rows(batch)), batch)
