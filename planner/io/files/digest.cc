#include "planner/io/files/digest.h"

#include <openssl/evp.h>

#include <array>
#include <memory>

#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    PFEIFE_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(const char* data, std::size_t size) {
    PFEIFE_CHECK(EVP_DigestUpdate(context_.get(), data, size) == 1);
  }
  std::string hexadecimal() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    PFEIFE_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < size; ++i) {
      text += kDigits[digest[i] >> 4];
      text += kDigits[digest[i] & 15];
    }
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.hexadecimal();
}

std::string sha256_file(const std::filesystem::path& path) {
  Sha256 hash;
  read_pieces(path, [&](std::string_view piece) { hash.add(piece.data(), piece.size()); });
  return hash.hexadecimal();
}

}  // namespace pfeife
