// A reference that can be assigned, which a member `T&` cannot.
//   Borrowed<Layers> layers = first;  // no layers are copied
//   layers = second;                  // refers to `second` from now on
#pragma once

namespace pfeife {

/// Points to a value that its owner keeps alive. Never null.
template <class T>
class Borrowed {
 public:
  Borrowed(const T& value) : value_(&value) {}  // NOLINT: implicit, a T is given as Borrowed<T>
  Borrowed(const T&&) = delete;
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_; }
  operator const T&() const { return *value_; }  // NOLINT: implicit, it is taken as const T&

 private:
  const T* value_;
};

}  // namespace pfeife
