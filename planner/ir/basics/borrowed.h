// A reference that can be assigned, for values that others own.
//   Problem other = problem;
//   other.layers = longer;  // `longer` must live as long as `other` is used
#pragma once

namespace pfeife {

/// Points to a value that its owner keeps alive. Never null.
template <class T>
class Borrowed {
 public:
  Borrowed(const T& value) : value_(&value) {}  // NOLINT: a value is borrowed where it is given
  Borrowed(const T&&) = delete;
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_; }
  operator const T&() const { return *value_; }  // NOLINT: read as the value

 private:
  const T* value_;
};

}  // namespace pfeife
