// The judge itself: what is not XML is refused.
#include "tests/plots/xml.h"

#include <gtest/gtest.h>

namespace pfeife {
namespace {

TEST(XmlReader, ReadsElementsAttributesAndEntities) {
  const XmlElement root = parse_xml("<a x=\"1 &lt; 2\"><b/>t&amp;u<c y=\"3\">v</c></a>\n");
  EXPECT_EQ(root.attribute("x"), "1 < 2");
  EXPECT_EQ(root.text, "t&u");
  ASSERT_EQ(root.children.size(), 2u);
  EXPECT_EQ(root.children[1].number("y"), 3);
}

TEST(XmlReader, RefusesWhatIsNotWellFormed) {
  for (const char* text :
       {"<a>", "<a></b>", "<a x=1/>", "<a x=\"1\" x=\"2\"/>", "<a>&</a>", "<a><</a>", "<a/><b/>",
        "<a x=\"<\"/>", "<a>\x01</a>", "<a>&unknown;</a>", ""})
    EXPECT_THROW(parse_xml(text), std::runtime_error) << text;
}

}  // namespace
}  // namespace pfeife
