#include "planner/mesh/rank_graph.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/model/arguments.h"
#include "planner/mesh/graph_writer.h"

namespace pfeife {
namespace {

/// Activations are [sequence, microbatch, ...], so that a part of the sequence is a part of memory.
class RankGraphWriter {
 public:
  RankGraphWriter(const Architecture& of, const Mesh& mesh, const RankGraphOptions& options)
      : of_(of),
        tp_(mesh.size(Axis::Tensor)),
        cp_(mesh.size(Axis::Context)),
        ep_(mesh.experts),
        sp_(options.sequence_parallel && tp_ > 1),
        separate_(options.separate_experts),
        imbalance_(options.expert_imbalance),
        megatron_(options.kernels == RankKernels::Megatron),
        batch_(options.microbatch_size),
        sequence_(of.sequence / cp_),
        part_(sp_ ? sequence_ / tp_ : sequence_),
        heads_(of.heads / tp_),
        kv_heads_(of.kv_heads < tp_ ? 1 : of.kv_heads / tp_),
        writer_(of.name, options.type) {}

  RankGraph written() {
    ValueId x = write_embedding();
    for (std::int64_t layer = 0; layer < of_.layers; ++layer) x = write_layer(x, layer);
    const ValueId loss = write_head(x);
    made_.graph = writer_.finish(loss, batch_);
    return std::move(made_);
  }

 private:
  void end_piece(PieceKind kind, std::int64_t layer) {
    made_.pieces.push_back({kind, layer, writer_.last()});
  }
  /// What `write` writes is a module.
  template <class Write>
  auto module(Module module, const Write& write) {
    const NodeId first{writer_.last().value + 1};
    const auto result = write();
    made_.modules.push_back({module, first, writer_.last()});
    return result;
  }
  Sizes tokens(std::int64_t width) const { return {part_, batch_, width}; }  // between blocks
  Sizes full(std::int64_t width) const { return {sequence_, batch_, width}; }

  // ---- collectives ----
  ValueId collective(const char* name, ValueId v, const char* axis, Sizes result) {
    return writer_.call(name + std::to_string(writer_.last().value + 1),
                        std::string("pfeife::") + name, {{"input", v}, {"axis", std::string(axis)}},
                        std::move(result));
  }
  /// Into the part of a block that is divided by columns.
  ValueId enter_columns(ValueId x) {
    if (tp_ == 1) return x;
    const char* name = sp_ ? "all_gather" : "all_reduce_gradient";
    return collective(name, x, "tp", full(of_.hidden));
  }
  /// Out of the part that is divided by rows.
  ValueId leave_rows(ValueId y) {
    if (tp_ == 1) return y;
    return collective(sp_ ? "reduce_scatter" : "all_reduce", y, "tp", tokens(of_.hidden));
  }

  // ---- small operators ----
  ValueId norm(const std::string& name, ValueId x, bool weighted = true) {
    const bool centred = of_.norm == NormKind::Layer;
    const Sizes width = {writer_.type(x).sizes.back()};
    std::vector<Argument> arguments = {{"input", x}, {"normalized_shape", width}};
    if (weighted) arguments.push_back({"weight", writer_.parameter(name + ".weight", width)});
    if (centred) arguments.push_back({"bias", writer_.parameter(name + ".bias", width)});
    return writer_.call(name, centred ? "aten::layer_norm" : "aten::rms_norm", std::move(arguments),
                        writer_.type(x).sizes);
  }
  ValueId linear(const std::string& name, ValueId x, std::int64_t out, bool bias) {
    Sizes sizes = writer_.type(x).sizes;
    const std::int64_t in = sizes.back();
    sizes.back() = out;
    std::vector<Argument> arguments = {{"input", x},
                                       {"weight", writer_.parameter(name + ".weight", {out, in})}};
    if (bias) arguments.push_back({"bias", writer_.parameter(name + ".bias", {out})});
    const ValueId result =
        writer_.call(name, "aten::linear", std::move(arguments), std::move(sizes));
    made_.linear.push_back(writer_.last());
    return result;
  }
  ValueId dropout(const std::string& name, ValueId x) {
    if (of_.dropout == 0) return x;
    return writer_.call(name, "aten::dropout", {{"input", x}, {"p", of_.dropout}, {"train", true}},
                        writer_.type(x).sizes);
  }
  ValueId add(const std::string& name, ValueId a, ValueId b) {
    return writer_.call(name, "aten::add", {{"self", a}, {"other", b}}, writer_.type(a).sizes);
  }

