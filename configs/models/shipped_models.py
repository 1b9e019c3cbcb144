"""The models that configs/ ships: builder(batch) -> (module, inputs), inputs by name or in order; the module's forward
returns the loss. Hyperparameters are the published ones.
"""
from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F

import batch_dimensions
from tiny_models import TinyConvnet, TinyGpt, TinyMlp, TinyShared, TinyUnet
from torchgpipe_models import AmoebaNetD, ResNet101, UNet

ATTENTION = "sdpa"  # of Hugging Face models


@dataclass(frozen=True)
class Model:
    build: Callable
    microbatch: int  # the usual size; the hint of a symbolic one
    real_weights: bool
    dimensions: Callable = batch_dimensions.first  # inputs -> the batch dimension of each, None where it has no samples


MODELS: dict[str, Model] = {}


def model(microbatch: int, real_weights: bool = False):
    """Registers a builder under its function's name."""

    def register(build: Callable) -> Callable:
        MODELS[build.__name__] = Model(build, microbatch, real_weights)
        return build

    return register


class OwnLoss(nn.Module):
    """A Hugging Face model that computes its loss itself when it is given labels."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, data, labels):
        return self.net(**{self.net.main_input_name: data}, labels=labels).loss


class Classifier(nn.Module):
    """A network that maps images to logits, followed by the cross entropy with the labels."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, images, labels):
        return F.cross_entropy(self.net(images), labels)


class Denoiser(nn.Module):
    """A diffusion U-Net, followed by the squared error between predicted and true noise (in float32)."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, latents, timesteps, prompt, pooled_prompt, time_ids, noise):
        conditions = {"text_embeds": pooled_prompt, "time_ids": time_ids}
        predicted = self.net(latents, timesteps, prompt, added_cond_kwargs=conditions).sample
        return F.mse_loss(predicted.float(), noise.float())


def tokens(batch: int, length: int) -> torch.Tensor:
    return torch.zeros(batch, length, dtype=torch.long)


def labelled_images(batch: int, side: int = 224) -> dict:
    return {"images": torch.zeros(batch, 3, side, side), "labels": torch.zeros(batch, dtype=torch.long)}


def hf_vit_g14(batch: int, layers: int):
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(hidden_size=1408, num_hidden_layers=layers, num_attention_heads=16, intermediate_size=6144,
                       patch_size=14, image_size=224, num_labels=10, attn_implementation=ATTENTION)
    inputs = {"data": torch.zeros(batch, 3, 224, 224), "labels": torch.zeros(batch, dtype=torch.long)}
    return OwnLoss(ViTForImageClassification(config)), inputs


@model(microbatch=6)
def vit_g14(batch: int):
    """The reference scripts' "ViT-g/14": 32 layers, 10 classes."""
    return hf_vit_g14(batch, layers=32)


@model(microbatch=6)
def vit_g14_40(batch: int):
    """ViT-g/14 with the 40 layers of its authors."""
    return hf_vit_g14(batch, layers=40)


@model(microbatch=4)
def timm_vit_g14(batch: int):
    """TorchBench's timm_vision_transformer_large: 40 layers, fused qkv, 1000 classes."""
    import timm

    return Classifier(timm.create_model("vit_giant_patch14_224")), labelled_images(batch)


@model(microbatch=2)
def gpt2_large(batch: int):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=1280, n_layer=36, n_head=20, use_cache=False, attn_implementation=ATTENTION)
    inputs = {"data": tokens(batch, 512), "labels": tokens(batch, 512)}
    return OwnLoss(GPT2LMHeadModel(config)), inputs


@model(microbatch=1)
def llama2_7b(batch: int):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(max_position_embeddings=4096, use_cache=False, attn_implementation=ATTENTION)
    inputs = {"data": tokens(batch, 1024), "labels": tokens(batch, 1024)}
    return OwnLoss(LlamaForCausalLM(config)), inputs


@model(microbatch=2)
def bert_large(batch: int):
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
                        attn_implementation=ATTENTION)
    inputs = {"data": tokens(batch, 512), "labels": tokens(batch, 512)}
    return OwnLoss(BertForMaskedLM(config)), inputs


