#include "planner/io/files/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string parse_error(const std::string& text) {
  return message_of([&] { YamlDocument::parse(text, "f.yaml"); });
}

TEST(Yaml, ValuesKnowTheirPlaceAndPath) {
  const auto document = YamlDocument::parse("a:\n  b:\n    - {c: 5 us}\n", "f.yaml");
  const YamlNode c = document.root().at("a").at("b").items()[0].at("c");
  EXPECT_EQ(c.path(), "a.b[0].c");
  EXPECT_EQ(c.where(), (SourceLocation{"f.yaml", 3, 11}));
  EXPECT_EQ(c.as_duration(), Nanoseconds{5000});
}

TEST(Yaml, TypedGettersRefuseOtherTypesAtThePlace) {
  const auto document = YamlDocument::parse(
      "n: x\nquoted: \"3\"\nrange: 7\nflag: yes\nlist: [1]\nrate: 46\nempty:\nzero: 0 GB/s\n",
      "f.yaml");
  const YamlNode root = document.root();
  EXPECT_EQ(message_of([&] { root.at("n").as_int(); }),
            "f.yaml:1:4: n: expected a whole number, found \"x\"");
  EXPECT_MESSAGE(message_of([&] { root.at("quoted").as_int(); }));
  EXPECT_EQ(message_of([&] { root.at("range").as_int(0, 5); }),
            "f.yaml:3:8: range: expected a whole number from 0 to 5, found \"7\"");
  EXPECT_EQ(message_of([&] { root.at("range").as_int(8); }),
            "f.yaml:3:8: range: expected a whole number not below 8, found \"7\"");
  EXPECT_EQ(message_of([&] { root.at("range").as_double(0, 0.5); }),
            "f.yaml:3:8: range: expected a number from 0 to 0.5, found \"7\"");
  EXPECT_EQ(message_of([&] { root.at("flag").as_bool(); }),
            "f.yaml:4:7: flag: expected true or false, found \"yes\"");
  EXPECT_EQ(message_of([&] { root.at("list").as_string(); }),
            "f.yaml:5:7: list: expected a word or text, found a sequence");
  EXPECT_MESSAGE(message_of([&] { root.at("rate").as_bytes_per_second(); }));
  EXPECT_MESSAGE(message_of([&] { root.at("empty").as_string(); }));
  EXPECT_MESSAGE(message_of([&] { root.at("zero").as_bytes_per_second(); }));
  EXPECT_MESSAGE(message_of([&] { root.at("n").items(); }));
  EXPECT_MESSAGE(message_of([&] { root.at("n").find("x"); }));
}

TEST(Yaml, UnknownAndMissingKeys) {
  const auto document = YamlDocument::parse("cases:\n  devics: [2]\n", "f.yaml");
  const YamlNode cases = document.root().at("cases");
  EXPECT_EQ(
      message_of([&] {
        cases.check_keys({"devices", "microbatches"});
      }),
      "f.yaml:2:3: cases: unknown key \"devics\"; did you mean \"devices\"? Keys allowed here: "
      "devices, microbatches");
  EXPECT_EQ(message_of([&] { cases.check_keys({"xyz"}); }),
            "f.yaml:2:3: cases: unknown key \"devics\". Keys allowed here: xyz");
  EXPECT_EQ(message_of([&] { cases.at("devices"); }),
            "f.yaml:2:3: cases: the key \"devices\" is missing");
  EXPECT_EQ(message_of([&] { document.root().at("model"); }),
            "f.yaml:1:1: the key \"model\" is missing at the top of the file");
}

TEST(Yaml, WordsOfAList) {
  const auto document = YamlDocument::parse("queues: pairs", "f.yaml");
  EXPECT_EQ(message_of([&] {
              document.root().at("queues").as_one_of<int>({{"none", 0}, {"pair", 1}});
            }),
            "f.yaml:1:9: queues: found \"pairs\"; did you mean \"pair\"? Allowed: none, pair");
}