  // ---- embedding ----
  ValueId write_embedding() {
    writer_.enter("embedding");
    const ValueId ids = writer_.input("ids", {sequence_, batch_}, DType::Int64);
    embedding_ = writer_.parameter("weight", {of_.vocabulary / tp_, of_.hidden});
    ValueId x = writer_.call("words", "aten::embedding", {{"weight", embedding_}, {"indices", ids}},
                             full(of_.hidden));
    x = leave_rows(x);
    if (of_.position == PositionKind::Learned) {
      const ValueId where = writer_.input("positions", {part_, 1}, DType::Int64);
      const ValueId table = writer_.parameter(
          "positions", {of_.positions > 0 ? of_.positions : of_.sequence, of_.hidden});
      const ValueId position =
          writer_.call("position", "aten::embedding", {{"weight", table}, {"indices", where}},
                       Sizes{part_, 1, of_.hidden});
      x = add("sum", x, position);
    }
    x = dropout("dropout", x);
    end_piece(PieceKind::Embedding, 0);
    return x;
  }

  // ---- attention ----
  struct Projected {
    ValueId query, key, value;  // [sequence, batch, heads, head size]
  };
  /// A layer in three pieces: the mixer's products in, the mixer, and the rest; without a mixer,
  /// norm, feed-forward part, residual.
  ValueId write_layer(ValueId x, std::int64_t layer) {
    const LayerKind kind = layer_kind(of_, layer);
    const std::string path = "layers." + std::to_string(layer);
    const bool attends = kind.mixer == MixerKind::Attention;
    writer_.enter(path + ".before");
    const ValueId first = module(Module::Norm, [&] { return norm("norm", x); });
    if (kind.mixer == MixerKind::None) {
      end_piece(PieceKind::BeforeAttention, layer);
      writer_.enter(path + ".feed_forward");
      const ValueId y = feed_forward(kind, first);
      end_piece(PieceKind::Attention, layer);
      writer_.enter(path + ".after");
      x = add("residual", dropout("dropout", y), x);
      end_piece(PieceKind::AfterAttention, layer);
      return x;
    }
    const ValueId normed = enter_columns(first);
    ValueId mixed;
    if (attends) {
      const Projected projected =
          of_.latent ? project_latent(normed, *of_.latent) : project(normed, kind.rotary);
      end_piece(PieceKind::BeforeAttention, layer);
      writer_.enter(path + ".attention");
      mixed = module(Module::CoreAttention, [&] {
        return of_.attention == AttentionKind::Plain ? plain_attention(projected)
                                                     : fused_attention(projected, kind);
      });
    } else {
      const ValueId in = linear("in", normed, mamba_inward(), false);
      end_piece(PieceKind::BeforeAttention, layer);
      writer_.enter(path + ".mamba");
      mixed = state_space(in);
    }
    end_piece(PieceKind::Attention, layer);

    writer_.enter(path + ".after");
    const ValueId y = linear("projection", mixed, of_.hidden, attends && of_.bias.attention_output);
    x = add("residual", dropout("dropout", leave_rows(y)), x);
    if (kind.feed_forward != FeedForwardKind::None) {
      const ValueId second = module(Module::Norm, [&] { return norm("norm", x); });
      x = add("residual_2", dropout("dropout_2", feed_forward(kind, second)), x);
    }
    end_piece(PieceKind::AfterAttention, layer);
    return x;
  }
  ValueId feed_forward(const LayerKind& kind, ValueId normed) {
    if (kind.feed_forward == FeedForwardKind::Experts)
      return module(Module::Experts, [&] { return experts(normed); });
    return module(Module::FeedForward, [&] { return feed_forward(normed, dense_width(of_)); });
  }

