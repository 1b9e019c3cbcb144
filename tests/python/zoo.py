"""Well-known models in tiny configurations, with their losses: name -> build(batch) -> (module, arguments by name).

transformers, timm, torchvision and diffusers build them as far as they are asked for. zoo_coverage.py goes through all.
"""

import importlib
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

SMALL = dict(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
PICTURES = dict(SMALL, image_size=64, patch_size=16, num_labels=2)
PICTURES.pop("vocab_size")
ENCODER_DECODER = dict(
    vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=128, decoder_ffn_dim=128,
)  # fmt: skip


def token_ids(batch, length=32):
    return torch.randint(90, (batch, length))


def images(batch, side=64):
    return torch.randn(batch, 3, side, side)


def classes(batch, count=2):
    return torch.randint(count, (batch,))


class WithLoss(nn.Module):
    """A model and what makes a scalar of its output and the labels."""

    def __init__(self, net, loss, **fixed):
        super().__init__()
        self.net, self.loss, self.fixed = net, loss, fixed

    def forward(self, labels, **inputs):
        return self.loss(self.net(**inputs, **self.fixed), labels)


class ByPosition(WithLoss):
    def forward(self, labels, **inputs):
        return self.loss(self.net(*inputs.values(), **self.fixed), labels)


class OwnLoss(nn.Module):
    """A model of transformers, which computes its loss."""

    def __init__(self, net, **fixed):
        super().__init__()
        self.net, self.fixed = net, fixed

    def forward(self, **inputs):
        return self.net(**inputs, **self.fixed).loss


def cross_entropy(output, labels):
    return F.cross_entropy(getattr(output, "logits", output), labels)


def squared_error(output, wanted):
    return F.mse_loss(output[0], wanted)


# transformers


def of_transformers(config, model, make=token_ids, labels=token_ids, name=None, cache=True, **sizes):
    def build(batch):
        library = importlib.import_module("transformers")
        settings = getattr(library, config)(**sizes)
        if hasattr(settings, "use_cache"):
            settings.use_cache = False
        net = getattr(library, model)(settings)
        net.train()
        return OwnLoss(net), {name or net.main_input_name: make(batch), "labels": labels(batch)}

    return build


language = partial(of_transformers, **SMALL)
grouped = partial(language, num_key_value_heads=2)
classifier = partial(of_transformers, labels=classes)


def clip(batch):
    transformers = importlib.import_module("transformers")
    text = dict(SMALL, eos_token_id=2)
    vision = {key: value for key, value in PICTURES.items() if key != "num_labels"}
    net = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision))
    return OwnLoss(net, return_loss=True), {"input_ids": token_ids(batch), "pixel_values": images(batch)}


def llava(batch):
    transformers = importlib.import_module("transformers")
    vision = {key: value for key, value in PICTURES.items() if key != "num_labels"} | {"model_type": "clip_vision_model"}
    config = transformers.LlavaConfig(vision_config=vision, text_config=dict(SMALL, model_type="llama"), image_token_index=99)
    tokens = token_ids(batch)
    tokens[:, 1:17] = 99
    net = transformers.LlavaForConditionalGeneration(config)
    return OwnLoss(net, use_cache=False), {"input_ids": tokens, "pixel_values": images(batch), "labels": tokens}


# torchvision, timm


def of_torchvision(name, side=64, loss=cross_entropy, labels=partial(classes, count=10), make=None, **more):
    def build(batch):
        models = importlib.import_module("torchvision.models")
        for part in name.split("."):
            models = getattr(models, part)
        if isinstance(models, type):
            net = models(num_classes=10, **{key: value() if callable(value) else value for key, value in more.items()})
        else:
            net = models(weights=None, num_classes=10, **more)
        return ByPosition(net, loss), {"x": make(batch) if make else images(batch, side), "labels": labels(batch)}

    return build


def block_settings(configuration, *rows):
    """What torchvision's constructors call a list of blocks, one of the class `of` a row."""

    def made():
        home = importlib.import_module(configuration[0])
        return [getattr(home, configuration[1])(*row) for row in rows]

    return made


def of_timm(name, side=64, **sizes):
    def build(batch):
        net = importlib.import_module("timm").create_model(name, pretrained=False, num_classes=10, **sizes)
        return ByPosition(net, cross_entropy), {"x": images(batch, side), "labels": classes(batch, 10)}

    return build


