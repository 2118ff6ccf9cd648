// Damaged images: a job names them all, replaces them alike on any number of workers, and goes on
// when they are gone.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/image_bytes.h"
#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<int64_t> kExtents = {3, 10, 9};
constexpr int kImages = 40;

class DamagedData {
 public:
  explicit DamagedData(const std::string& name) : job_(name) {
    test::WriteFiles(job_.Path("train"), files_);
    test::WriteFiles(job_.Path("validation"), test::ClassFolders(6, 2, kExtents));
    const std::string network =
        "name: \"net\" input { channels: 3 height: 8 width: 8 } layers { name: \"flatten\" flatten "
        "{} } "
        "layers { name: \"fc\" fully_connected { outputs: 2 } } "
        "layers { name: \"loss\" softmax_cross_entropy {} }";
    test::WriteFile(job_.Path("net.pbtxt"), test::Bytes(network.begin(), network.end()));
    job_.Set("job.name", "damaged");
    job_.Set("job.epochs", "2");
    job_.Set("network.file", job_.Path("net.pbtxt"));
    job_.Set("data.reader", "image_folder");
    job_.Set("data.directory", job_.folder());
    job_.Set("data.train_images", "train");
    job_.Set("data.validation_images", "validation");
    job_.Set("data.image_size", "3x8x8");
    job_.Set("data.crop_area", "0.5,1");  // images are decoded at each read
    job_.Set("data.classes", "2");
    job_.Set("sync.mode", "gradient");
    job_.Set("sync.partitions", "4");
    job_.Set("sync.minibatch", "4");
    job_.Set("optimiser.type", "sgd");
    job_.Set("checkpoint.every_epochs", "1");
    job_.Set("output.directory", job_.output());
    job_.WriteExperiment();
  }

  std::string PathOf(int image) const { return job_.Path("train/" + files_[image].first); }
  void Damage(int image) {
    test::Bytes bytes = files_[image].second;
    bytes.resize(bytes.size() / 2);
    test::WriteFile(PathOf(image), bytes);
  }
  Ended Kumo(const std::string& command, std::vector<std::string> more) {
    more.insert(more.begin(), {command, job_.experiment_file()});
    return job_.Run("kumo", more);
  }
  std::vector<float> Weights() const { return job_.FinalWeights(); }

 private:
  const test::NamedFiles files_ = test::ClassFolders(kImages, 2, kExtents);
  ClusterOfProcesses job_;
};

TEST(DamagedData, OneWorkerAndFourReplaceThemByTheSameImages) {
  std::vector<std::vector<float>> weights;
  for (const char* workers : {"1", "4"}) {
    DamagedData job(std::string("replaced-") + workers);
    for (const int image : {6, 7, kImages - 1}) job.Damage(image);
    const Ended ended = job.Kumo("launch", {"--workers", workers, "--set", "data.damaged=skip"});
    ASSERT_EQ(ended.code, 0) << ended.output;
    weights.push_back(job.Weights());
  }
  ASSERT_FALSE(weights[0].empty());
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(DamagedData, AJobThatEndsByThemGoesOnWhenTheyAreReplacedOrRemoved) {
  DamagedData job("goes-on");
  ASSERT_EQ(job.Kumo("launch", {"--set", "job.epochs=1"}).code, 0);
  for (const int image : {5, 20}) job.Damage(image);
  const Ended refused = job.Kumo("launch", {"--continue"});
  EXPECT_EQ(refused.code, 78);
  EXPECT_THAT(refused.output, AllOf(HasSubstr(job.PathOf(5)), HasSubstr("kumo check --data"),
                                    HasSubstr("data.damaged = skip")));
  const Ended listed = job.Kumo("check", {"--continue", "--data"});
  EXPECT_EQ(listed.code, 78);
  EXPECT_THAT(listed.output, AllOf(HasSubstr("damaged " + job.PathOf(5) + ": "),
                                   HasSubstr("damaged " + job.PathOf(20) + ": "),
                                   HasSubstr("2 of 40 images of ")));
  const Ended replaced = job.Kumo("launch", {"--continue", "--set", "data.damaged=skip"});
  EXPECT_EQ(replaced.code, 0) << replaced.output;
  EXPECT_THAT(replaced.output, AllOf(HasSubstr("from now on: data.damaged refuse -> skip"),
                                     HasSubstr("from now on: contents of the training data")));
  for (const int image : {5, 20}) std::filesystem::remove(job.PathOf(image));
  const Ended removed = job.Kumo("launch", {"--continue", "--set", "job.epochs=3"});
  EXPECT_EQ(removed.code, 0) << removed.output;
  EXPECT_THAT(removed.output, HasSubstr("from now on: training samples 40 -> 38"));
}

}  // namespace
}  // namespace kumo::multiproc