@model(microbatch=2)
def t5_large(batch: int):
    """Encoder and decoder: the encoder's output goes to every decoder layer, three uses share one embedding."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(d_model=1024, d_ff=4096, d_kv=64, num_layers=24, num_heads=16, use_cache=False,
                      decoder_start_token_id=0)
    inputs = {"data": tokens(batch, 512), "labels": tokens(batch, 512)}
    return OwnLoss(T5ForConditionalGeneration(config)), inputs


@model(microbatch=1)
def sdxl_unet(batch: int):
    """The U-Net of Stable Diffusion XL base 1.0 at 1024 px: latents of 128 x 128."""
    from diffusers import UNet2DConditionModel

    net = UNet2DConditionModel(
        sample_size=128, block_out_channels=(320, 640, 1280), layers_per_block=2, use_linear_projection=True,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        transformer_layers_per_block=(1, 2, 10), attention_head_dim=(5, 10, 20), cross_attention_dim=2048,
        addition_embed_type="text_time", addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816)
    inputs = {"latents": torch.zeros(batch, 4, 128, 128), "timesteps": torch.zeros(batch, dtype=torch.long),
              "prompt": torch.zeros(batch, 77, 2048), "pooled_prompt": torch.zeros(batch, 1280),
              "time_ids": torch.zeros(batch, 6), "noise": torch.zeros(batch, 4, 128, 128)}
    return Denoiser(net), inputs


def from_torchvision(name: str, batch: int):
    import torchvision

    return Classifier(getattr(torchvision.models, name)()), labelled_images(batch)


@model(microbatch=16)
def resnet50(batch: int):
    return from_torchvision("resnet50", batch)


@model(microbatch=16)
def densenet121(batch: int):
    return from_torchvision("densenet121", batch)


@model(microbatch=16)
def convnext_base(batch: int):
    return from_torchvision("convnext_base", batch)


@model(microbatch=16)
def swin_b(batch: int):
    return from_torchvision("swin_b", batch)


@model(microbatch=16)
def amoebanet_d(batch: int):
    """AmoebaNet-D (18, 256), as in torchgpipe's speed benchmark."""
    return AmoebaNetD(), labelled_images(batch)


@model(microbatch=16)
def unet_5_64(batch: int):
    """U-Net (5, 64) at 192 px, likewise."""
    return UNet(), {"images": torch.zeros(batch, 3, 192, 192), "masks": torch.zeros(batch, 1, 192, 192)}


@model(microbatch=16)
def resnet101(batch: int):
    return ResNet101(), labelled_images(batch)


@model(microbatch=4, real_weights=True)
def tiny_mlp(batch: int):
    return TinyMlp(), {"x": torch.randn(batch, 8), "labels": torch.randint(8, (batch,))}


@model(microbatch=2, real_weights=True)
def tiny_gpt(batch: int):
    return TinyGpt(), {"ids": torch.randint(61, (batch, 12)), "labels": torch.randint(61, (batch, 12))}


@model(microbatch=2, real_weights=True)
def tiny_unet(batch: int):
    return TinyUnet(), {"image": torch.randn(batch, 2, 8, 8), "noise": torch.randn(batch, 2, 8, 8)}


@model(microbatch=4, real_weights=True)
def tiny_convnet(batch: int):
    return TinyConvnet(), {"images": torch.randn(batch, 3, 6, 6), "labels": torch.randint(5, (batch,))}


@model(microbatch=3, real_weights=True)
def tiny_shared(batch: int):
    return TinyShared(), {"x": torch.randn(batch, 12), "target": torch.randn(batch, 12)}


@model(microbatch=2)
def gpt_cpu(batch: int):
    """A GPT of a size that two CPU cores train: 8 layers of width 256, 128 tokens."""
    net = TinyGpt(vocabulary=2048, length=128, width=256, heads=4, layers=8)
    return net, {"ids": tokens(batch, 128), "labels": tokens(batch, 128)}
