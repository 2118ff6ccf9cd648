#include "worker/inference/running_model.h"

#include "models/backend/devices.h"
#include "worker/training/opened_job.h"

namespace kumo {

Result<std::unique_ptr<RunningModel>> RunningModel::Make(const StoredModel& model,
                                                         const model::Network& network,
                                                         int max_batch, NumberType type,
                                                         const PixelFormula& pixels) {
  std::unique_ptr<RunningModel> made(new RunningModel());
  KUMO_ASSIGN_OR_RETURN(made->backend_, MakeBackend(DeviceOf(model.experiment.network)));
  Backend* const backend = made->backend_.get();
  KUMO_ASSIGN_OR_RETURN(made->net_, Net::Make(network, max_batch, backend));
  const int64_t floats = model.layout.size();
  made->weights_ = DeviceArray<float>(*backend, floats, "the weights");
  made->gradients_ = DeviceArray<float>(*backend, floats, "the gradients");
  backend->Write(model.weights.data(), floats * sizeof(float), made->weights_.data());
  KUMO_RETURN_IF_ERROR(backend->Wait());
  KUMO_RETURN_IF_ERROR(
      made->net_->Bind(model.layout, made->weights_.data(), made->gradients_.data()));
  made->takes_ = made->net_->takes();
  if (made->takes_[0].type == NumberType::kUint8) made->takes_[0].type = type;
  KUMO_RETURN_IF_ERROR(made->net_->Connect(made->takes_, pixels));
  made->labels_.resize(max_batch * made->takes_.back().bytes());
  return made;
}

Status RunningModel::Predict(int batch, std::span<const std::byte> input, int output,
                             std::span<float> numbers) {
  const std::span<const std::byte> fields[] = {
      input, std::span(labels_).first(batch * takes_.back().bytes())};
  KUMO_RETURN_IF_ERROR(net_->Load({batch, fields}));
  return net_->Predict(output, numbers);
}

}  // namespace kumo