  // ---- Mamba-2 ----
  /// Gate, values, B, C and steps of this rank's heads.
  std::int64_t mamba_inward() const {
    return (of_.mamba->inner() + of_.mamba->convolved() + of_.mamba->heads) / tp_;
  }
  /// Convolution, state space and gated norm; on a cp-th of the heads and the whole sequence. Where
  /// groups are fewer than ranks of cp, each has a copy of one.
  ValueId state_space(ValueId in) {
    const Mamba& mamba = *of_.mamba;
    const std::int64_t heads = mamba.heads / tp_, groups = mamba.groups / tp_,
                       inner = heads * mamba.head_size,
                       convolved = inner + 2 * groups * mamba.state;
    const std::int64_t heads_here = heads / cp_,
                       groups_here = std::max<std::int64_t>(1, groups / cp_);
    const std::int64_t inner_here = heads_here * mamba.head_size;
    if (cp_ > 1)
      in = collective(
          "all_to_all", in, "cp",
          {of_.sequence, batch_, 2 * inner_here + 2 * groups_here * mamba.state + heads_here});
    std::vector<Argument> arguments = {
        {"input", in},
        {"convolution", writer_.parameter("convolution", {convolved, mamba.convolution})}};
    if (mamba.convolution_bias)
      arguments.push_back({"bias", writer_.parameter("convolution_bias", {convolved})});
    for (const char* name : {"step_bias", "decay", "skip"})
      arguments.push_back({name, writer_.parameter(name, {heads})});
    arguments.push_back({"norm", writer_.parameter("norm", {inner})});
    arguments.insert(arguments.end(), {{"heads", heads_here},
                                       {"head_size", mamba.head_size},
                                       {"groups", groups_here},
                                       {"state", mamba.state},
                                       {"chunk", std::min(mamba.chunk, of_.sequence)}});
    ValueId y = writer_.call("state_space", "pfeife::state_space", std::move(arguments),
                             Sizes{of_.sequence, batch_, inner_here});
    if (cp_ > 1) y = collective("all_to_all", y, "cp", {sequence_, batch_, inner});
    return y;
  }