TEST(Yaml, WhatIsNotPlainDataIsRefused) {
  EXPECT_MESSAGE(parse_error("a: &x 1\nb: *x\n"));
  EXPECT_MESSAGE(parse_error("a: *x\n"));
  EXPECT_MESSAGE(parse_error("a: !!binary abc\n"));
  EXPECT_EQ(parse_error("a: 1\nb: 2\na: 3\n"),
            "f.yaml:3:1: the key \"a\" is here twice; remove one");
  EXPECT_MESSAGE(parse_error("{a: 1, a: 2}"));
  EXPECT_MESSAGE(parse_error("a: 1\n---\nb: 2\n"));
  EXPECT_MESSAGE(parse_error("? [1]\n: 2\n"));
  EXPECT_MESSAGE(parse_error("a: [1, 2\n"));
  EXPECT_MESSAGE(parse_error("a: 1\n\tb: 2\n"));
  EXPECT_THAT(parse_error("a: 1\n b: 2\n"), AllOf(HasSubstr("f.yaml:2:"), Not(HasSubstr("tabs"))));
  EXPECT_MESSAGE(parse_error(std::string("a: 1\n\x04 b: 2\n")));
  EXPECT_MESSAGE(parse_error(std::string("a: \0b\n", 6)));
  EXPECT_MESSAGE(parse_error("\x7f"));
  EXPECT_MESSAGE(parse_error("a: \xff\n"));
  EXPECT_MESSAGE(parse_error(": 1\n"));
}

// A character is one column, however many bytes it has.
TEST(Yaml, LinesOfOtherSystemsAndOtherScriptsKeepTheirPlaces) {
  EXPECT_EQ(YamlDocument::parse("a: 1\r\nb: 2\r\n", "f.yaml").root().at("b").as_int(), 2);
  EXPECT_MESSAGE(parse_error("a: 1\r\n\u00e4\u20ac\U0001f600 \xff"));
}

// The words of yaml-cpp name tokens of its parser; these name the line and what to write.
TEST(Yaml, WrongIndentsBracketsAndEscapesAreExplained) {
  for (const char* text :
       {"a: 1\n  b: 2\n", "a:\n  b: 1\n c: 2\n", "a: x: y\n", "a: [1, 2\nb: 3\n",
        "a: {b: 1\nc: 2\n", "a: ]\n", "a: - b\n", "a:\n  - b\n  c: 1\n", "a: \"\\q\"\n",
        "a: \"\\u12\"\n", "a: \"\\ud83d\"\n", "a: `b\n", "model m\ndevices: 2\n"})
    EXPECT_MESSAGE(parse_error(text));
}

// RFC 8259, section 7: U+1F600 is "\ud83d\ude00" in JSON, of which YAML takes every string in
// double quotes.
TEST(Yaml, PairsOfJsonAreOneCharacterInDoubleQuotesOnly) {
  const auto document = YamlDocument::parse(
      "a: \"\\ud83d\\ude00 # \\\" \\\\ud83d\"\nb: '\\ud83d\\ude00'\n"
      "c: it's \\ud83d\\ude00 # \"\\ud83d\\ude00\n",
      "f.yaml");
  EXPECT_EQ(document.root().at("a").as_string(), "\U0001F600 # \" \\ud83d");
  EXPECT_EQ(document.root().at("b").as_string(), "\\ud83d\\ude00");
  EXPECT_EQ(document.root().at("c").as_string(), "it's \\ud83d\\ude00");
  EXPECT_EQ(
      YamlDocument::parse("a: [\"\\uD83D\\uDE00\"]\n", "f").root().at("a").items()[0].as_string(),
      "\U0001F600");
}

TEST(Yaml, NumbersHaveNoZerosInFront) {
  const auto document =
      YamlDocument::parse("a: 010\nb: -01\nc: 00.5\nd: 0\ne: 0.5\nf: 01 GiB\n", "f.yaml");
  EXPECT_MESSAGE(message_of([&] { document.root().at("a").as_int(); }));
  EXPECT_MESSAGE(message_of([&] { document.root().at("b").as_int(); }));
  EXPECT_MESSAGE(message_of([&] { document.root().at("c").as_double(); }));
  EXPECT_EQ(document.root().at("d").as_int(), 0);
  EXPECT_EQ(document.root().at("e").as_double(), 0.5);
  EXPECT_MESSAGE(message_of([&] { document.root().at("f").as_bytes(); }));
}

