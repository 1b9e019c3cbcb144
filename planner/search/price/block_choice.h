// Which blocks to recompute so that given cuts fit their devices, by bytes freed for the time of
// their forward.
//
// What a rank then holds is reckoned nearly: what recomputed_layers() and the memory rule say of a
// choice decides, and comes back as a margin.
#pragma once

#include <array>
#include <memory>

#include "planner/search/price/live_memory.h"
#include "planner/search/problem.h"

namespace pfeife {

class BlockChoice {
 public:
  /// `blocks` as Problem::blocks.
  BlockChoice(const CutModel& model, const Schedule& compute_only, const Placement& placement,
              const std::vector<Bytes>& memory_limit, const std::vector<LayerRange>& blocks);

  struct Choice {
    std::vector<LayerRange> blocks;  ///< sorted
    std::vector<double> again;       ///< [stage] ns that each B or I takes more
    std::vector<double> peak;        ///< [rank] bytes, nearly
    bool fits = true;                ///< by `peak` and the margin
  };
  /// `kind`: [stage] kind of device; `margin`: [rank] bytes that the memory rule is expected to say
  /// more than `peak`. Blocks of a stage are taken together, two and two and so on, where memory is
  /// not enough otherwise: of what lies between them nothing is kept.
  Choice choose(const CutModel& model, const Cuts& cuts, const std::vector<std::size_t>& kind,
                const std::vector<double>& margin);
  /// The same without the names of the blocks.
  Choice weigh(const CutModel& model, const Cuts& cuts, const std::vector<std::size_t>& kind,
               const std::vector<double>& margin);
  /// The choice of just these blocks.
  Choice of(const CutModel& model, const Cuts& cuts, const std::vector<std::size_t>& kind,
            std::vector<LayerRange> blocks) const;
  /// The layers of the model without what costs nothing: names, nodes, notes.
  const Layers& layers() const { return *layers_; }
  /// The blocks are all of the model: its stages may be recomputed as a whole.
  bool are_all() const { return are_all_; }
  /// All blocks of the cuts, each by itself.
  std::vector<LayerRange> all(const CutModel& model, const Cuts& cuts) const;

 private:
  struct Piece {
    LayerRange block;
    std::size_t at = 0;  ///< local stage
    double freed = 0;    ///< bytes of a microbatch in flight
    double restored = 0, time = 0;
    bool chosen = false;
  };
  /// What a rank holds at its moments, nothing recomputed.
  struct Rank {
    std::vector<double> kept;      // [moment]
    std::vector<double> freed;     // [local stage] of the chosen
    std::vector<double> restored;  // [local stage] the largest of the chosen
  };
  /// The choice of a rank, which depends on its own stages alone.
  struct RankChoice {
    double limit = 0;  ///< bytes, less the margin
    std::vector<LayerRange> blocks;
    std::vector<double> again;  ///< [local stage]
    double peak = 0;
    bool fits = true;
  };
  std::vector<Piece> pieces(const std::vector<LayerRange>& blocks, const Cuts& cuts,
                            std::size_t rank, const std::vector<std::size_t>& kind,
                            std::size_t together) const;
  Rank start(const CutModel& model, const Cuts& cuts, std::size_t rank) const;
  double held(const Rank& rank, std::size_t r, std::size_t moment) const;
  std::size_t fullest(const Rank& rank, std::size_t r) const;
  bool take(std::vector<Piece>& pieces, Rank& rank, std::size_t r, double limit) const;
  void leave_out(std::vector<Piece>& pieces, Rank& rank, std::size_t r, double limit) const;
  RankChoice choose_rank(const CutModel& model, const Cuts& cuts, std::size_t r,
                         const std::vector<std::size_t>& kind, double limit) const;
  const RankChoice& known_choice(const CutModel& model, const Cuts& cuts, std::size_t r,
                                 const std::vector<std::size_t>& kind, double limit);
  Choice choose(const CutModel& model, const Cuts& cuts, const std::vector<std::size_t>& kind,
                const std::vector<double>& margin, bool name_blocks);

  LiveMemory live_;
  std::vector<double> limit_;  // [rank]
  std::vector<LayerRange> blocks_;
  bool are_all_ = false;
  std::shared_ptr<const Layers> layers_;
  std::vector<std::size_t> layer_;            // [position] layers before it
  std::vector<std::vector<double>> forward_;  // [kind][layers before] ns
  std::vector<double> saved_, entering_;      // [layers before] bytes; [layer] what passes into it
  struct Known {
    std::vector<std::int32_t> ends;  // [local stage][begin, end]; empty = nothing known
    RankChoice choice;
  };
  std::vector<std::array<Known, 256>> known_;  // [rank]: cuts asked about in a row differ little
  std::vector<std::int32_t> ends_;
};

}  // namespace pfeife
