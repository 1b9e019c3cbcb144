// Launchers as they say which rank a process is.
#include "runtime/launch/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "planner/ir/basics/error.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using Set = std::map<std::string, std::string>;

std::optional<RankEnvironment> found(const Set& set) {
  return rank_environment([&](const char* name) -> const char* {
    const auto at = set.find(name);
    return at == set.end() ? nullptr : at->second.c_str();
  });
}

std::string refusal(const Set& set) {
  return pfeife::message_of([&] { found(set); });
}

Set operator+(Set a, const Set& b) {
  a.insert(b.begin(), b.end());
  return a;
}

const Set kMaster{{"MASTER_ADDR", "node3"}, {"MASTER_PORT", "29500"}};
const Set kTorch{{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}};
const Set kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
const Set kBatch{{"SLURM_JOB_ID", "200505"},
                 {"SLURM_PROCID", "0"},
                 {"SLURM_NTASKS", "4"},
                 {"SLURM_JOB_NODELIST", "gnode[08-10,25],other"}};
const Set kStep = kBatch + Set{{"SLURM_STEP_ID", "1"}};

TEST(RankEnvironment, NothingSetMeansNoRank) {
  EXPECT_FALSE(found({}));
  EXPECT_FALSE(found(kMaster));
}

TEST(RankEnvironment, TorchrunsVariables) {
  const auto rank = found(kTorch + kMaster);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->rank, RankId{2});
  EXPECT_EQ(rank->ranks, 4u);
  EXPECT_EQ(rank->store, (StoreAddress{"node3", 29500, false, ""}));
  EXPECT_FALSE(rank->shared.has_value());
  const Set agent{{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "1"}};
  EXPECT_EQ(found(kTorch + kMaster + agent)->store, (StoreAddress{"node3", 29500, true, "1"}));
}

// A host's ranks are told apart by their number there: which card each takes.
TEST(RankEnvironment, TheNumberAmongTheRanksOfAHost) {
  EXPECT_EQ(found(Set{{"LOCAL_RANK", "3"}} + kTorch + kMaster)->local, 3);
  EXPECT_EQ(found(kOpenMpi + kMaster + Set{{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}})->local, 1);
  EXPECT_EQ(found(kStep + Set{{"SLURM_LOCALID", "2"}})->local, 2);
  EXPECT_EQ(found(kStep)->local, 0);
  EXPECT_NE(refusal(Set{{"LOCAL_RANK", "x"}} + kTorch + kMaster).find("LOCAL_RANK='x' must be"),
            std::string::npos);
}

TEST(RankEnvironment, OpenMpisVariables) {
  const auto rank = found(kOpenMpi + kMaster);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->rank, RankId{1});
  EXPECT_EQ(rank->size_variable, "OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(rank->store.host, "node3");
  // mpirun under Slurm: its daemons are Slurm's tasks, the ranks are its own.
  EXPECT_EQ(found(kOpenMpi + kMaster + kStep)->ranks, 2u);
}

TEST(RankEnvironment, AStepOfSlurmMeetsOnItsFirstHost) {
  const auto rank = found(kStep);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->ranks, 4u);
  EXPECT_EQ(rank->store.host, "gnode08");
  EXPECT_EQ(found(kStep)->store.port, rank->store.port);
  EXPECT_NE(found(kBatch + Set{{"SLURM_STEP_ID", "2"}})->store.port, rank->store.port);
  EXPECT_EQ(found(kStep + Set{{"SLURM_STEP_NODELIST", "n2"}})->store.host, "n2");
  EXPECT_EQ(found(kStep + kMaster)->store, (StoreAddress{"node3", 29500, false, ""}));
}

TEST(RankEnvironment, ABatchScriptAndAStepOfOneTaskAreNoRanks) {
  EXPECT_FALSE(found(kBatch));
  EXPECT_FALSE(found({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}));
}

TEST(RankEnvironment, OurOwnLauncherGoesFirst) {
  const auto rank =
      found(kTorch + kMaster + kStep + Set{{"PFEIFE_MEETING", "7"}, {"PFEIFE_SECRET", "s"}});
  EXPECT_EQ(rank->shared, 7);
  EXPECT_EQ(rank->secret, "s");
}

TEST(RankEnvironment, WhatIsMissingOrWrongIsNamed) {
  EXPECT_THAT(refusal({{"RANK", "0"}}), HasSubstr("missing: WORLD_SIZE, MASTER_ADDR, MASTER_PORT; "
                                                  "set: RANK. torchrun --no-python sets all"));
  EXPECT_THAT(refusal(kTorch + Set{{"MASTER_ADDR", "node3"}}), HasSubstr("missing: MASTER_PORT;"));
  EXPECT_THAT(refusal(kOpenMpi), HasSubstr("mpirun -x MASTER_ADDR=HOST"));
  EXPECT_THAT(refusal({{"SLURM_STEP_ID", "1"}}), HasSubstr("missing: SLURM_PROCID, SLURM_NTASKS"));
  EXPECT_THAT(refusal({{"SLURM_STEP_ID", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}),
              HasSubstr("missing: SLURM_JOB_NODELIST"));
  EXPECT_THAT(refusal(kMaster + Set{{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
              HasSubstr("RANK='4' must be a number from 0 to 3"));
  EXPECT_THAT(refusal(kTorch + Set{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "http"}}),
              HasSubstr("MASTER_PORT='http' must be a number from 1 to 65535"));
  EXPECT_THAT(refusal({{"PFEIFE_MEETING", "7"}}), HasSubstr("missing: RANK, WORLD_SIZE"));
  EXPECT_THAT(refusal(kTorch + Set{{"PFEIFE_MEETING", "/tmp/x"}}),
              HasSubstr("PFEIFE_MEETING='/tmp/x' must be a number"));
}

TEST(RankEnvironment, TheFirstHostOfSlurmsLists) {
  EXPECT_EQ(first_host("node7"), "node7");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("node[07-12,20],other3"), "node07");
  EXPECT_EQ(first_host("rack[3,5]node[1-2].cluster"), "rack3node1.cluster");
}

}  // namespace
}  // namespace pfeife
