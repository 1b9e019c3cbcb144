// A strict reader of small XML documents, for the tests of what the plots write.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pfeife {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< of the element itself, entities resolved
  std::vector<XmlElement> children;

  std::string attribute(const std::string& key) const;
  double number(const std::string& key) const;  ///< 0 without the attribute
};

/// Throws std::runtime_error with the position unless `text` is one well-formed element: tags
/// match, attributes are quoted and unique, only the five entities and &#39; appear, no stray < or
/// &.
XmlElement parse_xml(std::string_view text);

/// All elements below (and including) `root` for which `wanted` holds, in document order.
template <class Predicate>
void collect(const XmlElement& root, std::vector<const XmlElement*>& out, Predicate&& wanted) {
  if (wanted(root)) out.push_back(&root);
  for (const XmlElement& child : root.children) collect(child, out, wanted);
}
std::vector<const XmlElement*> by_class(const XmlElement& root, const std::string& name);
std::vector<const XmlElement*> by_name(const XmlElement& root, const std::string& name);
std::vector<const XmlElement*> by_name(XmlElement&& root, const std::string& name) = delete;

}  // namespace pfeife
