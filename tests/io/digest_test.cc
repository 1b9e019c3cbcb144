#include "planner/io/files/digest.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

// FIPS 180-4's examples for SHA-256.
TEST(Digest, PublishedExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, OfAFileIsThatOfItsBytesOverSeveralPieces) {
  const std::string bytes(std::size_t{700'000}, 'x');
  const std::string path =
      testing::TempDir() + "digest_test." + std::to_string(::getpid()) + ".bin";
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(sha256_file(path), sha256(bytes));
}

TEST(Digest, MissingFileAndFolderAreWrongInput) {
  EXPECT_THROW(sha256_file("/no/such/file"), ConfigError);
  EXPECT_THROW(sha256_file(testing::TempDir()), ConfigError);
}

}  // namespace
}  // namespace pfeife