  /// One product for all three, of whose result they are views, as in Megatron-LM; or a product
  /// each, as in Llama. The rotated ones are copies. A value that is a view would keep what the
  /// others were, too: it is copied (Transformer Engine makes it contiguous).
  Projected project(ValueId normed, bool rotary) {
    const std::int64_t size = of_.head_size;
    const bool turned = of_.position == PositionKind::Rotary;
    Projected projected = turned && !megatron_ ? project_each(normed) : project_together(normed);
    if (!turned) return projected;
    ValueId &query = projected.query, &key = projected.key;
    const auto each = [&](const auto& apply) {
      query = apply("q_norm", query), key = apply("k_norm", key);
    };
    if (of_.query_key_norm == QueryKeyNorm::Head)
      each([&](const char* name, ValueId v) { return norm(name, v); });
    if (of_.query_key_norm == QueryKeyNorm::Heads)
      each([&](const char* name, ValueId v) {
        const Sizes by_head = writer_.type(v).sizes;
        return dense_view(norm(name, dense_view(v, full(by_head[2] * by_head[3]))), by_head);
      });
    if (rotary) query = rotate("query", query), key = rotate("key", key);
    if (rotary && of_.query_key_norm == QueryKeyNorm::Unweighted)
      each([&](const char* name, ValueId v) { return norm(name, v, false); });
    if (megatron_)
      projected.value = writer_.call("value", "aten::contiguous", {{"self", projected.value}},
                                     Sizes{sequence_, batch_, kv_heads_, size});
    return projected;
  }
  Projected project_each(ValueId normed) {
    const std::int64_t size = of_.head_size;
    const auto part = [&](const std::string& name, std::int64_t heads) {
      return dense_view(linear(name, normed, heads * size, of_.bias.query_key_value),
                        {sequence_, batch_, heads, size});
    };
    const ValueId query = part("q", heads_), key = part("k", kv_heads_);
    return {query, key, part("v", kv_heads_)};
  }
  Projected project_together(ValueId normed) {
    const std::int64_t size = of_.head_size, width = (heads_ + 2 * kv_heads_) * size;
    const ValueId together = linear("qkv", normed, width, of_.bias.query_key_value);
    const Sizes strides = {batch_ * width, width, size, 1};
    const TensorType all = {writer_.element(), {sequence_, batch_, heads_, size}, strides, 0};
    TensorType few = all;
    few.sizes[2] = kv_heads_;
    const std::vector<ValueId> parts =
        writer_.call_many("split", "aten::split_with_sizes", {{"self", together}}, {all, few, few});
    return {parts[0], parts[1], parts[2]};
  }
  /// Queries, keys and values from compressed ones, which every rank of tp makes for itself. Of a
  /// head's query and key a part is rotated; that part of the key is one for all heads.
  Projected project_latent(ValueId normed, const LatentAttention& to) {
    const std::int64_t turned = to.rotary_size;
    const ValueId query = linear("query_down", normed, to.query_rank, false);
    const std::vector<ValueId> down = split(
        linear("down", normed, to.key_value_rank + turned, false), {to.key_value_rank, turned});
    return module(Module::LatentUp, [&] { return project_up(query, down[0], down[1], to); });
  }
  Projected project_up(ValueId query, ValueId down, ValueId shared, const LatentAttention& to) {
    const std::int64_t size = of_.head_size, turned = to.rotary_size;
    query = norm("query_norm", query);
    const Sizes by_head = {sequence_, batch_, heads_, size + turned};
    Projected projected;
    projected.query = rotate(
        "query", dense_view(linear("query_up", query, heads_ * (size + turned), false), by_head));
    const ValueId both =
        dense_view(linear("up", norm("norm_2", down), heads_ * (size + to.value_size), false),
                   {sequence_, batch_, heads_, size + to.value_size});
    const std::vector<ValueId> up = split(both, {size, to.value_size});
    shared = rotate("key", shared);
    const ValueId every = writer_.view(shared, "aten::expand", {sequence_, batch_, heads_, turned},
                                       {batch_ * turned, turned, 0, 1});
    projected.key = writer_.call(
        "key", "aten::cat",
        {{"tensors", std::vector<ValueId>{up[0], every}}, {"dim", std::int64_t{-1}}}, by_head);
    projected.value = up[1];
    return projected;
  }
  ValueId dense_view(ValueId v, Sizes sizes) {
    Sizes strides = dense_tensor(sizes, writer_.element()).strides;
    return writer_.view(v, "aten::view", std::move(sizes), std::move(strides));
  }
  /// Parts of the last dimension, as views.
  std::vector<ValueId> split(ValueId v, const Sizes& widths) {
    std::vector<TensorType> types;
    for (const std::int64_t width : widths) {
      types.push_back(writer_.type(v));
      types.back().sizes.back() = width;
    }
    return writer_.call_many("split", "aten::split_with_sizes", {{"self", v}}, std::move(types));
  }
  /// As one fused kernel: a product with a table and another one with its turned halves, both read
  /// and written once.
  ValueId rotate(const std::string& name, ValueId v) {
    return writer_.call("rotate_" + name, "pfeife::rotate", {{"input", v}}, writer_.type(v).sizes);
  }

