"""Models beside those that configs/models ships, for the study of shared links: builder(batch) -> (module, inputs), as
configs/models/export_models.py --module takes them. Published hyperparameters, no weights.
"""
import torch
from shipped_models import Classifier, OwnLoss, labelled_images, tokens  # beside the exporter that loads this file


def efficientnet_v2_l(batch=4):
    from torchvision.models import efficientnet_v2_l as build

    return Classifier(build(weights=None)), labelled_images(batch, 480)


def wide_resnet101_2(batch=4):
    from torchvision.models import wide_resnet101_2 as build

    return Classifier(build(weights=None)), labelled_images(batch)


def vgg19(batch=4):
    from torchvision.models import vgg19_bn as build

    return Classifier(build(weights=None)), labelled_images(batch)


def opt_1_3b(batch=4):
    from transformers import OPTConfig, OPTForCausalLM

    config = OPTConfig(hidden_size=2048, num_hidden_layers=24, ffn_dim=8192, num_attention_heads=32, word_embed_proj_dim=2048,
                       max_position_embeddings=2048, use_cache=False, attn_implementation="sdpa")
    return OwnLoss(OPTForCausalLM(config)), {"data": tokens(batch, 1024), "labels": tokens(batch, 1024)}


def whisper_medium(batch=4):
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(d_model=1024, encoder_layers=24, decoder_layers=24, encoder_attention_heads=16,
                           decoder_attention_heads=16, encoder_ffn_dim=4096, decoder_ffn_dim=4096, use_cache=False,
                           attn_implementation="sdpa", decoder_start_token_id=0)
    inputs = {"data": torch.zeros(batch, 80, 3000), "labels": tokens(batch, 448)}
    return OwnLoss(WhisperForConditionalGeneration(config)), inputs
