#include "worker/training/job_speed.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "common/base/buffer.h"
#include "common/base/rng.h"
#include "models/devices/devices.h"
#include "worker/training/contribution.h"
#include "worker/training/trainer.h"

namespace kumo {

namespace {

constexpr int kSteps = 4;              // minibatches of a measured block
constexpr size_t kLeastBlocks = 3;     // measured, however long they take
constexpr int kCodings = 3;            // measured, of each codec
constexpr int64_t kPattern = 1 << 18;  // different numbers of a measured contribution
constexpr float kMovement = 1e-3f;     // their standard deviation

// Codecs for pushes and pulls, from the most exact one to the shortest one.
constexpr CodecId kContenders[] = {CodecId::kFp32,    CodecId::kFp16,   CodecId::kInt8,
                                   CodecId::kInt4,    CodecId::kOneBit, CodecId::kTopk,
                                   CodecId::kTopk2bit};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Blocks with the exchange left out: what is exchanged depends on none of these settings.
Experiment InBlocks(Experiment experiment) {
  experiment.sync.mode = SyncMode::kBlock;
  experiment.sync.block = kSteps;
  experiment.sync.overlap = 0;
  experiment.sync.fragments = 1;
  experiment.sync.local_share = 0;
  experiment.sync.warmup_samples = 0;
  experiment.sync.push_codec = CodecId::kFp32;
  experiment.sync.pull_codec = CodecId::kFp32;
  return experiment;
}

// Seconds of a minibatch.
Result<double> MeasureStep(const Experiment& experiment, const JobShape& shape, Trainer* trainer,
                           double seconds, const Clock* clock) {
  KUMO_RETURN_IF_ERROR(trainer->Attach(&shape));
  KUMO_ASSIGN_OR_RETURN(const InitialWeights initial, trainer->MakeInitialWeights());
  for (const Chunk& chunk : shape.map.chunks()) {
    trainer->Install({.chunk = chunk.index,
                      .codec = &CodecOf(CodecId::kFp32),
                      .payload = initial.chunks[chunk.index]});
  }
  trainer->Adopt({.partition = 0, .arrays = {}});
  std::vector<double> times;
  const TimeUs end = clock->NowUs() + FromSeconds(seconds);
  for (int64_t block = 0; times.size() < kLeastBlocks || clock->NowUs() < end; ++block) {
    const RoundPlan round = shape.plan.Round(block % shape.plan.rounds());
    const TrainAction action{.partition = 0, .round = round};
    KUMO_ASSIGN_OR_RETURN(TrainedBlock trained, trainer->Train(action, nullptr));
    KUMO_RETURN_IF_ERROR(trainer->Code(action, &trained));
    const int minibatch = experiment.sync.minibatch;
    const int64_t steps = (trained.metrics.samples + minibatch - 1) / minibatch;
    if (block == 0) continue;  // memory is touched, and caches are filled
    if (steps > 0) times.push_back(trained.times.compute_ms * 1e-3 / static_cast<double>(steps));
  }
  return Median(std::move(times));
}

// Arrays on the device and on the host, for codecs.
class CodecBench {
 public:
  CodecBench(const Experiment& experiment, const JobSpec& spec, Backend* backend)
      : experiment_(experiment), spec_(spec), backend_(*backend), movement_(size()), sum_(size()) {
    Rng rng(/*seed=*/1, RngPurpose::kTest);
    const int64_t pattern = std::min(kPattern, size());
    for (int64_t i = 0; i < pattern; ++i) movement_.data()[i] = kMovement * rng.NextNormal();
    for (int64_t i = pattern; i < size(); ++i) {
      movement_.data()[i] = movement_.data()[i - pattern];
    }
    std::ranges::fill(sum_.span(), 0.0f);
    for (DeviceArray<float>* array : {&zero_, &weights_, &moved_, &residual_}) {
      *array = DeviceArray<float>(backend_, size(), "the codecs' measurement");
    }
    backend_.Write(movement_.data(), movement_.size() * sizeof(float), moved_.data());
  }

