// SPDX-License-Identifier: MIT
#pragma once

#include "api/engine.h"

namespace tensorgrad::detail {

class ForwardImpl {
 public:
  // With an `owner` it shares the owner's parameters, and `shared_mutex` is the owner's.
  ForwardImpl(ModelFunctions model, TraceFunction function, const ForwardOptions& options,
              std::shared_ptr<Device> device, std::string why,
              std::shared_ptr<std::recursive_mutex> shared_mutex,
              const std::shared_ptr<Instance>& owner, const Site& site);

  Outputs run(const Feed& inputs);
  // `who` begins the message of an error.
  void upload_params(const std::map<std::string, HostTensor>& params,
                     const std::string& who = "upload_params");
  void load(const std::string& path);
  [[nodiscard]] std::map<std::string, HostTensor> download_params() const;
  [[nodiscard]] const Engine& engine() const { return *engine_; }

 private:
  std::shared_ptr<std::recursive_mutex> mutex_;
  ModelFunctions model_;
  ParameterTable table_;
  std::unique_ptr<Engine> engine_;
  std::uint32_t seed_ = 0, runs_ = 0;
};

}  // namespace tensorgrad::detail
