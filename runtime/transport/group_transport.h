// Some ranks of a transport as if they were all: rank r of the group is its member r.
//
// Groups of one transport may be used side by side if no two ranks are in two of them together, for
// a tag is used once between two ranks.
#pragma once

#include <vector>

#include "runtime/transport/transport.h"

namespace pfeife {

class GroupTransport final : public Transport {
 public:
  /// `members`: numbers in `all`, that of this rank among them. `all` must outlive it.
  GroupTransport(Transport& all, std::vector<RankId> members);

  RankId rank() const override { return rank_; }
  std::size_t ranks() const override { return members_.size(); }
  void send(RankId to, Tag tag, Tensors tensors) override {
    all_.send(in_all(to), tag, std::move(tensors));
  }
  Message receive(RankId from, Tag tag) override { return all_.receive(in_all(from), tag); }
  void stop(const RankFault& fault) override { all_.stop(fault); }
  bool keeps_rows() const override { return all_.keeps_rows(); }
  /// In numbers of `all`: every rank of it must call it with the exchanges of all groups.
  void prepare(const Exchanges& exchanges) override { all_.prepare(exchanges); }
  void send_in_row(RankId to, Tag tag, const Form& form, Tensors tensors) override {
    all_.send_in_row(in_all(to), tag, form, std::move(tensors));
  }
  void expect(RankId from, Tag tag, const Form& form) override {
    all_.expect(in_all(from), tag, form);
  }
  void add_up(const std::vector<RankId>& parties, Tag tag, Tensors tensors) override;
  Tensors sum(Tag tag) override { return all_.sum(tag); }
  void end_step() override { all_.end_step(); }

 private:
  RankId in_all(RankId member) const { return members_.at(member.index()); }

  Transport& all_;
  std::vector<RankId> members_;
  RankId rank_;
};

}  // namespace pfeife