  Result<CodecSpeed> Measure(CodecId id) {
    Experiment experiment = experiment_;
    experiment.sync.push_codec = experiment.sync.pull_codec = id;
    KUMO_ASSIGN_OR_RETURN(const JobShape shape, JobShape::Make(experiment, spec_, /*servers=*/1));
    KUMO_RETURN_IF_ERROR(backend_.Wait());
    std::vector<double> encode, install, add, close;
    CodecSpeed speed{.codec = std::string(CodecOf(id).name())};
    for (int i = 0; i <= kCodings; ++i) {
      const RoundPlan round = shape.plan.Round(0);
      Contribution contribution(shape, round, /*partition=*/0,
                                {zero_.data(), moved_.data(), moved_.data(), residual_.data()},
                                &backend_);
      KUMO_RETURN_IF_ERROR(Take(&encode, [&] { return contribution.Finish(); }));
      const std::vector<Payload> codes = contribution.payloads();
      const auto each = [&](auto&& work) {
        for (const Chunk& chunk : shape.map.chunks()) {
          if (!chunk.frozen()) work(chunk, shape.policy.PushCodec(round, chunk));
        }
      };
      KUMO_RETURN_IF_ERROR(Take(&install, [&] {
        each([&](const Chunk& chunk, const Codec& codec) {
          backend_.DecodeAdd(codec, codes[chunk.index].bytes, 1.0f, chunk.range.size(),
                             weights_.data() + chunk.range.begin);
        });
        return backend_.Wait();
      }));
      KUMO_RETURN_IF_ERROR(Take(&add, [&] {
        each([&](const Chunk& chunk, const Codec& codec) {
          codec.DecodeAdd(codes[chunk.index].bytes, chunk.range.size(), 0, 1.0f, Of(&sum_, chunk));
        });
        return OkStatus();
      }));
      // The rule reads and writes about as much as adding two contributions in fp32 does.
      KUMO_RETURN_IF_ERROR(Take(&close, [&] {
        std::vector<std::byte> code;
        each([&](const Chunk& chunk, const Codec&) {
          const std::span<float> x = Of(&movement_, chunk);
          const std::span<float> sum = Of(&sum_, chunk);
          const Codec& fp32 = CodecOf(CodecId::kFp32);
          for (int pass = 0; pass < 2; ++pass) {
            fp32.DecodeAdd(std::as_bytes(x), x.size(), 0, 1.0f, sum);
          }
          if (shape.policy.Relays(round, chunk)) return;
          const Codec* const pull = shape.policy.PullCodec(round, chunk.segment);
          if (pull == nullptr || pull->plain()) return;
          code.resize(pull->EncodedBytes(x.size()));
          (void)!pull->EncodeIn({}, x, {}, code);
        });
        return OkStatus();
      }));
      const ExchangeBytes bytes =
          shape.policy.BytesOf(round, shape.map.chunks(), experiment.sync.partitions);
      speed.push_bytes = bytes.push;
      speed.pull_bytes = bytes.pull;
      if (i > 0) continue;  // the first time touched memory
      for (std::vector<double>* times : {&encode, &install, &add, &close}) times->clear();
    }
    speed.encode_s = Median(std::move(encode));
    speed.install_s = Median(std::move(install));
    const double threads = std::max(1, experiment_.cluster.server_threads);
    speed.add_s = Median(std::move(add)) / threads;
    speed.close_s = Median(std::move(close)) / threads;
    return speed;
  }

 private:
  int64_t size() const { return spec_.layout.size(); }
  static std::span<float> Of(Buffer<float>* vector, const Chunk& chunk) {
    return vector->span().subspan(static_cast<size_t>(chunk.range.begin),
                                  static_cast<size_t>(chunk.range.size()));
  }
  Status Take(std::vector<double>* times, const std::function<Status()>& work) const {
    const TimeUs begin = clock_.NowUs();
    KUMO_RETURN_IF_ERROR(work());
    times->push_back(ToSeconds(clock_.NowUs() - begin));
    return OkStatus();
  }

  const Experiment& experiment_;
  const JobSpec& spec_;
  Backend& backend_;
  const SteadyClock clock_;
  Buffer<float> movement_, sum_;
  DeviceArray<float> zero_, weights_, moved_, residual_;
};

}  // namespace

JsonFields JobSpeed::Json() const {
  JsonArray array;
  for (const CodecSpeed& codec : codecs) {
    array.Add(JsonFields()
                  .Add("codec", codec.codec)
                  .Add("push_bytes", codec.push_bytes)
                  .Add("pull_bytes", codec.pull_bytes)
                  .Add("encode_s", codec.encode_s)
                  .Add("install_s", codec.install_s)
                  .Add("add_s", codec.add_s)
                  .Add("close_s", codec.close_s));
  }
  return JsonFields()
      .Add("parameters", parameters)
      .Add("train_samples", train_samples)
      .Add("minibatch", minibatch)
      .Add("step_s", step_s)
      .Add("codes_beside_steps", codes_beside_steps)
      .Add("codecs", array);
}

Result<JobSpeed> MeasureJobSpeed(const Experiment& given, double seconds, const Clock* clock) {
  const Experiment experiment = InBlocks(given);
  KUMO_ASSIGN_OR_RETURN(OpenedJob job, OpenJob(experiment));
  const JobSpec spec = job.spec;
  KUMO_ASSIGN_OR_RETURN(const JobShape shape, JobShape::Make(experiment, spec, /*servers=*/1));
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                        Trainer::Make(experiment, std::move(job), clock));
  JobSpeed speed;
  speed.train_samples = spec.train_samples;
  speed.minibatch = experiment.sync.minibatch;
  speed.codes_beside_steps = trainer->codes_beside_steps();
  for (const TensorSpec& tensor : spec.layout.tensors()) {
    if (tensor.segment != Segment::kStatistics) speed.parameters += tensor.size();
  }
  KUMO_ASSIGN_OR_RETURN(speed.step_s,
                        MeasureStep(experiment, shape, trainer.get(), seconds, clock));
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBackend(experiment.network));
  CodecBench bench(experiment, spec, backend.get());
  for (const CodecId id : kContenders) {
    KUMO_ASSIGN_OR_RETURN(CodecSpeed codec, bench.Measure(id));
    speed.codecs.push_back(std::move(codec));
  }
  return speed;
}

}  // namespace kumo