  /// [batch x heads, sequence, head size], without a copy.
  ValueId by_head(ValueId v) {
    const TensorType& type = writer_.type(v);
    const Sizes& strides = type.strides;
    return writer_.view(v, "aten::transpose", {batch_ * heads_, sequence_, of_.head_size},
                        {strides[2], strides[0], strides[3]});
  }
  ValueId plain_attention(const Projected& from) {
    const ValueId query = by_head(from.query), key = by_head(from.key), value = by_head(from.value);
    const Sizes square = {batch_ * heads_, sequence_, sequence_};
    const Sizes& strides = writer_.type(key).strides;
    const ValueId turned =
        writer_.view(key, "aten::transpose", {batch_ * heads_, of_.head_size, sequence_},
                     {strides[0], strides[2], strides[1]});
    ValueId scores =
        writer_.call("scores", "aten::bmm", {{"self", query}, {"mat2", turned}}, square);
    // Scale, mask and softmax are one kernel of its own.
    scores = writer_.call("softmax", "aten::softmax", {{"self", scores}, {"dim", std::int64_t{-1}}},
                          square);
    scores = dropout("dropout", scores);
    const ValueId context =
        writer_.call("context", "aten::bmm", {{"self", scores}, {"mat2", value}},
                     Sizes{batch_ * heads_, sequence_, of_.head_size});
    return merge_heads(context);
  }
  /// [sequence, batch, heads x head size] from [batch, heads, sequence, head size]: a copy.
  ValueId merge_heads(ValueId context) {
    const std::int64_t size = writer_.type(context).sizes.back();
    const ValueId turned =
        writer_.view(context, "aten::transpose", {sequence_, batch_, heads_, size},
                     {size, heads_ * sequence_ * size, sequence_ * size, 1});
    return writer_.call("merged", "aten::reshape", {{"self", turned}}, full(heads_ * size));
  }
  ValueId fused_attention(const Projected& from, const LayerKind& kind) {
    const auto outward = [&](ValueId v, std::int64_t heads, std::int64_t sequence) {
      const Sizes& strides = writer_.type(v).strides;
      return writer_.view(v, "aten::transpose",
                          {batch_, heads, sequence, writer_.type(v).sizes.back()},
                          {strides[1], strides[2], strides[0], strides[3]});
    };
    const auto gathered = [&](ValueId v) {
      if (cp_ == 1) return v;
      Sizes whole = writer_.type(v).sizes;
      whole.front() = of_.sequence;
      return collective("all_gather", v, "cp", std::move(whole));
    };
    const ValueId key = gathered(from.key), value = gathered(from.value);
    const std::int64_t size = writer_.type(value).sizes.back();
    // The kernel writes [sequence, batch, heads, size], so that merging heads copies nothing.
    const TensorType written = {writer_.element(),
                                {batch_, heads_, sequence_, size},
                                {heads_ * size, size, batch_ * heads_ * size, 1},
                                0};
    std::vector<Argument> arguments = {{"query", outward(from.query, heads_, sequence_)},
                                       {"key", outward(key, kv_heads_, of_.sequence)},
                                       {"value", outward(value, kv_heads_, of_.sequence)},
                                       {"is_causal", true}};
    if (of_.sinks) arguments.push_back({"sinks", writer_.parameter("sinks", {heads_})});
    if (kind.window > 0) arguments.push_back({"window", kind.window});
    if (kind.chunk > 0) arguments.push_back({"chunk", kind.chunk});
    const ValueId context =
        writer_.call("sdpa", "aten::scaled_dot_product_attention", std::move(arguments), written);
    return dense_view(context, full(heads_ * size));
  }

