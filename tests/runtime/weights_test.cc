// A rank maps the weights of its own stages and no others: looked up in the system's list of what
// this process has mapped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "planner/io/files/zip_archive.h"
#include "planner/io/model/pt2_weights.h"
#include "tests/runtime/pipelines.h"
#include "tests/support/zip_by_hand.h"

namespace pfeife {
namespace {

using testing::Model;
using testing::model_path;

constexpr std::uint16_t kPage = 4096;

/// First pages of the parts of the file that are mapped, by /proc/self/maps.
std::multiset<std::uint64_t> mapped_pages(const std::filesystem::path& file) {
  std::multiset<std::uint64_t> pages;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, device, inode, path;
    std::uint64_t offset = 0;
    words >> range >> rights >> std::hex >> offset >> device >> inode >> path;
    if (path != file) continue;
    const std::uint64_t begin = std::stoull(range, nullptr, 16),
                        end = std::stoull(range.substr(range.find('-') + 1), nullptr, 16);
    for (std::uint64_t at = 0; at < end - begin; at += kPage) pages.insert((offset + at) / kPage);
  }
  return pages;
}

/// The pages of the storages that the stage's parameters and buffers lie in.
std::multiset<std::uint64_t> pages_of(const Model& model, const StageSlice& slice,
                                      const Pt2Weights& weights) {
  std::vector<std::string> names;
  for (const ParameterId p : slice.parameters)
    names.push_back(model.graph.parameters[p.index()].names.front());
  for (const ValueId b : slice.buffers) names.push_back(model.graph.value(b).source_name);
  std::multiset<std::uint64_t> pages;
  for (const std::string& name : names) {
    const Pt2Storage& storage = weights.storages[weights.tensors.at(name).storage];
    for (std::uint64_t page = storage.file_offset.value() / kPage;
         page <= (storage.file_offset.value() + storage.bytes - 1) / kPage; ++page)
      pages.insert(page);
  }
  return pages;
}

/// The archive with its entries stored instead of packed, each weight on pages of its own.
void store_unpacked(const std::filesystem::path& packed, const std::filesystem::path& stored) {
  ZipByHand zip(stored);
  for (const auto& [name, place] : zip_places(packed))
    zip.add(name, read_pt2_storage(packed, {name, place.size, {}}), 2 * kPage);
  zip.finish();
}

TEST(Weights, ARankMapsThoseOfItsOwnStagesOnly) {
  const Model model("tiny_unet");
  const std::filesystem::path file =
      std::filesystem::canonical(::testing::TempDir()) / stream_all("stored_", getpid(), ".pt2");
  store_unpacked(model_path("tiny_unet"), file);
  const WeightSource source(file, 1);
  const Pipeline pipeline = model.pipeline({"1f1b", 3, 2, 1, {}, {}});
  const Pt2Weights weights = read_pt2_weights(file);
  std::uint64_t all = 0, own = 0;
  for (const Pt2Storage& storage : weights.storages) all += storage.bytes;
  for (std::int64_t s = 0; s < 3; ++s) {
    const StageId stage{s};
    ASSERT_TRUE(mapped_pages(file).empty());
    const RankTensors tensors =
        load_tensors(pipeline.graph, pipeline.split, std::span(&stage, 1), source, {});
    EXPECT_EQ(mapped_pages(file), pages_of(model, pipeline.split.stages[stage.index()], weights));
    for (const auto& [p, tensor] : tensors.parameters) own += tensor.nbytes();
    for (const auto& [b, tensor] : tensors.buffers) own += tensor.nbytes();
  }
  std::filesystem::remove(file);
  EXPECT_EQ(own, all);  // nothing in two places, nothing left out
}

}  // namespace
}  // namespace pfeife
