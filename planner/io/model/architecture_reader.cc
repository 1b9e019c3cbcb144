
#include "planner/io/model/architecture_reader.h"

#include "planner/io/files/yaml.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 30;

Kind<std::int64_t> size() { return whole<std::int64_t>(1, kMost); }

/// One word for all of them.
Kind<Biases> biases() {
  return {flag().values,
          [](const YamlNode& node) {
            const bool all = node.as_bool();
            return Biases{all, all, all, false};
          },
          [](const Biases& of) { return flag().value(of.feed_forward); }};
}

const FieldList<LatentAttention>& latent_fields() {
  using Latent = LatentAttention;
  static const FieldList<LatentAttention> fields = {
      field("query_rank", &Latent::query_rank, size(), "").needed(),
      field("key_value_rank", &Latent::key_value_rank, size(), "").needed(),
      field("rotary_size", &Latent::rotary_size, size(), "").needed(),
      field("value_size", &Latent::value_size, size(), "").needed()};
  return fields;
}

const FieldList<Mamba>& mamba_fields() {
  static const FieldList<Mamba> fields = {
      field("heads", &Mamba::heads, size(), "").needed(),
      field("head_size", &Mamba::head_size, size(), "").needed(),
      field("groups", &Mamba::groups, size(), "").needed(),
      field("state", &Mamba::state, size(), "").needed(),
      field("convolution", &Mamba::convolution, size(), ""),
      field("chunk", &Mamba::chunk, size(), ""),
      field("convolution_bias", &Mamba::convolution_bias, flag(), "")};
  return fields;
}

const FieldList<LayerKind>& layer_kind_fields() {
  using Of = LayerKind;
  const Kind<std::int64_t> tokens = whole<std::int64_t>(0, kMost);
  static const FieldList<LayerKind> fields = {
      field("mixer", &Of::mixer,
            word<MixerKind>({{"attention", MixerKind::Attention},
                             {"mamba", MixerKind::Mamba},
                             {"none", MixerKind::None}}),
            ""),
      field("feed_forward", &Of::feed_forward,
            word<FeedForwardKind>({{"dense", FeedForwardKind::Dense},
                                   {"experts", FeedForwardKind::Experts},
                                   {"none", FeedForwardKind::None}}),
            ""),
      field("window", &Of::window, tokens, ""), field("chunk", &Of::chunk, tokens, ""),
      field("rotary", &Of::rotary, flag(), "")};
  return fields;
}

/// A pattern says of each layer what it is made of, which then has to be described.
void check_pattern(const YamlNode& root, const Architecture& of) {
  const auto pattern = root.find("pattern");
  if (!pattern) {
    if (const auto mamba = root.find("mamba")) mamba->fail("only with a `pattern` that has it");
    return;
  }
  for (const char* key : {"dense_layers", "window"})
    if (const auto said = root.find(key)) said->fail("only without `pattern`, which says it");
  const std::vector<YamlNode> items = pattern->items_or_self();
  if (items.empty()) pattern->fail("a pattern of no layers; list at least one");
  for (std::size_t i = 0; i < items.size(); ++i) {
    const LayerKind& kind = of.pattern[i];
    if (kind.mixer == MixerKind::Mamba && !of.mamba)
      items[i].fail("a Mamba layer needs the key `mamba: {heads, head_size, groups, state}`");
    if (kind.feed_forward == FeedForwardKind::Experts && of.experts == 0)
      items[i].fail("a layer of experts needs the key `experts`");
    if (kind.mixer == MixerKind::None && kind.feed_forward == FeedForwardKind::None)
      items[i].fail("a layer without mixer and feed-forward part; leave it out");
    if (kind.window > 0 && kind.chunk > 0)
      items[i].fail("window and chunk exclude each other; leave one of them out");
  }
}

void check_attention(const YamlNode& root, Architecture& of) {
  if (const auto heads = root.find("key_value_heads")) {
    if (of.heads % heads->as_int(1, of.heads) != 0)
      heads->fail(stream_all(of.kv_heads, " does not divide the ", of.heads,
                             " heads; each key head serves equally many"));
  } else {
    of.kv_heads = of.heads;
  }
  if (!root.find("head_size")) {
    if (of.hidden % of.heads != 0)
      root.at("heads").fail(stream_all(of.heads, " heads do not divide hidden ", of.hidden,
                                       "; add `head_size` if a head has a size of its own"));
    of.head_size = of.hidden / of.heads;
  }
  if (of.attention == AttentionKind::Plain && of.kv_heads != of.heads)
    root.at("attention")
        .fail("plain attention has as many key_value_heads as heads; write `attention: fused`");
  if (!of.latent) return;
  if (of.attention == AttentionKind::Plain)
    root.at("attention").fail("latent attention is fused; write `attention: fused`");
  if (of.kv_heads != of.heads)
    root.at("latent_attention")
        .fail("with latent attention every head has a key of its own; leave out key_value_heads");
}

