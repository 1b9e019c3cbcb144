#include "runtime/launch/agreement.h"

#include <elf.h>
#include <link.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include "runtime/device/tensor_bytes.h"
#include "runtime/transport/socket.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kFactsTask = ~std::uint32_t{0} - 80;
constexpr std::uint32_t kVerdictTask = kFactsTask - 1;
constexpr RankId kComparing{0};  // the rank that compares

/// Lines: the card, or an empty one; then three for each fact.
std::string written(const RunFacts& facts) {
  std::string text = facts.card.empty() ? "" : host_identity() + ", " + facts.card;
  text += "\n";
  for (const RunFact& fact : facts.equal)
    text += fact.what + "\n" + fact.value + "\n" + fact.remedy + "\n";
  return text;
}

RunFacts read(const std::string& text) {
  std::istringstream in(text);
  RunFacts facts;
  std::getline(in, facts.card);
  for (RunFact fact; std::getline(in, fact.what) && std::getline(in, fact.value) &&
                     std::getline(in, fact.remedy);)
    facts.equal.push_back(fact);
  return facts;
}

std::string named(const RunFact& fact) {
  return (fact.what.empty() ? "" : fact.what + " ") + fact.value;
}

std::string verdict(const std::vector<RunFacts>& ranks) {
  std::map<std::string, std::size_t> cards;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::size_t common = std::min(ranks[0].equal.size(), ranks[r].equal.size());
    for (std::size_t f = 0; f < common; ++f) {
      const RunFact &first = ranks[0].equal[f], &other = ranks[r].equal[f];
      if (first.what == other.what && first.value == other.value) continue;
      return "rank 0 has " + named(first) + ", rank " + std::to_string(r) + " has " +
             (first.what == other.what ? other.value : named(other)) + "; " + first.remedy;
    }
    if (ranks[r].equal.size() != ranks[0].equal.size())
      return stream_all("rank ", r, " runs another verb than rank 0; give all the same arguments");
    if (ranks[r].card.empty()) continue;
    const auto [known, fresh] = cards.try_emplace(ranks[r].card, r);
    if (!fresh)
      return stream_all("ranks ", known->second, " and ", r, " have one card (",
                        ranks[r].card.substr(ranks[r].card.find(", ") + 2),
                        "); each rank needs its own: see LOCAL_RANK and CUDA_VISIBLE_DEVICES, or "
                        "start fewer ranks a host");
  }
  return "";
}

/// The linker's build id, in hexadecimal; "" if it left none.
std::string build_id() {
  std::string id;
  const auto look = [](dl_phdr_info* object, std::size_t, void* found) {
    for (int h = 0; h < object->dlpi_phnum; ++h) {
      const auto& header = object->dlpi_phdr[h];
      if (header.p_type != PT_NOTE) continue;
      const char* at = reinterpret_cast<const char*>(object->dlpi_addr + header.p_vaddr);
      for (const char* end = at + header.p_memsz; at + sizeof(ElfW(Nhdr)) <= end;) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof note);
        const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
        const char* name = at + sizeof note;
        const char* bytes = name + padded(note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !std::memcmp(name, "GNU", 4))
          for (std::size_t b = 0; b < note.n_descsz; ++b) {
            constexpr char kDigits[] = "0123456789abcdef";
            const auto byte = static_cast<unsigned char>(bytes[b]);
            static_cast<std::string*>(found)->append({kDigits[byte >> 4], kDigits[byte & 15]});
          }
        at = bytes + padded(note.n_descsz);
      }
    }
    return 1;  // the program itself comes first, and is enough
  };
  dl_iterate_phdr(look, &id);
  return id.substr(0, 12);
}

}  // namespace

void require_agreement(Transport& transport, const RunFacts& facts) {
  transport.send(kComparing, {0, kFactsTask, 0}, {tensor_of_text(written(facts))});
  if (transport.rank() == kComparing) {
    std::vector<RunFacts> ranks;
    for (std::size_t r = 0; r < transport.ranks(); ++r)
      ranks.push_back(
          read(text_of(transport.receive(RankId{r}, {0, kFactsTask, 0}).tensors.at(0))));
    const std::string wrong = verdict(ranks);
    for (std::size_t r = 0; r < transport.ranks(); ++r)
      transport.send(RankId{r}, {0, kVerdictTask, 0}, {tensor_of_text(wrong)});
  }
  const std::string wrong =
      text_of(transport.receive(kComparing, {0, kVerdictTask, 0}).tensors.at(0));
  if (!wrong.empty()) throw ConfigError({}, wrong);
}

std::vector<RunFact> program_facts() {
  return {{"a pfeife of the build", build_id(), "install one build on all hosts"},
          {"LibTorch", TORCH_VERSION, "install one version on all hosts"}};
}

}  // namespace pfeife
