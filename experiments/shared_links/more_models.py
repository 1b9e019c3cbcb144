"""Models beside those that configs/models ships, for the study of shared links: builder(batch) -> (module, inputs), as
configs/models/export_models.py --module takes them. Published hyperparameters, no weights.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Classifier(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, images, labels):
        return F.cross_entropy(self.net(images), labels)


class LanguageModel(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, tokens, labels):
        return self.net(input_ids=tokens, labels=labels).loss


class Listener(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, sound, labels):
        return self.net(input_features=sound, labels=labels).loss


def images(batch: int, side: int) -> dict:
    return {"images": torch.zeros(batch, 3, side, side), "labels": torch.zeros(batch, dtype=torch.long)}


def tokens(batch: int, length: int) -> dict:
    some = torch.zeros(batch, length, dtype=torch.long)
    return {"tokens": some, "labels": some.clone()}


def efficientnet_v2_l(batch=4):
    from torchvision.models import efficientnet_v2_l as build

    return Classifier(build(weights=None)), images(batch, 480)


def wide_resnet101_2(batch=4):
    from torchvision.models import wide_resnet101_2 as build

    return Classifier(build(weights=None)), images(batch, 224)


def vgg19(batch=4):
    from torchvision.models import vgg19_bn as build

    return Classifier(build(weights=None)), images(batch, 224)


def opt_1_3b(batch=4):
    from transformers import OPTConfig, OPTForCausalLM

    config = OPTConfig(hidden_size=2048, num_hidden_layers=24, ffn_dim=8192, num_attention_heads=32, word_embed_proj_dim=2048,
                       max_position_embeddings=2048, use_cache=False, attn_implementation="sdpa")
    return LanguageModel(OPTForCausalLM(config)), tokens(batch, 1024)


def whisper_medium(batch=4):
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(d_model=1024, encoder_layers=24, decoder_layers=24, encoder_attention_heads=16,
                           decoder_attention_heads=16, encoder_ffn_dim=4096, decoder_ffn_dim=4096, use_cache=False,
                           attn_implementation="sdpa", decoder_start_token_id=0)
    return Listener(WhisperForConditionalGeneration(config)), {
        "sound": torch.zeros(batch, 80, 3000), "labels": torch.zeros(batch, 448, dtype=torch.long)}
