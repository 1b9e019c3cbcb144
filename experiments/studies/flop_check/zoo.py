"""Models of the study: name -> function(batch) that returns (module, inputs); the module's forward returns the loss.

Published architectures with small sizes, so that they run on a CPU in seconds; no weights are loaded.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Supervised(nn.Module):
    """Any network with a loss on what it returns."""

    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, data, target):
        return self.loss(self.net(data), target)


def first_loss(result, target):
    """Cross entropy of the main result of networks that return several."""
    main = result.logits if hasattr(result, "logits") else result["out"] if isinstance(result, dict) else result
    return F.cross_entropy(main, target)


def images(batch, side, classes=10):
    return {"data": torch.randn(batch, 3, side, side), "target": torch.randint(classes, (batch,))}


def torchvision_model(name, side=64, **options):
    def build(batch):
        import torchvision

        net = getattr(torchvision.models, name)(weights=None, num_classes=10, **options)
        return Supervised(net, first_loss), images(batch, side)

    return build


def segmentation(batch):
    import torchvision

    net = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=10)
    data = {"data": torch.randn(batch, 3, 64, 64), "target": torch.randint(10, (batch, 64, 64))}
    return Supervised(net, first_loss), data


def video(batch):
    import torchvision

    net = torchvision.models.video.r3d_18(weights=None, num_classes=10)
    data = {"data": torch.randn(batch, 3, 8, 32, 32), "target": torch.randint(10, (batch,))}
    return Supervised(net, first_loss), data


class WithLabels(nn.Module):
    """A Hugging Face model that computes its own loss."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, data, labels):
        return self.net(**{self.net.main_input_name: data}, labels=labels).loss


SIZES = dict(vocab_size=128, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4)


def language_model(config, model, tokens=32, **options):
    def build(batch):
        import transformers

        settings = getattr(transformers, config)(**{**SIZES, **options})
        settings.use_cache = False
        data = {"data": torch.randint(100, (batch, tokens)), "labels": torch.randint(100, (batch, tokens))}
        return WithLabels(getattr(transformers, model)(settings)), data

    return build


def gpt2(batch):
    import transformers

    config = transformers.GPT2Config(vocab_size=128, n_embd=64, n_layer=2, n_head=4, use_cache=False)
    data = {"data": torch.randint(100, (batch, 32)), "labels": torch.randint(100, (batch, 32))}
    return WithLabels(transformers.GPT2LMHeadModel(config)), data


def t5(batch):
    import transformers

    config = transformers.T5Config(vocab_size=128, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                                   use_cache=False, decoder_start_token_id=0)
    data = {"data": torch.randint(100, (batch, 32)), "labels": torch.randint(100, (batch, 32))}
    return WithLabels(transformers.T5ForConditionalGeneration(config)), data


def vit(batch):
    import transformers

    config = transformers.ViTConfig(**{**SIZES, "image_size": 32, "patch_size": 8, "num_labels": 10})
    return WithLabels(transformers.ViTForImageClassification(config)), {
        "data": torch.randn(batch, 3, 32, 32), "labels": torch.randint(10, (batch,))}


def whisper(batch):
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=40,
        max_target_positions=40, num_mel_bins=16, use_cache=False, pad_token_id=0, decoder_start_token_id=1,
        bos_token_id=1, eos_token_id=2)
    return WithLabels(transformers.WhisperForConditionalGeneration(config)), {
        "data": torch.randn(batch, 16, 80), "labels": torch.randint(3, 100, (batch, 24))}


def clip_vision(batch):
    import transformers

    config = transformers.CLIPVisionConfig(**{**SIZES, "image_size": 32, "patch_size": 8})
    net = transformers.CLIPVisionModel(config)

    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.head = net, nn.Linear(64, 10)

        def forward(self, data):
            return self.head(self.net(data).pooler_output)

    return Supervised(Pooled(), F.cross_entropy), images(batch, 32)


def diffusion_unet(batch):
    from diffusers import UNet2DConditionModel

    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = UNet2DConditionModel(sample_size=16, block_out_channels=(32, 64), layers_per_block=1,
                                            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                                            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
                                            cross_attention_dim=32, attention_head_dim=4, norm_num_groups=8)

        def forward(self, data, prompt, target):
            steps = torch.ones(data.shape[0], dtype=torch.long)
            return F.mse_loss(self.net(data, steps, prompt).sample, target)

    return Denoiser(), {"data": torch.randn(batch, 4, 16, 16), "prompt": torch.randn(batch, 8, 32),
                        "target": torch.randn(batch, 4, 16, 16)}


class Sequence(nn.Module):
    """Tokens to logits through a recurrent layer."""

    def __init__(self, layer, width):
        super().__init__()
        self.embedding, self.layer, self.head = nn.Embedding(100, 48), layer, nn.Linear(width, 100)

    def forward(self, data, target):
        hidden, _ = self.layer(self.embedding(data))
        return F.cross_entropy(self.head(hidden).flatten(0, 1), target.flatten())


def recurrent(layer, width):
    def build(batch):
        return Sequence(layer(), width), {"data": torch.randint(100, (batch, 12)),
                                          "target": torch.randint(100, (batch, 12))}

    return build


