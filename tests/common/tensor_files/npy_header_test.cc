#include "common/tensor_files/npy_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NpyHeader, IsAsNumpyWritesIt) {
  const std::string bytes = NpyHeaderBytes(std::vector<int64_t>{20, 1, 5});
  EXPECT_EQ(bytes.size() % 64, 0u);
  EXPECT_TRUE(bytes.starts_with(std::string("\x93NUMPY\x01\x00\x76\x00", 10)));
  EXPECT_EQ(bytes.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (20, 1, 5)");
  EXPECT_EQ(bytes.back(), '\n');
}

TEST(NpyHeader, EveryShapeIsReadAgain) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {7}, {0}, {2, 3}, {20, 1, 5, 5}, {1 << 20, 1 << 16}}) {
    const std::string bytes = NpyHeaderBytes(shape);
    const auto prefix = ParseNpyPrefix(std::as_bytes(std::span(bytes)).first<kNpyPrefix>());
    ASSERT_TRUE(prefix.ok()) << prefix.status().message();
    EXPECT_EQ(prefix->more, 0u);
    EXPECT_EQ(prefix->length, bytes.size() - kNpyPrefix);
    const auto header = ParseNpyHeader(std::string_view(bytes).substr(kNpyPrefix));
    ASSERT_TRUE(header.ok()) << header.status().message();
    EXPECT_EQ(header->shape, shape);
    EXPECT_EQ(header->descr, "<f4");
    EXPECT_FALSE(header->fortran_order);
  }
}

TEST(NpyHeader, TheThreeMayStandInAnyOrder) {
  const auto header =
      ParseNpyHeader("{\"shape\":(3,4),'fortran_order':True , 'descr' : '>i8'}   \n");
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_THAT(header->shape, ElementsAre(3, 4));
  EXPECT_TRUE(header->fortran_order);
  EXPECT_EQ(header->descr, ">i8");
  EXPECT_THAT(ParseNpyHeader("{'descr':'<f4','fortran_order':False,'shape':()}")->shape, IsEmpty());
}

TEST(NpyHeader, WhatIsNoDictionaryOfNumpysIsRefused) {
  for (const char* text :
       {"", "{", "{}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
        "{'descr': '<f4', 'fortran_order': False}", "{'descr': '<f4'; 'fortran_order': False}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}"}) {
    EXPECT_EQ(ParseNpyHeader(text).status().code(), StatusCode::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace kumo