void check_experts(const YamlNode& root, Architecture& of) {
  if (!root.find("experts")) {
    for (const char* key :
         {"experts_per_token", "shared_experts", "shared_feed_forward", "dense_layers"})
      if (const auto other = root.find(key)) other->fail("only with `experts`");
    of.dense_feed_forward = 0;
    return;
  }
  root.at("experts_per_token").as_int(1, of.experts);
  if (const auto dense = root.find("dense_layers")) dense->as_int(0, of.layers);
  if (of.dense_layers > 0)
    root.at("dense_feed_forward");
  else if (of.pattern.empty())
    of.dense_feed_forward = 0;
}

Architecture read_document(const YamlDocument& document) {
  const YamlNode root = document.root();
  if (is_hugging_face(root)) return hugging_face_architecture(root);
  root.check_version(1);
  Architecture of;
  architecture_fields().read(root, of);
  check_attention(root, of);
  check_experts(root, of);
  check_pattern(root, of);
  return of;
}

}  // namespace

const FieldList<Architecture>& architecture_fields() {
  using Of = Architecture;
  static const FieldList<Architecture> fields = {
      version_field<Of>(1),
      field("name", &Of::name, free_text(), "what results call the model").needed(),
      field("layers", &Of::layers, size(), "how many").needed(),
      field("hidden", &Of::hidden, size(), "size of a token's state").needed(),
      field("heads", &Of::heads, size(), "of attention").needed(),
      field("key_value_heads", &Of::kv_heads, size(), "each serves equally many heads")
          .by_default("as many as heads"),
      field("head_size", &Of::head_size, size(), "of a head").by_default("hidden / heads"),
      field("feed_forward", &Of::feed_forward, size(), "width, of one expert where there are some")
          .needed(),
      field("vocabulary", &Of::vocabulary, size(), "padded so that tensor parallelism divides it")
          .needed(),
      field("sequence", &Of::sequence, size(), "tokens").needed(),
      field("experts", &Of::experts, size(), "how many; without them, a dense feed-forward layer")
          .by_default("none"),
      field("experts_per_token", &Of::top_k, size(), "required with `experts`").by_default("none"),
      field("shared_experts", &Of::shared_experts, whole<std::int64_t>(0, kMost),
            "that every token passes"),
      field("shared_feed_forward", &Of::shared_feed_forward, size(), "width of all of them")
          .by_default("shared_experts x feed_forward"),
      field("dense_layers", &Of::dense_layers, whole<std::int64_t>(0, kMost),
            "the first so many layers have no experts"),
      field("dense_feed_forward", &Of::dense_feed_forward, size(),
            "width in layers without experts, of a model that has some")
          .by_default("feed_forward"),
      field("window", &Of::window, whole<std::int64_t>(0, kMost),
            "tokens that a token attends to; 0: all before it"),
      field("pattern", &Of::pattern, list_of(map_of(layer_kind_fields())),
            "kinds of layers in turn, repeated: [unlike layers](#unlike-layers)")
          .with_values("a list of maps")
          .by_default("all alike"),
      field("mamba", &Of::mamba, map_of(mamba_fields()),
            "`{heads, head_size, groups, state, convolution, chunk, convolution_bias}` of a "
            "Mamba-2 layer (arXiv 2405.21060)")
          .by_default("none"),
      field("latent_attention", &Of::latent, map_of(latent_fields()),
            "`{query_rank, key_value_rank, rotary_size, value_size}`: keys and values from "
            "compressed ones (DeepSeek-V2, arXiv 2405.04434)")
          .by_default("none"),
      field("norm", &Of::norm, word<NormKind>({{"layer", NormKind::Layer}, {"rms", NormKind::Rms}}),
            "of a layer's inputs")
          .needed(),
      field("activation", &Of::activation,
            word<Activation>({{"gelu", Activation::Gelu},
                              {"swiglu", Activation::Swiglu},
                              {"squared_relu", Activation::SquaredRelu}}),
            "`swiglu` has a gate")
          .needed(),
      field("attention", &Of::attention,
            word<AttentionKind>({{"plain", AttentionKind::Plain}, {"fused", AttentionKind::Fused}}),
            "`plain`: scores, softmax and dropout as operators")
          .needed(),
      field("position", &Of::position,
            word<PositionKind>({{"learned", PositionKind::Learned},
                                {"rotary", PositionKind::Rotary},
                                {"none", PositionKind::None}}),
            "of a token")
          .needed(),
      field(
          "query_key_norm", &Of::query_key_norm,
          word<QueryKeyNorm>({{"none", QueryKeyNorm::None},
                              {"head", QueryKeyNorm::Head},
                              {"heads", QueryKeyNorm::Heads},
                              {"unweighted", QueryKeyNorm::Unweighted}}),
          "of queries and keys: each head by itself, a rank's together, or each by itself without "
          "weights behind the rotation"),
      field("attention_sinks", &Of::sinks, flag(), "a learned score of every head (GPT-OSS)"),
      field("bias", &Of::bias, biases(), "of all products but routers").needed(),
      field("tied_embedding", &Of::tied_embedding, flag(), "the head has the embedding's weights")
          .needed(),
      field("dropout", &Of::dropout, real(0, 1), "probability")};
  return fields;
}

bool is_architecture(const std::filesystem::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".json";
}

Architecture read_architecture(const std::filesystem::path& file) {
  return read_document(YamlDocument::read(file));
}

}  // namespace pfeife