  // ---- feed-forward ----
  ValueId feed_forward(ValueId normed, std::int64_t width) {
    return leave_rows(inner_feed_forward(enter_columns(normed), width, ""));
  }
  /// A part of it on a rank of tp; `name` in front of the operators' names.
  ValueId inner_feed_forward(ValueId x, std::int64_t width, const std::string& name) {
    const ValueId up = linear(name + "up", x, width_inward(width), of_.bias.feed_forward);
    return linear(name + "down", activate(name, up), of_.hidden, of_.bias.feed_forward);
  }
  /// Columns of the product with `width` of the feed-forward layer on this rank: gate and rest are
  /// one product.
  std::int64_t width_inward(std::int64_t width) const {
    return width / tp_ * (of_.activation == Activation::Swiglu ? 2 : 1);
  }
  /// silu(gate) x rest is one kernel, as in Megatron-LM (bias_swiglu): it keeps what it reads. Each
  /// row may be multiplied by a `scale`.
  ValueId activate(const std::string& name, ValueId up, ValueId scale = kNoValue) {
    std::vector<Argument> arguments = {{"input", up}};
    if (scale != kNoValue) arguments.push_back({"scale", scale});
    if (of_.activation == Activation::Gelu) {
      arguments.front().name = "self";
      return writer_.call(name + "gelu", "aten::gelu", std::move(arguments),
                          writer_.type(up).sizes);
    }
    if (of_.activation == Activation::SquaredRelu)
      return writer_.call(name + "relu2", "pfeife::squared_relu", std::move(arguments),
                          writer_.type(up).sizes);
    Sizes sizes = writer_.type(up).sizes;
    sizes.back() /= 2;
    return writer_.call(name + "swiglu", "pfeife::swiglu", std::move(arguments), std::move(sizes));
  }

  /// Tokens go to the ranks of their experts, through grouped products, and back. The experts of
  /// this rank get `imbalance_` times as many as those of the ranks' mean.
  ValueId experts(ValueId normed) {
    const ValueId x = enter_columns(normed);
    const std::int64_t rows = sequence_ * batch_, copies = rows * of_.top_k;
    const std::int64_t arrived =
        ep_ > 1 ? std::llround(imbalance_ * static_cast<double>(copies)) : copies;
    const std::int64_t here = of_.experts / ep_, inner = of_.feed_forward / tp_;
    const ValueId flat = writer_.view(x, "aten::view", {rows, of_.hidden}, {of_.hidden, 1});
    const ValueId gates =
        writer_.call("gates", "aten::softmax", {{"self", router(flat)}, {"dim", std::int64_t{-1}}},
                     Sizes{rows, of_.experts});
    const std::vector<ValueId> best =
        writer_.call_many("best", "aten::topk", {{"self", gates}, {"k", of_.top_k}},
                          {dense_tensor({rows, of_.top_k}, writer_.element()),
                           dense_tensor({rows, of_.top_k}, DType::Int64)});
    ValueId sent = writer_.call("dispatch", "aten::index_select",
                                {{"self", flat}, {"dim", std::int64_t{0}}, {"index", best[1]}},
                                Sizes{copies, of_.hidden});
    const bool sorts = megatron_ && ep_ > 1;
    const auto in_other_order = [&](const char* name, ValueId v) {
      return writer_.call(name, "aten::clone", {{"self", v}}, writer_.type(v).sizes);
    };
    if (ep_ > 1) sent = collective("all_to_all", sent, "ep", {arrived, of_.hidden});
    if (sorts) sent = in_other_order("by_expert", sent);
    const auto grouped = [&](const char* name, ValueId v, std::int64_t in, std::int64_t out) {
      const std::string path = std::string("experts.") + name;
      std::vector<Argument> arguments = {{"self", v},
                                         {"mat2", writer_.parameter(path, {here, in, out})}};
      if (of_.bias.feed_forward)
        arguments.push_back({"bias", writer_.parameter(path + "_bias", {here, out})});
      if (separate_) arguments.push_back({"kernels", here});
      const ValueId result =
          writer_.call(name, "aten::_grouped_mm", std::move(arguments), Sizes{arrived, out});
      made_.linear.push_back(writer_.last());
      return result;
    };
    ValueId y = grouped("up", sent, of_.hidden, width_inward(of_.feed_forward));
    const auto scale = [&] { return writer_.view(best[0], "aten::view", {copies, 1}, {1, 1}); };
    y = module(Module::ExpertActivation,
               [&] { return activate("", y, megatron_ ? scale() : kNoValue); });
    y = grouped("down", y, inner, of_.hidden);
    if (sorts) y = in_other_order("by_rank", y);
    if (ep_ > 1) y = collective("all_to_all", y, "ep", {copies, of_.hidden});
    if (!megatron_)
      y = writer_.call("weighted", "aten::mul", {{"self", y}, {"other", scale()}},
                       Sizes{copies, of_.hidden});
    const ValueId apart =
        writer_.view(y, "aten::view", {sequence_, batch_, of_.top_k, of_.hidden},
                     {batch_ * of_.top_k * of_.hidden, of_.top_k * of_.hidden, of_.hidden, 1});
    y = writer_.call("combine", "aten::sum", {{"self", apart}, {"dim", Sizes{2}}},
                     full(of_.hidden));
    if (of_.shared_experts > 0)
      y = add("with_shared", y, module(Module::SharedExperts, [&] {
                return inner_feed_forward(x, shared_width(of_), "shared_");
              }));
    return leave_rows(y);
  }
  ValueId router(ValueId x) {
    const std::int64_t in = writer_.type(x).sizes.back();
    std::vector<Argument> arguments = {
        {"input", x}, {"weight", writer_.parameter("router.weight", {of_.experts, in})}};
    if (of_.bias.router)
      arguments.push_back({"bias", writer_.parameter("router.bias", {of_.experts})});
    return writer_.call("router", "aten::linear", std::move(arguments),
                        Sizes{writer_.type(x).sizes.front(), of_.experts});
  }