def with_auxiliary_head(output, labels):
    return F.cross_entropy(output[0], labels) + 0.4 * F.cross_entropy(output[1], labels)


def video(frames, side):
    return lambda batch: torch.randn(batch, 3, frames, side, side)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        detection = importlib.import_module("torchvision.models.detection")
        self.net = detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None)

    def forward(self, x, boxes, labels):
        wanted = [{"boxes": box, "labels": label} for box, label in zip(boxes, labels)]
        return sum(self.net(list(x), wanted).values())


def detector(batch):
    boxes = torch.tensor([[[5.0, 5.0, 40.0, 40.0]]]).repeat(batch, 1, 1)
    return Detector(), {"x": images(batch), "boxes": boxes, "labels": torch.ones(batch, 1, dtype=torch.long)}


def optical_flow(batch):
    net = importlib.import_module("torchvision.models.optical_flow").raft_small(weights=None)

    def loss(flows, wanted):
        return sum((flow - wanted).abs().mean() for flow in flows)

    wanted = torch.randn(batch, 2, 128, 128)
    return ByPosition(net, loss, num_flow_updates=2), {"x": images(batch, 128), "y": images(batch, 128), "labels": wanted}


# diffusers


def of_diffusers(name, sizes, inputs, target, **fixed):
    def build(batch):
        net = getattr(importlib.import_module("diffusers"), name)(**sizes)
        made = {key: make(batch) for key, make in inputs.items()}
        return WithLoss(net, squared_error, return_dict=False, **fixed), {**made, "labels": torch.randn(batch, *target)}

    return build


def normal(*shape):
    return lambda batch: torch.randn(batch, *shape)


def steps(batch):
    return torch.randint(100, (batch,))


LATENT = dict(num_attention_heads=4, attention_head_dim=16, num_layers=2, sample_size=16, in_channels=4, out_channels=4)
AT_ONCE = dict(hidden_states=normal(4, 16, 16), timestep=steps)
PROMPT = dict(encoder_hidden_states=normal(8, 32), pooled_projections=normal(32))


class Autoencoder(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return F.mse_loss(self.net(x, return_dict=False)[0], x)


def vae(batch):
    down, up = ("DownEncoderBlock2D",) * 2, ("UpDecoderBlock2D",) * 2
    sizes = dict(block_out_channels=(32, 64), down_block_types=down, up_block_types=up, latent_channels=4, norm_num_groups=8)
    return Autoencoder(importlib.import_module("diffusers").AutoencoderKL(**sizes)), {"x": images(batch, 32)}


def flux(batch):
    sizes = dict(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8),
    )  # fmt: skip
    inputs = dict(PROMPT, hidden_states=normal(64, 4), timestep=lambda batch: torch.rand(batch))
    places = dict(img_ids=torch.zeros(64, 3), txt_ids=torch.zeros(8, 3))
    return of_diffusers("FluxTransformer2DModel", sizes, inputs, (64, 4), **places)(batch)


# torch alone


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.net, self.head = nn.Embedding(100, 64), nn.LSTM(64, 64, 2, batch_first=True), nn.Linear(64, 100)

    def forward(self, x, y):
        return F.cross_entropy(self.head(self.net(self.embedding(x))[0]).flatten(0, 1), y.flatten())


class Translator(Recurrent):
    def __init__(self):
        super().__init__()
        self.net = nn.Transformer(64, 4, 2, 2, 128, batch_first=True)

    def forward(self, x, y):
        made = self.net(self.embedding(x), self.embedding(y))
        return F.cross_entropy(self.head(made).flatten(0, 1), y.flatten())


def of_tokens(kind):
    return lambda batch: (kind(), {"x": token_ids(batch), "y": token_ids(batch)})


