"""Models of the other modules in bf16 and f16: parameters and inputs narrowed, and mixed with f32."""

import jax
import jax.numpy as jnp
import numpy as np

from programs import equinox_models, flax_nnx, transformers
from programs.flax_nnx import module, rows, tokens


def narrowed(make, dtype, parameters_only=False):
    """`make` with floating-point parameters, and inputs unless `parameters_only`, of a narrow type."""

    def cast(tree):
        return jax.tree_util.tree_map(lambda a: np.asarray(a).astype(dtype) if np.asarray(a).dtype == np.float32 else a, tree)

    def made(random):
        apply, parameters, inputs = make(random)
        return apply, cast(parameters), inputs if parameters_only else cast(list(inputs))

    return made


TYPES = {"bf16": jnp.bfloat16, "f16": np.float16}


def register(zoo):
    for kind, dtype in TYPES.items():
        for batch, length in [(1, 5), (3, 7)]:
            ids, size = tokens(97, batch, length), f"b{batch}_t{length}"
            zoo.model(f"bert_{kind}.{size}", narrowed(module(transformers.Bert, ids), dtype), batch)
            zoo.model(f"llama_{kind}.{size}", narrowed(module(lambda rngs: transformers.Gpt(rngs, llama=True), ids), dtype), batch)
            zoo.model(f"mamba_{kind}.{size}", narrowed(module(lambda rngs: transformers.Mamba(rngs, False), rows(batch, length, 7)), dtype), batch)
        for batch, classes in [(1, 31), (1, 100), (2, 127), (3, 1001)]:
            mlp = flax_nnx.module(lambda rngs, c=classes: flax_nnx.MLP(rngs, c), rows(batch, 10))
            zoo.model(f"mlp_{kind}.b{batch}_c{classes}", narrowed(mlp, dtype), batch)
            zoo.model(f"mlp_mixed_{kind}.b{batch}_c{classes}", narrowed(mlp, dtype, True), batch, kinds=("forward",))
        for batch in (1, 3):
            cnn = flax_nnx.module(lambda rngs: flax_nnx.CNN(rngs, 17), rows(batch, 9, 13, 3))
            zoo.model(f"cnn_{kind}.b{batch}", narrowed(cnn, dtype), batch)
            unet = module(transformers.UNet, rows(batch, 9, 7, 3), rows(batch))
            zoo.model(f"diffusion_unet_{kind}.b{batch}", narrowed(unet, dtype), batch, kinds=("forward",))
            mixer = equinox_models.module(equinox_models.Mixer, rows(batch, 7, 10))
            zoo.model(f"mixer_{kind}.b{batch}", narrowed(mixer, dtype), batch)
