#include "planner/io/files/json_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

std::string json_refusal(const std::string& text) {
  return message_of<json_fields::Malformed>([&] { json_fields::parse(text); });
}

// Lines and columns count from 1, columns in bytes; the mistake is the last character shown.
TEST(JsonFields, AMistakeIsNamedWithItsPlaceAndWhatStandsThere) {
  for (const char* text : {"", "{\"a\": ", "{\"a\": tru}", "[1,\n 2,\n 3 4]", "[1e999]", "[1,]",
                           "[\"a\x01\"]", "{\"a\": 1} x"})
    EXPECT_MESSAGE(json_refusal(text));
}

TEST(JsonFields, NothingIsShownOfALongValueButItsEnd) {
  EXPECT_LT(json_refusal("[\"" + std::string(100'000, 'a') + "\n\"]").size(), 120U);
}

}  // namespace
}  // namespace pfeife