TEN = partial(classes, count=10)
#: What a configuration says so that forward decides by no value: name -> in words, for the table.
CHOSEN = {
    "deberta_v2": "with its `problem_type` (absent, the loss looks for labels)",
    "wav2vec2": "without layerdrop and time masks (which it draws outside torch)",
}
ZOO = {
    "lstm": of_tokens(Recurrent),
    "nn_transformer": of_tokens(Translator),
    # decoders
    "gpt2": of_transformers("GPT2Config", "GPT2LMHeadModel", vocab_size=128, n_embd=64, n_layer=2, n_head=4),
    "gpt_neox": language("GPTNeoXConfig", "GPTNeoXForCausalLM"),
    "opt": of_transformers("OPTConfig", "OPTForCausalLM", vocab_size=128, hidden_size=64, ffn_dim=128, num_hidden_layers=2, num_attention_heads=4, word_embed_proj_dim=64),
    "bloom": of_transformers("BloomConfig", "BloomForCausalLM", vocab_size=128, hidden_size=64, n_layer=2, n_head=4),
    "falcon": of_transformers("FalconConfig", "FalconForCausalLM", vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4),
    "llama": grouped("LlamaConfig", "LlamaForCausalLM"),
    "mistral": grouped("MistralConfig", "MistralForCausalLM", sliding_window=16),
    "qwen2": grouped("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": grouped("Qwen3Config", "Qwen3ForCausalLM", head_dim=16),
    "gemma2": grouped("Gemma2Config", "Gemma2ForCausalLM", head_dim=16),
    "gemma3": grouped("Gemma3TextConfig", "Gemma3ForCausalLM", head_dim=16),
    "phi3": grouped("Phi3Config", "Phi3ForCausalLM", pad_token_id=0),
    "mixtral": grouped("MixtralConfig", "MixtralForCausalLM", num_local_experts=4),
    "qwen3_moe": grouped("Qwen3MoeConfig", "Qwen3MoeForCausalLM", head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64),
    "deepseek_v3": language("DeepseekV3Config", "DeepseekV3ForCausalLM", num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=32, qk_rope_head_dim=16, v_head_dim=16, qk_nope_head_dim=16, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, first_k_dense_replace=1, moe_intermediate_size=64),
    "gpt_oss": grouped("GptOssConfig", "GptOssForCausalLM", head_dim=16, num_local_experts=4, num_experts_per_tok=2, pad_token_id=0),
    "mamba": of_transformers("MambaConfig", "MambaForCausalLM", vocab_size=128, hidden_size=64, num_hidden_layers=2, state_size=8),
    "mamba2": of_transformers("Mamba2Config", "Mamba2ForCausalLM", vocab_size=128, hidden_size=64, num_hidden_layers=2, state_size=8, num_heads=8, head_dim=16, n_groups=1, chunk_size=8),
    # encoders
    "bert": classifier("BertConfig", "BertForSequenceClassification", **SMALL),
    "roberta": language("RobertaConfig", "RobertaForMaskedLM", max_position_embeddings=64),
    "distilbert": classifier("DistilBertConfig", "DistilBertForSequenceClassification", vocab_size=128, dim=64, hidden_dim=128, n_layers=2, n_heads=4),
    "albert": language("AlbertConfig", "AlbertForMaskedLM", embedding_size=32),
    "deberta_v2": classifier("DebertaV2Config", "DebertaV2ForSequenceClassification", problem_type="single_label_classification", relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"], **SMALL),
    "electra": classifier("ElectraConfig", "ElectraForSequenceClassification", embedding_size=32, **SMALL),
    "xlnet": classifier("XLNetConfig", "XLNetForSequenceClassification", vocab_size=128, d_model=64, n_layer=2, n_head=4, d_inner=128),
    "longformer": classifier("LongformerConfig", "LongformerForSequenceClassification", attention_window=8, max_position_embeddings=64, **SMALL),
    "modernbert": language("ModernBertConfig", "ModernBertForMaskedLM", pad_token_id=0),
    # both
    "t5": of_transformers("T5Config", "T5ForConditionalGeneration", vocab_size=128, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0),
    "bart": of_transformers("BartConfig", "BartForConditionalGeneration", **ENCODER_DECODER),
    "whisper": of_transformers("WhisperConfig", "WhisperForConditionalGeneration", make=normal(80, 3000), pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, **ENCODER_DECODER),
    # sound and pictures, in transformers
    "wav2vec2": classifier("Wav2Vec2Config", "Wav2Vec2ForSequenceClassification", make=normal(4000), layerdrop=0.0, mask_time_prob=0.0, classifier_proj_size=32, conv_dim=(32,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, **SMALL),
    "hf_vit": classifier("ViTConfig", "ViTForImageClassification", make=images, **PICTURES),
    "dinov2": classifier("Dinov2Config", "Dinov2ForImageClassification", make=images, **PICTURES),
    "clip": clip,
    "llava": llava,
    # torchvision
    "resnet50": of_torchvision("resnet50"),
    "vit_b_16": of_torchvision("VisionTransformer", image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128),
    "swin_t": of_torchvision("SwinTransformer", patch_size=[4, 4], embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=[7, 7], stochastic_depth_prob=0.2),
    "convnext_tiny": of_torchvision("ConvNeXt", block_setting=block_settings(("torchvision.models.convnext", "CNBlockConfig"), (32, 64, 1), (64, None, 1)), stochastic_depth_prob=0.1),
    "efficientnet_b0": of_torchvision("efficientnet_b0"),
    "mobilenet_v3": of_torchvision("mobilenet_v3_large"),
    "regnet": of_torchvision("regnet_y_400mf"),
    "deeplabv3": of_torchvision("segmentation.deeplabv3_resnet50", weights_backbone=None, loss=lambda output, labels: F.cross_entropy(output["out"], labels), labels=lambda batch: torch.randint(10, (batch, 64, 64))),
    "r3d_18": of_torchvision("video.r3d_18", make=video(8, 64)),
    "raft_small": optical_flow,
    "fasterrcnn": detector,
    # timm
    "timm_vit": of_timm("vit_tiny_patch16_224", img_size=64, depth=2),
    "timm_mixer": of_timm("mixer_s32_224", img_size=64),
    "timm_nfnet": of_timm("nfnet_l0"),
    "timm_convnextv2": of_timm("convnextv2_atto"),
    "timm_eva02": of_timm("eva02_tiny_patch14_224", 56, img_size=56, depth=2),
    "timm_coatnet": of_timm("coatnet_nano_rw_224", img_size=64),
    "timm_swinv2": of_timm("swinv2_tiny_window8_256", img_size=64, window_size=4, depths=(2, 2), num_heads=(3, 6)),
    # diffusers
    "unet_cond": of_diffusers("UNet2DConditionModel", dict(sample_size=16, block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=32, attention_head_dim=8, norm_num_groups=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")), dict(sample=normal(4, 16, 16), timestep=steps, encoder_hidden_states=normal(8, 32)), (4, 16, 16)),
    "dit": of_diffusers("DiTTransformer2DModel", dict(LATENT, norm_num_groups=4), dict(AT_ONCE, class_labels=TEN), (4, 16, 16)),
    "sd3": of_diffusers("SD3Transformer2DModel", dict(LATENT, patch_size=2, joint_attention_dim=32, caption_projection_dim=64, pooled_projection_dim=32, pos_embed_max_size=32), dict(AT_ONCE, **PROMPT), (4, 16, 16)),
    "pixart": of_diffusers("PixArtTransformer2DModel", dict(LATENT, cross_attention_dim=64, caption_channels=32, norm_num_groups=4), dict(AT_ONCE, encoder_hidden_states=normal(8, 32)), (4, 16, 16), added_cond_kwargs=dict(resolution=None, aspect_ratio=None)),
    "flux": flux,
    "vae": vae,
    # more of torchvision
    "inception_v3": of_torchvision("inception_v3", 299, init_weights=False, loss=with_auxiliary_head),
    "maxvit_t": of_torchvision("MaxVit", input_size=(64, 64), stem_channels=16, partition_size=4, block_channels=[16, 32], block_layers=[1, 1], head_dim=16, stochastic_depth_prob=0.2),
    "densenet121": of_torchvision("DenseNet", growth_rate=8, block_config=(2, 2, 2, 2), num_init_features=16),
    "mvit_v2_s": of_torchvision("video.MViT", make=video(4, 64), spatial_size=(64, 64), temporal_size=4, residual_pool=True, residual_with_cls_embed=False, rel_pos_embed=True, proj_after_attn=True, stochastic_depth_prob=0.2, block_setting=block_settings(("torchvision.models.video.mvit", "MSBlockConfig"), (1, 32, 64, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 4, 4]), (2, 64, 64, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 2, 2]))),
}  # fmt: skip
