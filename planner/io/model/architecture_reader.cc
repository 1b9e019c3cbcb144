#include "planner/io/model/architecture_reader.h"

#include "planner/io/files/yaml_document.h"
#include "planner/io/model/hugging_face.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 30;

void read_attention(const YamlNode& root, Architecture& of) {
  of.heads = root.at("heads").as_int(1, kMost);
  of.kv_heads = of.heads;
  if (const auto heads = root.find("key_value_heads")) {
    of.kv_heads = heads->as_int(1, of.heads);
    if (of.heads % of.kv_heads != 0)
      heads->fail(stream_all(of.kv_heads, " does not divide the ", of.heads,
                             " heads; each key head serves equally many"));
  }
  if (const auto size = root.find("head_size")) {
    of.head_size = size->as_int(1, kMost);
  } else {
    if (of.hidden % of.heads != 0)
      root.at("heads").fail(stream_all(of.heads, " heads do not divide hidden ", of.hidden,
                                       "; add `head_size` if a head has a size of its own"));
    of.head_size = of.hidden / of.heads;
  }
  of.attention = root.at("attention")
                     .as_one_of<AttentionKind>(
                         {{"plain", AttentionKind::Plain}, {"fused", AttentionKind::Fused}});
  if (of.attention == AttentionKind::Plain && of.kv_heads != of.heads)
    root.at("attention")
        .fail("plain attention has as many key_value_heads as heads; write `attention: fused`");
}

void read_experts(const YamlNode& root, Architecture& of) {
  const auto count = root.find("experts");
  if (!count) {
    for (const char* key : {"experts_per_token", "shared_experts", "dense_layers"})
      if (const auto other = root.find(key)) other->fail("only with `experts`");
    return;
  }
  of.experts = count->as_int(1, kMost);
  of.top_k = root.at("experts_per_token").as_int(1, of.experts);
  if (const auto shared = root.find("shared_experts")) of.shared_experts = shared->as_int(0, kMost);
  if (const auto dense = root.find("dense_layers")) of.dense_layers = dense->as_int(0, of.layers);
  if (of.dense_layers > 0) of.dense_feed_forward = root.at("dense_feed_forward").as_int(1, kMost);
}

void read_latent(const YamlNode& root, Architecture& of) {
  const auto node = root.find("latent_attention");
  if (!node) return;
  node->check_keys({"query_rank", "key_value_rank", "rotary_size", "value_size"});
  of.latent = LatentAttention{.query_rank = node->at("query_rank").as_int(1, kMost),
                              .key_value_rank = node->at("key_value_rank").as_int(1, kMost),
                              .rotary_size = node->at("rotary_size").as_int(1, kMost),
                              .value_size = node->at("value_size").as_int(1, kMost)};
  if (of.attention == AttentionKind::Plain)
    root.at("attention").fail("latent attention is fused; write `attention: fused`");
  if (of.kv_heads != of.heads)
    node->fail("with latent attention every head has a key of its own; leave out key_value_heads");
}

Architecture read_document(const YamlDocument& document) {
  const YamlNode root = document.root();
  if (is_hugging_face(root)) return hugging_face_architecture(root);
  root.check_version(1);
  root.check_keys({"version",          "name",         "layers",
                   "hidden",           "heads",        "key_value_heads",
                   "head_size",        "feed_forward", "vocabulary",
                   "sequence",         "experts",      "experts_per_token",
                   "shared_experts",   "dense_layers", "dense_feed_forward",
                   "latent_attention", "norm",         "activation",
                   "attention",        "position",     "bias",
                   "tied_embedding",   "dropout"});
  Architecture of;
  of.name = root.at("name").as_string();
  of.layers = root.at("layers").as_int(1, kMost);
  of.hidden = root.at("hidden").as_int(1, kMost);
  read_attention(root, of);
  of.feed_forward = root.at("feed_forward").as_int(1, kMost);
  of.vocabulary = root.at("vocabulary").as_int(1, kMost);
  of.sequence = root.at("sequence").as_int(1, kMost);
  read_experts(root, of);
  read_latent(root, of);
  of.norm =
      root.at("norm").as_one_of<NormKind>({{"layer", NormKind::Layer}, {"rms", NormKind::Rms}});
  of.activation =
      root.at("activation")
          .as_one_of<Activation>({{"gelu", Activation::Gelu}, {"swiglu", Activation::Swiglu}});
  of.position = root.at("position")
                    .as_one_of<PositionKind>(
                        {{"learned", PositionKind::Learned}, {"rotary", PositionKind::Rotary}});
  const bool bias = root.at("bias").as_bool();
  of.bias = {bias, bias, bias};
  of.tied_embedding = root.at("tied_embedding").as_bool();
  if (const auto dropout = root.find("dropout")) of.dropout = dropout->as_double(0, 1);
  return of;
}

}  // namespace

Architecture parse_architecture(std::string_view text, const std::string& file) {
  return read_document(YamlDocument::parse(text, file));
}

Architecture read_architecture(const std::filesystem::path& file) {
  return read_document(YamlDocument::read(file));
}

}  // namespace pfeife