  // ---- head ----
  ValueId write_head(ValueId x) {
    writer_.enter("head");
    x = enter_columns(norm("norm", x));
    const std::int64_t words = of_.vocabulary / tp_, rows = sequence_ * batch_;
    const ValueId table =
        of_.tied_embedding ? embedding_ : writer_.parameter("weight", {words, of_.hidden});
    const ValueId logits =
        writer_.call("logits", "aten::linear", {{"input", x}, {"weight", table}}, full(words));
    const TensorType wide = dense_tensor({rows, words}, DType::Float32);
    const ValueId flat = writer_.view(logits, "aten::view", {rows, words}, {words, 1});
    const ValueId exact =
        megatron_ ? flat : writer_.call("exact", "aten::_to_copy", {{"self", flat}}, wide);
    const ValueId labels = writer_.input("labels", {rows}, DType::Int64);
    const ValueId loss =
        writer_.call("loss", megatron_ ? "pfeife::cross_entropy" : "aten::cross_entropy_loss",
                     {{"self", exact}, {"target", labels}}, dense_tensor({}, DType::Float32));
    end_piece(PieceKind::Head, 0);
    return loss;
  }

  const Architecture& of_;
  const std::int64_t tp_, cp_, ep_;
  const bool sp_, separate_;
  const double imbalance_;
  const bool megatron_;
  const std::int64_t batch_, sequence_, part_, heads_, kv_heads_;
  GraphWriter writer_;
  ValueId embedding_;
  RankGraph made_;
};

}  // namespace

RankGraph rank_graph(const Architecture& of, const Mesh& mesh, const RankGraphOptions& options) {
  return RankGraphWriter(of, mesh, options).written();
}

ValueId linear_weight(const Node& product) {
  const ValueId weight = tensor_argument(product, "weight");
  return weight == kNoValue ? tensor_argument(product, "mat2") : weight;
}

std::string collective_axis(const Node& node) {
  if (!node.op.starts_with("pfeife::")) return "";
  const Argument* axis = node.find("axis");
  const auto* name = axis ? std::get_if<std::string>(&axis->value) : nullptr;
  return name ? *name : "";
}

}  // namespace pfeife