class EinsumAttention(nn.Module):
    """A transformer block whose products are all written with einsum."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.qkv = nn.Parameter(torch.randn(3, heads, width, width // heads) / 8)
        self.out = nn.Parameter(torch.randn(heads, width // heads, width) / 8)
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 160), nn.Linear(160, width)

    def forward(self, data, target):
        x = self.norm(data)
        q, k, v = torch.einsum("btd,shde->sbhte", x, self.qkv)
        weights = torch.einsum("bhte,bhse->bhts", q, k).softmax(-1)
        mixed = torch.einsum("bhts,bhse,hed->btd", weights, v, self.out)
        return F.mse_loss(self.down(F.gelu(self.up(data + mixed))), target)


def einsum_block(batch):
    return EinsumAttention(), {"data": torch.randn(batch, 24, 64), "target": torch.randn(batch, 24, 64)}


def torch_transformer(batch):
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Transformer(64, 4, 2, 2, 128, batch_first=True, dropout=0.0)

        def forward(self, data, target):
            return F.mse_loss(self.net(data, target), target)

    return Whole(), {"data": torch.randn(batch, 16, 64), "target": torch.randn(batch, 12, 64)}


def generator(batch):
    """Transposed convolutions, as a GAN's generator has them, with instance norm."""
    net = nn.Sequential(nn.ConvTranspose2d(32, 64, 4), nn.InstanceNorm2d(64, affine=True), nn.ReLU(True),
                        nn.ConvTranspose2d(64, 32, 4, 2, 1, groups=2), nn.BatchNorm2d(32), nn.LeakyReLU(0.2),
                        nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())
    return Supervised(net, F.l1_loss), {"data": torch.randn(batch, 32, 1, 1), "target": torch.randn(batch, 3, 16, 16)}


class Mixer(nn.Module):
    """Fourier transforms instead of attention."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
                                    for _ in range(2))

    def forward(self, data, target):
        for layer in self.layers:
            data = data + layer(torch.fft.fft(torch.fft.fft(data, dim=-1), dim=-2).real)
        return F.mse_loss(data, target)


def fourier_mixer(batch):
    return Mixer(), {"data": torch.randn(batch, 16, 64), "target": torch.randn(batch, 16, 64)}


class Recommender(nn.Module):
    """Bags of embeddings and their interactions."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(200, 16, mode="sum") for _ in range(3))
        self.bottom, self.top = nn.Linear(8, 16), nn.Linear(16 + 16, 1)

    def forward(self, data, ids, target):
        parts = [F.relu(self.bottom(data))] + [bag(ids[:, i]) for i, bag in enumerate(self.bags)]
        stacked = torch.stack(parts, 1)
        pairs = torch.bmm(stacked, stacked.transpose(1, 2)).flatten(1)
        return F.binary_cross_entropy_with_logits(self.top(torch.cat([parts[0], pairs], 1)).squeeze(1), target)


def recommender(batch):
    return Recommender(), {"data": torch.randn(batch, 8), "ids": torch.randint(200, (batch, 3, 5)),
                           "target": torch.rand(batch)}


MODELS = {
    **{name: torchvision_model(name) for name in (
        "resnet18", "resnext50_32x4d", "wide_resnet50_2", "mobilenet_v2", "mobilenet_v3_large",
        "efficientnet_b0", "shufflenet_v2_x1_0", "vgg11_bn", "squeezenet1_1", "regnet_y_400mf", "mnasnet1_0",
        "convnext_tiny", "swin_v2_t")},
    "resnet101_64px": torchvision_model("resnet101"),  # the archive resnet101 is another size
    "googlenet": torchvision_model("googlenet", side=96, aux_logits=False, init_weights=False),
    "inception_v3": torchvision_model("inception_v3", side=96, aux_logits=False, init_weights=False),
    "vit_b_16": torchvision_model("vit_b_16", side=64, image_size=64),
    "deeplabv3_resnet50": segmentation,
    "r3d_18": video,
    "llama": language_model("LlamaConfig", "LlamaForCausalLM", num_key_value_heads=2),
    "mistral": language_model("MistralConfig", "MistralForCausalLM", num_key_value_heads=2),
    "mixtral": language_model("MixtralConfig", "MixtralForCausalLM", num_key_value_heads=2, num_local_experts=4),
    "qwen2": language_model("Qwen2Config", "Qwen2ForCausalLM", num_key_value_heads=2),
    "qwen3_moe": language_model("Qwen3MoeConfig", "Qwen3MoeForCausalLM", num_key_value_heads=2, num_experts=4,
                                num_experts_per_tok=2, moe_intermediate_size=48, head_dim=16),
    "gemma2": language_model("Gemma2Config", "Gemma2ForCausalLM", num_key_value_heads=2, head_dim=16),
    "bert": language_model("BertConfig", "BertForMaskedLM"),
    "mamba": language_model("MambaConfig", "MambaForCausalLM", state_size=8),
    "gpt2": gpt2, "t5": t5, "vit": vit, "whisper": whisper, "clip_vision": clip_vision,
    "diffusion_unet": diffusion_unet,
    "lstm": recurrent(lambda: nn.LSTM(48, 64, 2, batch_first=True), 64),
    "gru": recurrent(lambda: nn.GRU(48, 64, 2, batch_first=True, bidirectional=True), 128),
    "rnn": recurrent(lambda: nn.RNN(48, 64, batch_first=True), 64),
    "einsum_block": einsum_block, "torch_transformer": torch_transformer, "generator": generator,
    "fourier_mixer": fourier_mixer, "recommender": recommender,
}

# Why a model is further off than 1 %, besides what flop_check.py finds out.
REASONS = {}
