#include "planner/io/model/architecture_reader.h"

#include "planner/io/files/yaml_document.h"
#include "planner/io/model/hugging_face.h"
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
            return Biases{all, all, all};
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
    for (const char* key : {"experts_per_token", "shared_experts", "dense_layers"})
      if (const auto other = root.find(key)) other->fail("only with `experts`");
    of.dense_feed_forward = 0;
    return;
  }
  root.at("experts_per_token").as_int(1, of.experts);
  if (const auto dense = root.find("dense_layers")) dense->as_int(0, of.layers);
  if (of.dense_layers > 0)
    root.at("dense_feed_forward");
  else
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
      field("dense_layers", &Of::dense_layers, whole<std::int64_t>(0, kMost),
            "the first so many layers have no experts"),
      field("dense_feed_forward", &Of::dense_feed_forward, size(), "width in these layers")
          .by_default("none"),
      field("latent_attention", &Of::latent, map_of(latent_fields()),
            "`{query_rank, key_value_rank, rotary_size, value_size}`: keys and values from "
            "compressed ones (DeepSeek-V2, arXiv 2405.04434)")
          .by_default("none"),
      field("norm", &Of::norm, word<NormKind>({{"layer", NormKind::Layer}, {"rms", NormKind::Rms}}),
            "of a layer's inputs")
          .needed(),
      field("activation", &Of::activation,
            word<Activation>({{"gelu", Activation::Gelu}, {"swiglu", Activation::Swiglu}}),
            "`swiglu` has a gate")
          .needed(),
      field("attention", &Of::attention,
            word<AttentionKind>({{"plain", AttentionKind::Plain}, {"fused", AttentionKind::Fused}}),
            "`plain`: scores, softmax and dropout as operators")
          .needed(),
      field("position", &Of::position,
            word<PositionKind>(
                {{"learned", PositionKind::Learned}, {"rotary", PositionKind::Rotary}}),
            "of a token")
          .needed(),
      field("bias", &Of::bias, biases(), "of all products").needed(),
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
