// What a tensor describes reaches the other end of every way on which it becomes bytes.
#include "tests/runtime/tensor_forms.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

#include "runtime/device/tensor_bytes.h"
#include "runtime/model/operators.h"
#include "runtime/model/safetensors_file.h"
#include "runtime/transport/group_transport.h"
#include "runtime/transport/in_process_transport.h"
#include "runtime/transport/socket_transport.h"
#include "tests/runtime/processes.h"

namespace pfeife {
namespace {

using namespace testing;

/// Sends a message for each type, and compares what arrives.
void expect_all_forms_arrive(Transport& from, Transport& to) {
  std::uint64_t step = 0;
  for (const at::ScalarType type : element_types()) {
    const std::vector<TensorForm> forms = forms_of(type);
    Tensors tensors{at::Tensor()};
    for (const TensorForm& form : forms) tensors.push_back(form.tensor);
    const Tag tag{++step, 0, 0};
    from.send(to.rank(), tag, tensors);
    const Tensors received = to.receive(from.rank(), tag).tensors;
    ASSERT_EQ(received.size(), tensors.size());
    EXPECT_FALSE(received.front().defined());
    for (std::size_t i = 0; i < forms.size(); ++i)
      EXPECT_EQ(difference_in(forms[i], received[i + 1]), "");
  }
}

TEST(TensorForms, ArriveBetweenThreads) {
  InProcessHub hub(2);
  const auto zero = hub.transport(RankId{0}), one = hub.transport(RankId{1});
  expect_all_forms_arrive(*zero, *one);
}

/// Two ranks of one process. Each end waits for the other's farewell, also where a test throws.
struct ConnectedPair {
  ConnectedPair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    std::vector<Socket> to_one, to_zero;
    to_one.emplace_back(), to_one.emplace_back(ends[0]);
    to_zero.emplace_back(ends[1]), to_zero.emplace_back();
    zero.emplace(RankId{0}, std::move(to_one), false);
    one.emplace(RankId{1}, std::move(to_zero), false);
  }
  ~ConnectedPair() {
    std::thread ends_zero([&] { zero.reset(); });
    one.reset();
    ends_zero.join();
  }
  std::optional<SocketTransport> zero, one;
};

TEST(TensorForms, ArriveOverSockets) {
  ConnectedPair ranks;
  expect_all_forms_arrive(*ranks.zero, *ranks.one);
  expect_all_forms_arrive(*ranks.zero, *ranks.zero);
  GroupTransport first(*ranks.zero, {RankId{1}, RankId{0}}),
      second(*ranks.one, {RankId{1}, RankId{0}});
  expect_all_forms_arrive(second, first);
}

// In the types that safetensors has.
TEST(TensorForms, AreKeptInSafetensors) {
  const auto file =
      std::filesystem::path(::testing::TempDir()) / stream_all("forms_", getpid(), ".safetensors");
  std::size_t types = 0;
  for (const DType dtype : {DType::UInt8, DType::Int8, DType::Int16, DType::Int32, DType::Int64,
                            DType::Float16, DType::Float32, DType::Float64, DType::Bool,
                            DType::BFloat16, DType::UInt16, DType::Float8E4M3, DType::Float8E5M2}) {
    const std::vector<TensorForm> forms = forms_of(scalar_type(dtype));
    std::map<std::string, at::Tensor> tensors;
    for (const TensorForm& form : forms) tensors[form.name] = form.tensor;
    write_safetensors(file, tensors, {}, "--save");
    const SafetensorsFile read(file);
    std::size_t found = 0;
    for (const SafetensorsEntry& entry : read.header().entries)
      for (const TensorForm& form : forms) {
        if (form.name != entry.name) continue;
        EXPECT_EQ(difference_in(form, read.tensor(entry)), "");
        ++found;
      }
    EXPECT_EQ(found, forms.size());
    ++types;
  }
  EXPECT_EQ(types, 13u);
  std::filesystem::remove(file);
}

// Kernels do the same work on both sides, and a tensor that is stored as it is needs no copy.
TEST(AsStored, KeepsStridesAndMemoryWhereElementsLieDensely) {
  for (const TensorForm& form : forms_of(at::kComplexFloat)) {
    const at::Tensor stored = as_stored(form.tensor);
    EXPECT_EQ(stored_bytes(stored).size(), stored.nbytes()) << form.name;
    if (!form.tensor.is_non_overlapping_and_dense()) continue;
    EXPECT_EQ(stored.strides(), form.tensor.strides()) << form.name;
    if (form.tensor.is_conj() || form.tensor.is_neg()) continue;
    EXPECT_EQ(stored.const_data_ptr(), form.tensor.const_data_ptr()) << form.name;
  }
  EXPECT_FALSE(as_stored({}).defined());
}

TEST(AsStored, BytesOfADescriptionAreNotGivenOut) {
  const at::Tensor table = numbered({4, 6}, at::kComplexFloat);
  for (const at::Tensor& view : {table.conj(), at::_neg_view(table), table.narrow(1, 0, 2),
                                 table.select(0, 0).expand({2, 6})})
    EXPECT_THROW(stored_bytes(view), std::logic_error);
}

// tests/data/models/own_model.py says what is in it: lazy views over every cut.
class LazyViews : public ProcessTest {};
TEST_F(LazyViews, ProcessesGiveTheGradientsOfTheUnsplitModel) {
  std::ofstream(folder_ / "s.csv") << write_schedule(generate({"zb_h1", 4, 6, 1, {}, {}}));
  const auto ended = start({PFEIFE_RUN, "check", "--fp64", "--model",
                            PFEIFE_SOURCE_DIR "/tests/data/models/lazy_views.pt2", "--schedule",
                            (folder_ / "s.csv").string(), "--cuts", "5 23 33"})
                         ->wait(kLong);
  EXPECT_EQ(ended.code, 0) << ended.text;
}

}  // namespace
}  // namespace pfeife
