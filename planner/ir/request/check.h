// Which wishes exclude one another. Each rule stands here alone: a config's reader gives the
// refusal the place of its key, a program gets the same words.
//
// What depends on the model or the cluster is checked by those who know them, who refuse in the
// same way. Which values a key may have at all is checked where it is read.
//   check({.devices = 4, .plan = {.families = {"1f1b"}}});
#pragma once

#include <span>
#include <string>

#include "planner/ir/basics/error.h"
#include "planner/ir/request/request.h"

namespace pfeife {

// What a request cannot ask for together, and why: one table, which check() goes through and
// configs/reference/combinations.md prints.

struct RefusedCombination {
  const char* key;                ///< the config's key that is refused, "plan.slices"
  const char* beside;             ///< what it cannot stand beside: "plan.for"
  const char* reason;             ///< with the remedy
  bool (*asked)(const Request&);  ///< both are asked for
  const char* value = "";         ///< of the key, which is refused; "" = any
};

/// In the order in which they are looked for.
std::span<const RefusedCombination> refused_combinations();

/// A wish that cannot be fulfilled. Its message is whole without the place.
class RefusedWish : public ConfigError {
 public:
  /// `key`: the path of the config's key that the wish stands at, "baselines[1].recompute".
  RefusedWish(std::string key, const std::string& message);
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

/// Errors: RefusedWish for the first wishes that exclude one another.
void check(const Request& request);

/// Cuts may lie between the blocks of an archive or anywhere, as the costs want it
/// (plan.cuts_at: auto).
bool cuts_are_open(const Request& request);

/// The request with its numbers of devices and microbatches said, for a cluster of so many devices:
/// of global batch, microbatches and their size two say the third; the global batch alone leaves
/// both open (microbatches = 0). Errors: RefusedWish where they do not divide, or want more devices
/// than there are.
Request with_sizes(Request request, std::size_t cluster_devices);

}  // namespace pfeife
