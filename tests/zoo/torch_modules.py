"""Modules of PyTorch and small trainings, each with inputs of odd sizes."""

import torch
from torch import nn
from torch.nn import functional as F


class Call(nn.Module):
    """A function of tensors as a module; `parts` are its submodules."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        self.parts = nn.ModuleDict(parts)

    def forward(self, *inputs):
        return self.function(*[part for part in self.parts.values()], *inputs)


def frozen(module, x):
    """Inference; torch_xla has no gradient of a batch norm with given mean and variance."""
    with torch.no_grad():
        y = module(x)
    return y * x.mean()


def layers(batch):
    """`name: (module, inputs)`; the module is made when the program runs, and so are the inputs."""
    image = lambda r: [r.normal(batch, 6, 11, 13)]
    row = lambda r: [r.normal(batch, 17)]
    line = lambda r: [r.normal(batch, 6, 19)]
    volume = lambda r: [r.normal(batch, 4, 5, 6, 7)]
    sequence = lambda r: [r.normal(batch, 5, 7)]
    tokens = lambda r: [r.normal(batch, 9, 20)]
    state = lambda n: lambda r: [r.normal(batch, 7), *[r.normal(batch, 11) for _ in range(n)]]
    causal = nn.Transformer.generate_square_subsequent_mask
    return {
        "linear": (lambda: nn.Linear(17, 31), row),
        "linear_softmax": (lambda: nn.Sequential(nn.Linear(17, 1001), nn.Softmax(-1)), row),
        "bilinear": (lambda: nn.Bilinear(7, 5, 3), lambda r: [r.normal(batch, 7), r.normal(batch, 5)]),
        "conv1d": (lambda: nn.Conv1d(6, 5, 3, dilation=2), line),
        "conv2d": (lambda: nn.Conv2d(6, 7, 3, stride=2, padding=1), image),
        "conv2d_depthwise": (lambda: nn.Conv2d(6, 12, (3, 5), groups=6), image),
        "conv2d_reflect": (lambda: nn.Conv2d(6, 3, 3, padding=1, padding_mode="reflect"), image),
        "conv3d": (lambda: nn.Conv3d(4, 3, 3, padding="same"), volume),
        "conv_transpose1d": (lambda: nn.ConvTranspose1d(6, 4, 3, stride=2, output_padding=1), line),
        "conv_transpose2d": (lambda: nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, groups=2), image),
        "conv_transpose3d": (lambda: nn.ConvTranspose3d(4, 3, 2, stride=2), volume),
        "batch_norm1d": (lambda: nn.BatchNorm1d(6), line),
        "batch_norm2d": (lambda: nn.BatchNorm2d(6), image),
        "batch_norm3d": (lambda: nn.BatchNorm3d(4), volume),
        "batch_norm_eval": (lambda: Call(frozen, m=nn.BatchNorm2d(6)).eval(), image),
        "layer_norm": (lambda: nn.LayerNorm(17), row),
        "layer_norm_two_dimensions": (lambda: nn.LayerNorm([11, 13]), image),
        "group_norm": (lambda: nn.GroupNorm(3, 6), image),
        "instance_norm": (lambda: nn.InstanceNorm2d(6, affine=True), image),
        "rms_norm": (lambda: nn.RMSNorm(17), row),
        "local_response_norm": (lambda: nn.LocalResponseNorm(3), image),
        "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(17, 5)), row),
        "rnn": (lambda: nn.RNN(7, 11, batch_first=True), sequence),
        "lstm": (lambda: nn.LSTM(7, 11, batch_first=True), sequence),
        "lstm_two_ways": (lambda: nn.LSTM(7, 5, num_layers=2, bidirectional=True, batch_first=True), sequence),
        "gru": (lambda: nn.GRU(7, 11, batch_first=True), sequence),
        "rnn_cell": (lambda: nn.RNNCell(7, 11), state(1)),
        "lstm_cell": (lambda: Call(lambda cell, x, h, c: cell(x, (h, c)), cell=nn.LSTMCell(7, 11)), state(2)),
        "gru_cell": (lambda: nn.GRUCell(7, 11), state(1)),
        "attention": (lambda: Call(lambda m, x: m(x, x, x), m=nn.MultiheadAttention(20, 4, batch_first=True)), tokens),
        "attention_causal": (lambda: Call(lambda m, x: m(x, x, x, attn_mask=causal(9).to(x.device, x.dtype), need_weights=False)[0],
                                          m=nn.MultiheadAttention(20, 4, batch_first=True)), tokens),
        "dot_product_attention": (lambda: Call(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)), tokens),
        "transformer_encoder": (lambda: nn.TransformerEncoderLayer(20, 4, 33, 0.0, "gelu", batch_first=True, norm_first=True), tokens),
        "transformer_decoder": (lambda: Call(lambda m, x: m(x, x * 0.5), m=nn.TransformerDecoderLayer(20, 4, 33, 0.0, batch_first=True)), tokens),
        "embedding": (lambda: nn.Embedding(101, 7, padding_idx=0), lambda r: [r.integers(101, batch, 9)]),
        "embedding_bag_sum": (lambda: nn.EmbeddingBag(101, 7, mode="sum"), lambda r: [r.integers(101, batch, 9)]),
        "embedding_bag_mean": (lambda: nn.EmbeddingBag(101, 7, mode="mean"), lambda r: [r.integers(101, batch, 9)]),
        "max_pool1d": (lambda: nn.MaxPool1d(3, 2), line),
        "max_pool2d": (lambda: nn.MaxPool2d(3, 2, padding=1), image),
        "max_pool3d": (lambda: nn.MaxPool3d(2), volume),
        "max_pool_ceiling": (lambda: nn.MaxPool2d(2, ceil_mode=True), image),
        "avg_pool1d": (lambda: nn.AvgPool1d(3, 2), line),
        "avg_pool2d": (lambda: nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), image),
        "avg_pool3d": (lambda: nn.AvgPool3d(2), volume),
        "lp_pool": (lambda: nn.LPPool2d(2, 3), image),
        "adaptive_avg_pool": (lambda: nn.AdaptiveAvgPool2d((1, 1)), image),
        "adaptive_avg_pool_odd": (lambda: nn.AdaptiveAvgPool2d((3, 5)), image),
        "adaptive_max_pool": (lambda: nn.AdaptiveMaxPool2d((1, 1)), image),
        "upsample_nearest": (lambda: nn.Upsample(scale_factor=2), image),
        "upsample_bilinear": (lambda: nn.Upsample(size=(17, 10), mode="bilinear"), image),
        "upsample_corners": (lambda: nn.Upsample(size=(17, 31), mode="bilinear", align_corners=True), image),
        "upsample_bicubic": (lambda: nn.Upsample(size=(17, 10), mode="bicubic"), image),
        "upsample_trilinear": (lambda: nn.Upsample(size=(7, 5, 9), mode="trilinear"), volume),
        "interpolate_linear": (lambda: nn.Upsample(size=33, mode="linear"), line),
        "pixel_shuffle": (lambda: nn.PixelShuffle(2), lambda r: [r.normal(batch, 8, 5, 7)]),
        "pixel_unshuffle": (lambda: nn.PixelUnshuffle(2), lambda r: [r.normal(batch, 2, 10, 14)]),
        "channel_shuffle": (lambda: nn.ChannelShuffle(3), image),
        "unfold": (lambda: nn.Unfold((2, 3), stride=2), image),
        "fold": (lambda: nn.Fold((5, 7), (2, 3)), lambda r: [r.normal(batch, 12, 20)]),
        "pad_reflect": (lambda: nn.ReflectionPad2d((1, 2, 3, 0)), image),
        "pad_replicate": (lambda: nn.ReplicationPad2d((1, 2, 3, 0)), image),
        "pad_circular": (lambda: nn.CircularPad2d((1, 2, 3, 0)), image),
        "pad_constant": (lambda: nn.ConstantPad2d((1, -2, 3, 0), 0.5), image),
        "cosine_similarity": (nn.CosineSimilarity, lambda r: [r.normal(batch, 17), r.normal(batch, 17)]),
        "pairwise_distance": (nn.PairwiseDistance, lambda r: [r.normal(batch, 17), r.normal(batch, 17)]),
        "grid_sample": (lambda: Call(lambda x, g: F.grid_sample(x, g, align_corners=False)), lambda r: [
            r.normal(batch, 6, 11, 13), r.uniform(batch, 5, 7, 2, low=-0.9, high=0.9)]),
        "einsum": (lambda: Call(lambda a, b: torch.einsum("bij,bkj->bik", a, b)), lambda r: [r.normal(batch, 5, 7), r.normal(batch, 3, 7)]),
        "cumulative": (lambda: Call(lambda x: (x.cumsum(1), (1 + x / 5).cumprod(1), x.logsumexp(1), x.std(1))), row),
        "order": (lambda: Call(lambda x: (*x.sort(1), *x.topk(5, 1), x.argmax(1))), row),
        "scatter": (lambda: Call(lambda x, i: (x.gather(1, i), x.scatter_add(1, i, x[:, :5] * 2), x.index_select(1, i[0]))),
                    lambda r: [r.normal(batch, 17), r.integers(17, batch, 5)]),
        "transposed": (lambda: Call(lambda x: (x.permute(0, 3, 1, 2), x.flip(2).transpose(1, 3), x.roll(2, 3))), image),
    }


ACTIVATIONS = {
    "relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU, "selu": nn.SELU, "celu": nn.CELU, "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU("tanh"), "silu": nn.SiLU, "mish": nn.Mish, "softplus": nn.Softplus, "softsign": nn.Softsign,
    "tanhshrink": nn.Tanhshrink, "hardswish": nn.Hardswish, "hardsigmoid": nn.Hardsigmoid, "hardtanh": nn.Hardtanh,
    "log_sigmoid": nn.LogSigmoid, "prelu": nn.PReLU, "rrelu_eval": lambda: nn.RReLU().eval(), "softshrink": nn.Softshrink,
    "hardshrink": nn.Hardshrink, "softmax": lambda: nn.Softmax(-1), "log_softmax": lambda: nn.LogSoftmax(-1),
    "softmin": lambda: nn.Softmin(-1), "threshold": lambda: nn.Threshold(0.1, 2.0), "glu": nn.GLU,
}


def losses(batch):
    pair = lambda r: [r.normal(batch, 17), r.normal(batch, 17)]
    classes = lambda r: [r.normal(batch, 17), r.integers(17, batch)]
    shares = lambda r: [r.uniform(batch, 17, low=0.05, high=0.95), r.uniform(batch, 17)]
    signs = lambda r, n: [*[r.normal(batch, 17) for _ in range(n)], 1 - 2 * r.integers(2, batch)]
    return {
        "mse": (nn.MSELoss, pair), "l1": (nn.L1Loss, pair), "smooth_l1": (nn.SmoothL1Loss, pair), "huber": (nn.HuberLoss, pair),
        "cross_entropy": (nn.CrossEntropyLoss, classes),
        "cross_entropy_smooth": (lambda: nn.CrossEntropyLoss(torch.linspace(0.5, 1.5, 17), label_smoothing=0.1), classes),
        "nll": (lambda: Call(lambda x, y: F.nll_loss(F.log_softmax(x, 1), y)), classes),
        "bce": (nn.BCELoss, shares), "bce_logits": (nn.BCEWithLogitsLoss, shares),
        "kl_div": (lambda: Call(lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean")), pair),
        "poisson_nll": (nn.PoissonNLLLoss, lambda r: [r.normal(batch, 17), r.uniform(batch, 17, high=5)]),
        "gaussian_nll": (nn.GaussianNLLLoss, lambda r: [r.normal(batch, 17), r.normal(batch, 17), r.uniform(batch, 17, low=0.1)]),
        "triplet": (nn.TripletMarginLoss, lambda r: [r.normal(batch, 17) for _ in range(3)]),
        "cosine_embedding": (nn.CosineEmbeddingLoss, lambda r: signs(r, 2)),
        "margin_ranking": (nn.MarginRankingLoss, lambda r: [r.normal(batch), r.normal(batch), 1 - 2 * r.integers(2, batch)]),
        "soft_margin": (lambda: Call(lambda x, y: F.soft_margin_loss(x, y.to(x.dtype))), lambda r: [r.normal(batch, 17), 1 - 2 * r.integers(2, batch, 17)]),
        "hinge_embedding": (nn.HingeEmbeddingLoss, lambda r: [r.normal(batch, 17), 1 - 2 * r.integers(2, batch, 17)]),
        "multi_margin": (nn.MultiMarginLoss, classes),
    }


def small_net():
    """A classifier; without running statistics, since torch_xla's variances are biased."""
    norm = nn.BatchNorm2d(5, track_running_stats=False)
    return nn.Sequential(nn.Conv2d(3, 5, 3), norm, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5 * 4 * 5, 10))


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.05, momentum=0.9, weight_decay=1e-3),
    "adam": lambda parameters: torch.optim.Adam(parameters, 0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, 0.01),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, 0.003),
}


def register(add):
    """Calls `add(name, make, batch, inputs, optimizer)`; without an optimizer, forward and backward."""
    for batch in (1, 3):
        groups = layers(batch) | {f"loss_{name}": value for name, value in losses(batch).items()}
        groups |= {f"activation_{name}": (make, lambda r, b=batch: [r.normal(b, 5, 34)]) for name, make in ACTIVATIONS.items()}
        for name, (make, inputs) in groups.items():
            add(f"{name}.b{batch}", make, batch, inputs, None)
    for name, optimizer in OPTIMIZERS.items():
        add(f"training_{name}", small_net, 3, lambda r: [r.normal(3, 3, 11, 13), r.integers(10, 3)], optimizer)