TEST(Yaml, DeepNestingIsAnErrorNotAStackOverflow) {
  for (const char* piece : {"[", "{a: ", "- ", "? ", "[{"}) {
    std::string text;
    while (text.size() < 400'000) text += piece;
    EXPECT_NE(parse_error(text), "") << piece;
  }
  EXPECT_MESSAGE(parse_error(std::string(65, '[') + std::string(65, ']')));
  EXPECT_EQ(parse_error(std::string(64, '[') + std::string(64, ']')), "");
}

TEST(Yaml, AnEmptyFileIsNothing) {
  for (const char* text : {"", "# only a comment\n", "---\n"}) {
    const auto document = YamlDocument::parse(text, "f.yaml");
    EXPECT_TRUE(document.root().is_null()) << text;
    EXPECT_THAT(message_of([&] { document.root().check_keys({"model"}); }), HasSubstr("f.yaml:"))
        << text;
  }
}

TEST(Yaml, NamesInMessagesAreNotObeyedByATerminal) {
  const auto document = YamlDocument::parse("\"a\\e[31m\\nb\": 3\n", "x\x1b.yaml");
  EXPECT_EQ(message_of([&] { document.root().check_keys({"c"}); }).substr(0, 52),
            "x\\x1b.yaml:1:1: unknown key \"a\\x1b[31m\\nb\". Keys all");
}

TEST(Yaml, AMissingFileIsAnErrorThatNamesIt) {
  EXPECT_EQ(message_of([] { YamlDocument::read("/nowhere/x.yaml"); }),
            "/nowhere/x.yaml: there is no such file; check the path");
  EXPECT_EQ(message_of([] { YamlDocument::read("/"); }),
            "/: is not a file but a folder, a device or a pipe");
}

TEST(Yaml, AmountsThatNoDeviceHasAreRefused) {
  const auto document = YamlDocument::parse(
      "slow: 1e-300 GB/s\nfast: 1e300 GB/s\nlazy: 1e-300 TFLOP/s\nbusy: 1e300 TFLOP/s\n"
      "late: 1e9 s\nleast: 1 KB/s\n",
      "f.yaml");
  const YamlNode root = document.root();
  for (const char* rate : {"slow", "fast"})
    EXPECT_MESSAGE(message_of([&] { root.at(rate).as_bytes_per_second(); }));
  for (const char* speed : {"lazy", "busy"})
    EXPECT_MESSAGE(message_of([&] { root.at(speed).as_flops_per_second(); }));
  EXPECT_MESSAGE(message_of([&] { root.at("late").as_duration(); }));
  EXPECT_EQ(root.at("least").as_bytes_per_second().value, 1000);
}

TEST(YamlSet, APathIsAtMost64KeysAndALongSettingIsShownInPart) {
  YamlDocument document = YamlDocument::parse("a: 1\n", "f.yaml");
  std::string path = "k";
  for (int k = 1; k < 64; ++k) path += ".k";
  document.set(path + "=1");
  const std::string message = message_of([&] { document.set(path + ".k=1"); });
  EXPECT_MESSAGE(message);
  for (int k = 0; k < 50000; ++k) path += ".k";
  EXPECT_LT(message_of([&] { document.set(path + "=1"); }).size(), 400U);
}

TEST(YamlSet, ReplacesMakesAndIndexes) {
  auto document =
      YamlDocument::parse("a: {b: 1}\nl: [{x: 1}, {x: 2}]\nd.e: {f: 0}\nn:\n", "f.yaml");
  document.set("a.b=[2, 4]");
  document.set("a.c.d=5 us");
  document.set("l[1].x=three");
  document.set("d.e.f=1");
  document.set("a.\"p.q\"=1");
  document.set("n.m=");
  EXPECT_EQ(
      document.text(),
      "a:\n  b: [2, 4]\n  c:\n    d: 5 us\n  p.q: 1\nl:\n  - x: 1\n  - x: three\nd.e:\n  f: 1\n"
      "n:\n  m: null\n");
}

TEST(YamlSet, ErrorsAreLocatedAtTheSetting) {
  auto document = YamlDocument::parse("a: {b: 1}\nl: [1]\n", "f.yaml");
  document.set("a.b=x");
  EXPECT_EQ(message_of([&] { document.root().at("a").at("b").as_int(); }),
            "--set a.b=x: a.b: expected a whole number, found \"x\"");
  document.set("a.z=1");
  EXPECT_MESSAGE(message_of([&] { document.root().at("a").check_keys({"b"}); }));
  EXPECT_MESSAGE(message_of([&] { document.set("a.b"); }));
  EXPECT_MESSAGE(message_of([&] { document.set("a.b.c=1"); }));
  EXPECT_MESSAGE(message_of([&] { document.set("l[1]=1"); }));
  EXPECT_MESSAGE(message_of([&] { document.set("a.b=[1"); }));
  for (const char* bad :
       {"=1", ".a=1", "a.=1", "a..b=1", "l[x]=1", "l[=1", "a]=1", "\"a=1", "l[-1]=2"})
    EXPECT_THAT(message_of([&] { document.set(bad); }), HasSubstr("--set")) << bad;
}

TEST(YamlText, ComesBackAsItWas) {
  const std::string text =
      "a: \"1\"\nb: 1\nc: \"null\"\nd: null\ne: \"x: y # z\"\nf: [[0, 1], [2, 3]]\ng: []\nh: {}\n"
      "i:\n  - a: 1\n    b:\n      c: \"tab\\there\"\n  - - x: 1\n    - [y]\nj: -1\nk: \"- "
      "x\"\n\"l,\": "
      "\"\"\n";
  EXPECT_EQ(YamlDocument::parse(text, "f.yaml").text(), text);
}

/// A random value; strings of awkward characters.
YamlValue random_value(std::mt19937_64& random, int depth) {
  const auto pick = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
  const auto word = [&] {
    static constexpr char kCharacters[] = "ab0-:#[]{},&*!|>'\"%@`\\ \t\n.?~\x01";
    std::string text;
    for (int n = pick(5); n >= 0; --n) text += kCharacters[random() % (sizeof kCharacters - 1)];
    return text;
  };
  const int kind = pick(depth > 3 ? 2 : 4);
  if (kind == 0) return pick(2) ? yaml_scalar(std::to_string(pick(100))) : YamlValue{};
  if (kind == 1) return yaml_string(word());
  YamlValue value = yaml_sequence({});
  if (kind == 3) value.kind = YamlValue::Kind::Map;
  for (int n = pick(4); n > 0; --n) {
    if (kind == 2) {
      value.items.push_back(random_value(random, depth + 1));
    } else if (const std::string key = word(); find_entry(value, key) == nullptr) {
      value.entries.push_back({key, random_value(random, depth + 1), {}});
    }
  }
  return value;
}

TEST(YamlText, RandomValuesComeBackAsTheyWere) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = to_text(random_value(random, 0));
    ASSERT_EQ(message_of([&] { ASSERT_EQ(YamlDocument::parse(text, "f.yaml").text(), text); }), "")
        << text;
  }
}

TEST(Yaml, MutatedInputIsReadOrRefusedButNeverCrashes) {
  const std::string seed =
      "version: 1\nlinks:\n  - {name: x, between: [[0, 1], [2,3]], bandwidth: 46 GB/s}\n  - "
      "\"q\\x41\"\n"
      "text: |\n  block\n  more\nfold: >-\n  a\n\n  b\n? k\n: v\n--- # c\n";
  std::mt19937_64 random(7);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seed.substr(0, seed.size() - 6);
    for (std::uint64_t n = random() % 6 + 1; n > 0; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 128);
          break;
        case 1:
          text.erase(at, random() % 8 + 1);
          break;
        case 2:
          text.insert(at, 1, "-?:,[]{}#&*!|>'\"%@` \t\n"[random() % 22]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
      }
      if (text.empty()) text = " ";
    }
    refused += parse_error(text).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 20000);
}

}  // namespace
}  // namespace pfeife
