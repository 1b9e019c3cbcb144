// Where weights lie in an archive: against archives written by hand, whose places are known.
#include "planner/io/model/pt2_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "planner/io/files/zip_archive.h"
#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"
#include "tests/support/zip_by_hand.h"
#include "tests/support/zip_bytes.h"

namespace pfeife {
namespace {

using testing::HasSubstr;

class Pt2WeightsTest : public testing::Test {
 protected:
  Pt2WeightsTest()
      : path_(std::filesystem::temp_directory_path() /
              ("pfeife_weights_" + std::to_string(getpid()) + ".pt2")) {}
  ~Pt2WeightsTest() override { std::filesystem::remove(path_); }

  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string read(std::uint64_t offset, std::uint64_t size) const {
    return file_bytes(path_.string()).substr(offset, size);
  }
  /// The message of the ConfigError; "" if there is none.
  template <class Read>
  std::string message_of(const Read& read) const {
    try {
      read(path_);
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.where().file, path_.string());
      return error.what();
    }
    return "";
  }

  std::filesystem::path path_;
};

/// A line of the table of weights: `sizes` and `strides` as JSON lists.
std::string weight(const std::string& name, const std::string& entry, const std::string& sizes,
                   const std::string& strides, int offset) {
  return "\"" + name + R"(": {"path_name": ")" + entry +
         R"(", "is_param": true, "use_pickle": false, "tensor_meta": {"dtype": 7, "sizes": )" +
         sizes + R"(, "requires_grad": true, "device": {"type": "cpu", "index": null},
         "strides": )" +
         strides + R"(, "storage_offset": {"as_int": )" + std::to_string(offset) +
         R"(}, "layout": 7}})";
}

std::string floats(int count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  std::string bytes(numbers.size() * 4, '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

constexpr const char* kTable = "m/data/weights/model_weights_config.json";
constexpr const char* kTwoByThree = R"([{"as_int": 2}, {"as_int": 3}])";
constexpr const char* kRows = R"([{"as_int": 3}, {"as_int": 1}])";
constexpr const char* kColumns = R"([{"as_int": 1}, {"as_int": 2}])";

std::string weights_table(const std::vector<std::string>& weights) {
  std::string lines;
  for (const std::string& line : weights) lines += (lines.empty() ? "" : ",\n") + line;
  return "{\"config\": {" + lines + "}}";
}

TEST_F(Pt2WeightsTest, StoredContentsAreWhereTheDirectorySaysBehindAnyPadding) {
  for (const bool zip64 : {false, true}) {
    ZipByHand zip(path_, zip64);
    const std::uint64_t first = zip.add("a/first", "contents of the first");
    const std::uint64_t second = zip.add("a/second", floats(100), 37);
    const std::uint64_t empty = zip.add("a/empty", "", 4);
    zip.finish();
    const auto places = zip_places(path_);
    ASSERT_EQ(places.size(), 3u);
    EXPECT_EQ(places.at("a/first"), (ZipPlace{21, true, first})) << zip64;
    EXPECT_EQ(places.at("a/second"), (ZipPlace{400, true, second})) << zip64;
    EXPECT_EQ(places.at("a/empty"), (ZipPlace{0, true, empty})) << zip64;
    EXPECT_EQ(read(second, 400), floats(100));
  }
}

TEST_F(Pt2WeightsTest, EntriesThatAnotherWriterStoredOrPacked) {
  const std::string text(5000, 'z');
  write(zipped({{"x", text}, {"y", "abc"}}, /*stored=*/true));
  const auto stored = zip_places(path_);
  EXPECT_EQ(read(stored.at("x").offset, stored.at("x").size), text);
  EXPECT_EQ(read(stored.at("y").offset, stored.at("y").size), "abc");
  write(zipped({{"x", text}}, /*stored=*/false));
  EXPECT_EQ(zip_places(path_).at("x"), (ZipPlace{5000, false, 0}));
}

TEST_F(Pt2WeightsTest, ArchivesBeyondFourGibibytes) {
  constexpr std::uint64_t kFive = std::uint64_t{5} << 30;
  ZipByHand zip(path_, /*zip64=*/true);
  zip.add_hole("large", kFive);
  const std::uint64_t behind = zip.add("behind", "it");
  zip.finish();
  EXPECT_GT(behind, kFive);
  const auto places = zip_places(path_);
  EXPECT_EQ(places.at("large").size, kFive);
  EXPECT_EQ(places.at("behind"), (ZipPlace{2, true, behind}));
}

TEST_F(Pt2WeightsTest, TiedNamesShareAStorageAndOffsetsAreKept) {
  ZipByHand zip(path_);
  zip.add(kTable, weights_table({weight("embedding", "w", kTwoByThree, kRows, 0),
                                 weight("head", "w", kTwoByThree, kRows, 0),
                                 weight("turned", "w", kTwoByThree, kColumns, 6),
                                 weight("other", "v", kTwoByThree, kRows, 0)}));
  const std::uint64_t w = zip.add("m/data/weights/w", floats(12), 61);
  const std::uint64_t v = zip.add("m/data/weights/v", floats(6));
  zip.finish();
  const Pt2Weights weights = read_pt2_weights(path_);
  EXPECT_EQ(weights.tensors.at("embedding"), weights.tensors.at("head"));
  EXPECT_EQ(weights.tensors.at("turned").storage, weights.tensors.at("head").storage);
  EXPECT_EQ(weights.tensors.at("turned").type.storage_offset, 6);
  EXPECT_EQ(weights.tensors.at("turned").type.strides, (std::vector<std::int64_t>{1, 2}));
  ASSERT_EQ(weights.storages.size(), 2u);
  EXPECT_EQ(weights.storages[weights.tensors.at("head").storage],
            (Pt2Storage{"m/data/weights/w", 48, w}));
  EXPECT_EQ(weights.storages[weights.tensors.at("other").storage],
            (Pt2Storage{"m/data/weights/v", 24, v}));
  EXPECT_TRUE(weights.has("head"));
  EXPECT_FALSE(weights.has("tail"));
}

TEST_F(Pt2WeightsTest, TensorsThatReachBeyondTheirStorage) {
  const auto message = [&](int offset) {
    ZipByHand zip(path_);
    zip.add(kTable, weights_table({weight("late", "w", kTwoByThree, kRows, offset)}));
    zip.add("m/data/weights/w", floats(12));
    zip.finish();
    return message_of(read_pt2_weights);
  };
  EXPECT_EQ(message(6), "");  // elements 6 to 11
  EXPECT_MESSAGE(message(7));
}

TEST_F(Pt2WeightsTest, AnEntryThatIsMissingOrPickled) {
  ZipByHand zip(path_);
  zip.add(kTable, weights_table({weight("lost", "w", kTwoByThree, kRows, 0)}));
  zip.finish();
  EXPECT_MESSAGE(message_of(read_pt2_weights));
  std::string line = weight("odd", "w", kTwoByThree, kRows, 0);
  line.replace(line.find("\"use_pickle\": false"), 19, "\"use_pickle\": true ");
  ZipByHand pickled(path_);
  pickled.add(kTable, weights_table({line}));
  pickled.add("m/data/weights/w", floats(6));
  pickled.finish();
  EXPECT_MESSAGE(message_of(read_pt2_weights));
}

TEST_F(Pt2WeightsTest, NoPartOfAnArchiveIsTakenForTheWhole) {
  for (const bool zip64 : {false, true}) {
    ZipByHand zip(path_, zip64);
    zip.add("first", floats(20));
    zip.add("second", floats(20), 9);
    zip.finish();
    const std::string whole = file_bytes(path_.string());
    ASSERT_EQ(message_of(zip_places), "");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      write(whole.substr(0, size));
      ASSERT_THAT(message_of(zip_places), HasSubstr("not a whole ZIP archive")) << size;
    }
    for (std::size_t cut = 1; cut < whole.size(); cut += 7) {  // the front is missing
      write(whole.substr(cut));
      EXPECT_THAT(message_of(zip_places), HasSubstr("not a whole ZIP archive")) << cut;
    }
  }
  std::filesystem::remove(path_);
  EXPECT_MESSAGE(message_of(zip_places));
}

}  // namespace
}  // namespace pfeife
