// Forged certificates: whatever number or step is changed in one, no wrong claim passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "planner/io/files/digest.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/io/plan/repeats.h"
#include "planner/ir/error.h"
#include "planner/schedule_tool/certify.h"
#include "planner/search/choices/relaxed_devices.h"
#include "planner/search/choices/work_certificate.h"
#include "tests/search/certified.h"

namespace pfeife {
namespace {

/// A certificate with one number replaced, and the digest that makes it look sound.
std::string forged(const std::string& body, std::size_t begin, std::size_t end,
                   const std::string& number) {
  const std::string wrong = body.substr(0, begin) + number + body.substr(end);
  return "pfeife certificate 12, sha256 " + sha256(wrong) + "\n" + wrong;
}

/// Whether some plan of the certificate's own problem is faster than it claims, by brute force.
bool is_false(const Certificate& certificate) {
  Problem problem{.layers = certificate.layers, .cluster = certificate.cluster};
  problem.device_of_rank = certificate.device_of_rank;
  problem.memory_limit = certificate.memory_limit, problem.recompute = certificate.recompute;
  double best = std::numeric_limits<double>::infinity();
  for (const CertifiedProof& proof : certificate.proofs)
    if (proof.spec.stages() <= certificate.layers.size())
      best = std::min(best, brute_force(problem, proof.spec).time);
  return best < static_cast<double>(certificate.bound);
}
/// Likewise of any order of the devices of `own`, if it holds for those.
bool is_false_of_any_order(const Certificate& certificate, const Certificate& own) {
  if (!tool::of_any_devices(certificate, own)) return false;
  Certificate placed = certificate;
  std::vector<std::size_t> ranks(own.device_of_rank.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  do {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      placed.device_of_rank[r] = own.device_of_rank[ranks[r]];
      placed.memory_limit[r] = own.memory_limit[ranks[r]];
    }
    if (is_false(placed)) return true;
  } while (std::ranges::next_permutation(ranks).found);
  return false;
}

/// What may stand in the place of a number, or of the steps of a path or row.
std::vector<std::string> changed(const std::string& word) {
  if (word.empty()) return {};
  if (word.find_first_not_of("0123456789") == std::string::npos)
    return {word + "1", std::to_string(std::stoull(word) / 2 + 1)};
  const auto turns = unfold_repeats(word, 100000);
  if (!turns || turns->find_first_not_of("rfbds") != std::string::npos) return {};
  std::string other = *turns;
  other.front() = turns->front() == 's' ? 'f' : 's';
  return {fold_repeats(*turns + turns->back()), fold_repeats(turns->substr(1)),
          fold_repeats(other)};
}

bool accepted(const Certificate& certificate) { return tool::certify(certificate).refusal.empty(); }

struct Forgeries {
  int tried = 0, right = 0, of_any_devices = 0;
};
/// Changes the certificates at every place. A change may leave the proof, of this or of another
/// problem, right: what must never happen is that a wrong claim passes.
void forge(const std::vector<Certificate>& certificates, Forgeries& forgeries) {
  const std::string text = certificate_text(certificates);
  const std::size_t head = text.find('\n') + 1;
  const std::string body = text.substr(head);
  ASSERT_EQ(certificate_text(read_certificate_text(text, "c")), text);
  ASSERT_TRUE(read_certificate_text(text, "c") == certificates);
  for (std::size_t end, begin = 0; begin < body.size(); begin = end + 1) {
    end = body.find_first_of(" \n", begin);
    const std::string word = body.substr(begin, end - begin);
    for (const std::string& wrong : changed(word)) {
      if (wrong == word) continue;
      EXPECT_THROW(read_certificate_text(
                       text.substr(0, head + begin) + wrong + text.substr(head + end), "c"),
                   ConfigError);
      ++forgeries.tried;
      try {
        const std::vector<Certificate> forged_ones =
            read_certificate_text(forged(body, begin, end, wrong), "forged");
        if (!std::ranges::all_of(forged_ones, accepted)) continue;
        ++forgeries.right;
        const auto wrong_claim = [&](const Certificate& one) {
          forgeries.of_any_devices += tool::of_any_devices(one, forged_ones.front());
          return is_false(one) || is_false_of_any_order(one, forged_ones.front());
        };
        ASSERT_TRUE(std::ranges::none_of(forged_ones, wrong_claim))
            << word << " -> " << wrong << " in\n"
            << body;
      } catch (const ConfigError&) {
      }
    }
  }
}

TEST(Certify, RefusesEveryCorruptedNumberAndIsNotFooledByForgedOnes) {
  std::mt19937 random(31);
  Forgeries forgeries;
  for (int round = 0; round < 8; ++round) {
    Instance instance = random_instance(random, 2);
    instance.recompute = static_cast<Recompute>(round % 3);
    const SearchOutcome outcome = certified_search(instance.problem());
    if (outcome.certificate) forge({*outcome.certificate}, forgeries);
  }
  EXPECT_GT(forgeries.tried, 1000);
  EXPECT_GT(forgeries.right, 100);
}

TEST(Certify, IsNotFooledByForgedProofsOfAnyOrder) {
  std::mt19937 random(103);
  Forgeries forgeries;
  for (int round = 0; round < 12; ++round)
    if (const OfAnyOrder of(random); of.certificate && of.certificate->bound > 0)
      forge({*of.certificate}, forgeries);
  EXPECT_GT(forgeries.tried, 2000);
  EXPECT_GT(forgeries.right, 100);
}

// Two problems in one file, of the same cluster and of layers in another order: a number of the
// second one is changed as well as one of the first, and which layers are whose.
TEST(Certify, IsNotFooledByForgedCertificatesOfSeveralProblems) {
  std::mt19937 random(107);
  Forgeries forgeries;
  int files = 0;
  while (files < 3) {
    Instance one = random_instance(random, 1);
    one.recompute = Recompute::None;
    Instance other = one;
    std::ranges::reverse(other.layers.layers);
    const SearchOutcome first = certified_search(one.problem()),
                        second = certified_search(other.problem());
    if (!first.certificate || !second.certificate) continue;
    ++files;
    forge({*first.certificate, *second.certificate}, forgeries);
  }
  EXPECT_GT(forgeries.tried, 1000);
  EXPECT_GT(forgeries.right, 50);
}

// Of any order of the devices, by devices that are all alike and by the model as a whole.
TEST(Certify, IsNotFooledByForgedProofsOfAnyDevices) {
  std::mt19937 random(109);
  Forgeries forgeries;
  int files = 0;
  while (files < 4) {
    const Instance instance = random_instance(random, 1);
    if (instance.cluster.devices() < 2) continue;
    const RelaxedDevices relaxed(instance.problem());
    const SearchOutcome given = certified_search(instance.problem()),
                        alike = certified_search(relaxed.problem());
    const auto whole = whole_certificate(instance.problem());
    if (!given.certificate || !alike.certificate || !whole) continue;
    ++files;
    forge({relaxed.beside_each_other(*given.certificate, false),
           relaxed.beside_each_other(*alike.certificate, true),
           relaxed.beside_each_other(*whole, false)},
          forgeries);
  }
  EXPECT_GT(forgeries.tried, 1000);
  EXPECT_GT(forgeries.right, 50);
  EXPECT_GT(forgeries.of_any_devices, 50);
}

}  // namespace
}  // namespace pfeife
