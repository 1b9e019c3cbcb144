// Forged certificates: whatever number or step is changed in one, no wrong claim passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "planner/io/files/digest.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/ir/basics/error.h"
#include "planner/schedule_tool/certify.h"
#include "tests/search/certified.h"

namespace pfeife {
namespace {

/// A certificate with one number replaced, and the digest that makes it look sound.
std::string forged(const std::string& body, std::size_t begin, std::size_t end,
                   const std::string& number) {
  const std::string wrong = body.substr(0, begin) + number + body.substr(end);
  return "pfeife certificate 15, sha256 " + sha256(wrong) + "\n" + wrong;
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
/// What may stand in the place of a number, or of the steps of a path or row.
std::vector<std::string> changed(const std::string& word) {
  if (word.empty()) return {};
  if (word.find_first_not_of("0123456789") == std::string::npos)
    return {word + "1", std::to_string(std::stoull(word) / 2 + 1)};
  if (word.find_first_not_of("rfbds") != std::string::npos) return {};
  std::string other = word;
  other.front() = word.front() == 's' ? 'f' : 's';
  return {word + word.back(), word.substr(1), other};
}

struct Forgeries {
  int tried = 0, right = 0;
};
/// Changes the certificate at every place. A change may leave the proof, of this or of another
/// problem, right: what must never happen is that a wrong claim passes.
void forge(const Certificate& certificate, Forgeries& forgeries) {
  const std::string text = certificate_text(certificate);
  const std::size_t head = text.find('\n') + 1;
  const std::string body = text.substr(head);
  ASSERT_EQ(certificate_text(read_certificate_text(text, "c")), text);
  ASSERT_TRUE(read_certificate_text(text, "c") == certificate);
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
        const Certificate other = read_certificate_text(forged(body, begin, end, wrong), "forged");
        if (!tool::certify(other).refusal.empty()) continue;
        ++forgeries.right;
        ASSERT_FALSE(is_false(other)) << word << " -> " << wrong << " in\n" << body;
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
    const Answer outcome = certified_search(instance.problem());
    if (outcome.certificate) forge(*outcome.certificate, forgeries);
  }
  EXPECT_GT(forgeries.tried, 1000);
  EXPECT_GT(forgeries.right, 100);
}

TEST(Certify, IsNotFooledByForgedProofsOfAnyOrder) {
  std::mt19937 random(103);
  Forgeries forgeries;
  for (int round = 0; round < 12; ++round)
    if (const OfAnyOrder of(random); of.certificate && of.certificate->bound > 0)
      forge(*of.certificate, forgeries);
  EXPECT_GT(forgeries.tried, 2000);
  EXPECT_GT(forgeries.right, 100);
}

}  // namespace
}  // namespace pfeife
