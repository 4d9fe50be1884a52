// SPDX-License-Identifier: MIT
// Which adapters the ranks of a machine share.
#include "tensorgrad/distributed/adapters.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

DeviceDescription adapter(const std::string& name, const std::string& driver,
                          const std::string& type, bool chosen = false) {
  DeviceDescription made;
  made.kind = "webgpu";
  made.name = name;
  made.driver = driver;
  made.type = type;
  made.usable = type != "unusable";
  made.chosen_by_auto = chosen;
  return made;
}

DeviceDescription cpu(bool chosen = false) {
  DeviceDescription made = adapter("CPU", "", "cpu", chosen);
  made.kind = "cpu";
  return made;
}

TEST(EqualAdapters, are_those_with_the_name_and_the_driver_of_the_selected_one) {
  const std::vector<DeviceDescription> all = {cpu(),
                                              adapter("iGPU", "mesa", "integrated"),
                                              adapter("H200", "570", "discrete", true),
                                              adapter("H200", "550", "discrete"),
                                              adapter("H200", "570", "discrete"),
                                              adapter("llvmpipe", "mesa", "cpu")};
  EXPECT_THAT(equal_adapters(all), ElementsAre(1, 3));
  EXPECT_THAT(equal_adapters(all, {.kind = "webgpu"}), ElementsAre(0));
  EXPECT_THAT(equal_adapters(all, {.kind = "cpu"}), IsEmpty());
}

// Of a GPU through OpenGL, for example.
TEST(EqualAdapters, are_only_usable_ones) {
  const std::vector<DeviceDescription> all = {
      adapter("H200", "570", "unusable"), adapter("H200", "570", "discrete", true),
      adapter("H200", "570", "unusable"), adapter("H200", "570", "discrete")};
  EXPECT_THAT(equal_adapters(all), ElementsAre(1, 3));
  EXPECT_THAT(equal_adapters(all, {.kind = "webgpu"}), ElementsAre(1, 3));
}

TEST(EqualAdapters, are_none_without_a_usable_adapter) {
  const std::vector<DeviceDescription> all = {cpu(true), adapter("llvmpipe", "mesa", "unusable")};
  EXPECT_THAT(equal_adapters(all), IsEmpty());
  EXPECT_THAT(equal_adapters(all, {.kind = "webgpu"}), IsEmpty());
  EXPECT_THAT(equal_adapters({cpu(true)}, {.kind = "webgpu"}), IsEmpty());
}

}  // namespace
}  // namespace tensorgrad::testing
