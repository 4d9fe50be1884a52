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
                                              adapter("llvmpipe", "mesa", "cpu"),
                                              adapter("iGPU", "mesa", "integrated"),
                                              adapter("H200", "570", "discrete", true),
                                              adapter("H200", "550", "discrete"),
                                              adapter("H200", "570", "discrete"),
                                              adapter("llvmpipe", "mesa", "cpu")};
  EXPECT_THAT(equal_adapters(all), ElementsAre(2, 4));
  EXPECT_THAT(equal_adapters(all, {.kind = "webgpu"}), ElementsAre(1));
  EXPECT_THAT(equal_adapters(all, {.kind = "webgpu", .allow_software = true}), ElementsAre(0, 5));
  EXPECT_THAT(equal_adapters(all, {.kind = "cpu"}), IsEmpty());
}

TEST(EqualAdapters, are_none_without_a_usable_adapter) {
  const std::vector<DeviceDescription> all = {cpu(true), adapter("llvmpipe", "mesa", "cpu")};
  EXPECT_THAT(equal_adapters(all), IsEmpty());
  EXPECT_THAT(equal_adapters(all, {.kind = "webgpu"}), IsEmpty());
  EXPECT_THAT(equal_adapters(all, {.kind = "webgpu", .allow_software = true}), ElementsAre(0));
  EXPECT_THAT(equal_adapters({cpu(true)}, {.kind = "webgpu", .allow_software = true}), IsEmpty());
}

}  // namespace
}  // namespace tensorgrad::testing
