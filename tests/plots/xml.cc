#include "tests/plots/xml.h"

#include <stdexcept>

namespace pfeife {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  XmlElement document() {
    blanks();
    XmlElement root = element();
    blanks();
    if (at_ != text_.size()) fail("text after the document");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("at byte " + std::to_string(at_) + ": " + why);
  }
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void expect(std::string_view what) {
    if (!starts(what)) fail("expected " + std::string(what));
    at_ += what.size();
  }
  void blanks() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t') ++at_;
  }
  std::string word() {
    const std::size_t from = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '-' || peek() == ':')
      ++at_;
    if (at_ == from) fail("expected a name");
    return std::string(text_.substr(from, at_ - from));
  }
  char entity() {
    for (const auto& [name, value] : {std::pair{"&amp;", '&'},
                                      {"&lt;", '<'},
                                      {"&gt;", '>'},
                                      {"&quot;", '"'},
                                      {"&apos;", '\''},
                                      {"&#39;", '\''}})
      if (starts(name)) return at_ += std::string_view(name).size(), value;
    fail("unknown entity");
  }
  char character() {
    const char c = peek();
    if (c == '&') return entity();
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') fail("control character");
    return ++at_, c;
  }

  XmlElement element() {
    XmlElement e;
    expect("<");
    e.name = word();
    for (blanks(); peek() != '>' && peek() != '/'; blanks()) {
      const std::string key = word();
      expect("=\"");
      std::string value;
      while (peek() != '"') {
        if (peek() == '<' || peek() == '\0') fail("< or end in an attribute");
        value += character();
      }
      ++at_;
      if (!e.attributes.emplace(key, value).second) fail("attribute " + key + " twice");
    }
    if (peek() == '/') return expect("/>"), e;
    expect(">");
    while (!starts("</")) {
      if (peek() == '\0') fail("end inside <" + e.name + ">");
      if (peek() == '<')
        e.children.push_back(element());
      else
        e.text += character();
    }
    expect("</" + e.name + ">");
    return e;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string XmlElement::attribute(const std::string& key) const {
  const auto at = attributes.find(key);
  return at == attributes.end() ? "" : at->second;
}
double XmlElement::number(const std::string& key) const {
  const std::string text = attribute(key);
  return text.empty() ? 0 : std::stod(text);
}

XmlElement parse_xml(std::string_view text) { return Reader(text).document(); }

std::vector<const XmlElement*> by_class(const XmlElement& root, const std::string& name) {
  std::vector<const XmlElement*> found;
  collect(root, found, [&](const XmlElement& e) { return e.attribute("class") == name; });
  return found;
}
std::vector<const XmlElement*> by_name(const XmlElement& root, const std::string& name) {
  std::vector<const XmlElement*> found;
  collect(root, found, [&](const XmlElement& e) { return e.name == name; });
  return found;
}

}  // namespace pfeife
