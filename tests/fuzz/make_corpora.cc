// What the fuzzers begin with: real files and real messages, below the folder that is named, and
// the words that experiments and networks are written in.
//
//   make_corpora SOURCES FOLDER
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <glog/logging.h>

#include "common/base/rng.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/shard_file.h"
#include "common/settings/option_table.h"
#include "common/tensor_files/tensor_file.h"
#include "models/network.h"
#include "models/onnx/to_onnx.h"
#include "proto/model.pb.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/data/detection_files.h"
#include "tests/data/image_bytes.h"
#include "tests/data/test_files.h"
#include "tests/fuzz/server_job.h"
#include "tests/fuzz/steps.h"
#include "tests/sim/forger.h"

namespace kumo::fuzz {
namespace {

namespace fs = std::filesystem;

class Corpus {
 public:
  // FOLDER/TARGET holds the inputs, FOLDER/TARGET.inputs their names, as -seed_inputs= wants them.
  Corpus(const fs::path& folder, const std::string& target) : folder_(folder / target) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    list_.open(folder / (target + ".inputs"));
    CHECK(list_.good()) << folder;
  }
  void Add(std::string_view bytes) {
    const fs::path path = folder_ / std::to_string(made_);
    list_ << (made_++ == 0 ? "" : ",") << path.string();
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    CHECK(file.flush().good()) << folder_;
  }

 private:
  const fs::path folder_;
  std::ofstream list_;
  int made_ = 0;
};

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Text(const test::Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

void MakeServerNode(const fs::path& folder) {
  Corpus corpus(folder, "server_node");
  const auto& cases = ServerCases();
  for (size_t part = 0; part < 64; part += 3) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::vector<Arrival>& arrivals = cases[i].arrivals;
      std::string input(1, static_cast<char>(part * cases.size() + i));
      const size_t from = arrivals.size() * part / 64;
      for (size_t k = from; k < std::min(arrivals.size(), from + 10); ++k) {
        Message message = arrivals[k].message;
        std::string header;
        CHECK(EncodeHeader(cases[i].framing, k % 2 == 0, message, header).ok());
        const auto& bytes = message.payload.bytes;
        input += WrittenStep(arrivals[k].peer, 1, header,
                             {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        if (k % 3 == 0) input += WrittenStep(kPeerCount + k % 2, 50, "", "");
      }
      corpus.Add(input);
    }
  }
}

void MakeSession(const fs::path& folder) {
  Corpus corpus(folder, "session");
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 64; ++i) {
    std::string input(1, static_cast<char>(i * 4 + i % 4));
    for (int k = 0; k < 12; ++k) {
      wire::Header header;
      const wire::Type types[] = {
          wire::WELCOME, wire::HEARTBEAT_REPLY, wire::ACK, wire::CHUNK, wire::GONE, wire::STATE};
      header.set_type(types[rng.NextBelow(6)]);
      header.set_round(static_cast<int64_t>(rng.NextBelow(5)));
      header.set_generation(static_cast<uint32_t>(rng.NextBelow(3)));
      if (header.type() == wire::WELCOME) header.mutable_welcome()->set_generation(2);
      if (header.type() == wire::HEARTBEAT_REPLY) {
        auto* lease = header.mutable_orders()->add_leases();
        lease->set_partition(static_cast<int32_t>(rng.NextBelow(3)));
        lease->set_from(header.round());
        lease->set_handed_over(k % 2 == 0);
      }
      header.set_stop(i % 7 == 0);
      header.set_save(i % 3 == 0);
      header.set_move(i % 5 == 0);
      input +=
          WrittenStep(static_cast<uint8_t>(rng.NextBelow(250)), 5, header.SerializeAsString(), "");
    }
    corpus.Add(input);
  }
}

void MakeExperiment(const fs::path& sources, const fs::path& folder) {
  Corpus corpus(folder, "experiment");
  for (const auto& entry : fs::directory_iterator(sources / "experiments")) {
    if (entry.path().extension() == ".conf") corpus.Add(Contents(entry.path()));
  }
  const OptionTable& table = OptionTable::Shared();
  std::string all, words = "\"include = \"\n\"${KUMO_DATA}\"\n";
  for (const std::string& section : table.sections()) {
    all += "[" + section + "]\n";
    words += "\"[" + section + "]\"\n";
    for (const Option& option : table.options()) {
      if (option.section() != section) continue;
      all += option.name() + " = " + option.write(Experiment()) + "\n";
      words += "\"" + option.name() + " = \"\n";
    }
  }
  corpus.Add(all);
  std::ofstream(folder / "experiment.words") << words;
}

void AddWords(const google::protobuf::Descriptor& type, std::ostream& words) {
  for (int i = 0; i < type.field_count(); ++i) {
    const auto& field = *type.field(i);
    words << "\"" << field.name() << (field.message_type() ? " { " : ": ") << "\"\n";
    if (field.message_type()) AddWords(*field.message_type(), words);
  }
}

void MakeNetwork(const fs::path& sources, const fs::path& folder) {
  Corpus corpus(folder, "network");
  for (const auto& entry : fs::directory_iterator(sources / "models/zoo")) {
    if (entry.path().extension() == ".pbtxt") corpus.Add(Contents(entry.path()));
  }
  std::ofstream words(folder / "network.words");
  AddWords(*model::Network::descriptor(), words);
}

void MakeOnnx(const fs::path& folder) {
  Corpus corpus(folder, "onnx");
  for (const char* const layers :
       {"name: 'n' input { channels: 2 height: 6 width: 6 } "
        "layers { name: 'conv' convolution { outputs: 4 kernel: 3 pad: 1 } } "
        "layers { name: 'norm' batch_normalisation {} } layers { name: 'gelu' gelu {} } "
        "layers { name: 'sum' inputs: 'gelu' inputs: 'conv' add {} } "
        "layers { name: 'pool' max_pooling { kernel: 2 } } "
        "layers { name: 'l2' l2_normalisation {} } "
        "layers { name: 'groups' group_normalisation { groups: 2 } } "
        "layers { name: 'fc' fully_connected { outputs: 3 } } "
        "layers { name: 'loss' softmax_cross_entropy {} }",
        "name: 'n' input { name: 'tokens' extents: 4 vocabulary: 5 } "
        "layers { name: 'token' embedding { outputs: 6 } } "
        "layers { name: 'place' positional_embedding {} } "
        "layers { name: 'norm' layer_normalisation { per_position: true } } "
        "layers { name: 'qkv' fully_connected { outputs: 12 per_position: true } } "
        "layers { name: 'attention' attention { heads: 2 causal: true } } "
        "layers { name: 'turned' permute { axes: [1, 0] } } "
        "layers { name: 'part' slice { axis: 1 begin: 1 end: 3 } } "
        "layers { name: 'silu' silu {} } layers { name: 'drop' dropout { ratio: 0.5 } } "
        "layers { name: 'loss' softmax_cross_entropy {} }"}) {
    const Graph graph = PlanNetwork(ParseNetwork(layers, "n").value()).value();
    std::vector<std::vector<float>> tensors;
    for (const TensorSpec& spec : graph.tensors()) {
      tensors.emplace_back(static_cast<size_t>(spec.size()), 0.5f);
    }
    corpus.Add(ToOnnx(graph, tensors, {})->SerializeAsString());
  }
}

void MakeIdx(const fs::path& folder) {
  Corpus corpus(folder, "idx");
  const test::Bytes images = test::Idx({4, 5, 3}, test::Pattern(60));
  const test::Bytes labels = test::Idx({4}, test::Labels(4, 10));
  for (const auto& one : {images, test::Gzip(images)}) {
    for (const auto& other : {labels, test::Gzip(labels)}) {
      std::string input = {static_cast<char>(one.size() & 255), static_cast<char>(one.size() >> 8)};
      corpus.Add(input + Text(one) + Text(other));
    }
  }
}

void MakeCtf(const fs::path& folder) {
  Corpus corpus(folder, "ctf");
  const std::string dense = "|labels 0 1 0 |features 1 2.5 -3e-1 0 7 9\n";
  const std::string named = "7 |features 1 2 3 4 5 6 |labels 2 |# a remark\r\n";
  const std::string sparse = "|labels 1:1 |features 0:1.5 5:-2\n";
  const std::string all_zero = "|# a |# comment\n8 |labels 0:1\n8 |features\n";
  const std::string sequence =
      "5 |features 1 2 3 4 5 6\n5 |labels 1 |features 6 5 4 3 2 1\n5 |labels 2\n";
  for (const std::string& text : {dense + named, sparse + all_zero, sequence}) {
    for (const char* kind : {"\4", "\1"}) {
      corpus.Add(kind + text);
      corpus.Add(kind + Text(test::Gzip({text.begin(), text.end()})));
    }
  }
}

void MakeTables(const fs::path& folder) {
  Corpus corpus(folder, "table");
  const std::string numbers =
      "x:numbers:a..c,label:class\n\xef\xbb\xbf"
      "a,b,c,label\n";
  const std::string rows = "1,-2.5e3,.5,0\r\n\n4,5,6,\"2\"\n";
  const std::string named = "x:numbers:a*+b,kind:class:k\na1,b,a2,\"k\"\n0,1,2,cat\n3,4,5,1\n";
  const std::string quoted = "n:numbers:n*\n\"n\n\"\"n\"\"\n\",text\n7,\"a, b\n\"\"c\"\"\"\n8,\n";
  const std::string pictures = "left:picture:l,mask:mask,side:class:s\nl,mask,s\na.png,b.png,0\n";
  const std::string unnamed = "\nimage,label\na.png,0\n";
  for (const std::string& text : {numbers + rows, named, quoted, pictures, unnamed}) {
    for (const char kind : {'\3', '\7', '\23', '\43'}) corpus.Add(kind + text);
  }
}

void MakeImages(const fs::path& folder) {
  Corpus corpus(folder, "image");
  const std::vector<int64_t> colour = {3, 6, 5}, grey = {1, 6, 5};
  for (const auto& extents : {colour, grey}) {
    const test::Bytes pixels = test::ImagePixels(1, extents);
    corpus.Add("\2" + Text(test::WithOrientation(test::Png(extents, pixels), 5)));
    for (const auto form : {test::JpegForm::kBaseline, test::JpegForm::kProgressive}) {
      const test::Bytes jpeg = test::Jpeg(extents, pixels, form);
      corpus.Add("\2" + Text(test::WithOrientation(jpeg, 6)));
    }
  }
  const test::NamedFiles files = test::ClassFolders(3, 2, {1, 4, 4});
  for (const test::Pack pack : {test::Pack::kTar, test::Pack::kTarGz, test::Pack::kZip,
                                test::Pack::kDeflatedZip, test::Pack::kUtf8Zip}) {
    for (const char* kind : {"\10", "\1", "\4", "\5"})
      corpus.Add(kind + Text(test::Archive(pack, files)));
  }
  const std::vector<test::TarLink> links = {{"class0/x.png", "0000.png"},
                                            {"class1/y.png", "class0/x.png", '1'}};
  for (const char* kind : {"\10", "\1", "\4", "\5"})
    corpus.Add(kind + Text(test::TarWithLinks(files, links)));
}

void MakeDetection(const fs::path& folder) {
  Corpus corpus(folder, "detection");
  const std::vector<test::XmlObject> objects = {{"dog", {48, 240, 195.5, 371}},
                                                {"a&amp;b", {8, 12, 8, -4}, true}};
  corpus.Add(std::string(1, '\0') + test::VocXml(500, 375, objects));
  corpus.Add(std::string(1, '\0') +
             "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><annotation/>");
  const std::string json = test::CocoJson(
      {{"a.png", {{0, {1, 2, 3.5, 4}, true}, {1, {0, 0, -1, 9}}}}, {"b.png", {}}}, 2);
  for (const char* kind : {"\1", "\xff"}) corpus.Add(kind + json);
}

void MakeTensorFiles(const fs::path& folder) {
  Corpus corpus(folder, "tensor_file");
  MemoryFileSystem files;
  const std::vector<float> numbers = {1, -2, 0.5f, 3, 4, 5};
  const NamedTensor tensors[] = {{"conv.weight", {2, 3}, numbers},
                                 {"conv.bias", {2}, std::span(numbers).first(2)},
                                 {"scalar", {}, std::span(numbers).first(1)}};
  for (const TensorFormat format : {TensorFormat::kSafetensors, TensorFormat::kNpz}) {
    CHECK(WriteTensorFile(files, "tensors", format, tensors).ok());
    corpus.Add(std::string(1, static_cast<char>(format)) + *files.Contents("tensors"));
  }
}

void MakeCheckpoints(const fs::path& folder) {
  Corpus shards(folder, "shard_file"), manifests(folder, "manifest");
  MemoryFileSystem files;
  CHECK(files.CreateDirectories(JoinPath("checkpoints", CheckpointName(2))).ok());
  sim::Disk disk;
  sim::SimSettings job = sim::JobWithAForger(false);
  job.experiment.sync.push_codec = CodecId::kOneBit;  // partitions carry something
  (void)sim::Cluster(job, &disk).Run();
  for (auto [version, manifest] : disk.manifests) {
    ShardFileHeader header{1, 2, 3, version, manifest.generation(), 0, 2};
    for (const auto& [server, snapshot] : disk.files[{version, manifest.generation()}]) {
      header.shard = static_cast<uint32_t>(server);
      CHECK(WriteShardFile(files, "shard", header, snapshot).ok());
      shards.Add(*files.Contents("shard"));
    }
    manifest.set_version(2);
    CHECK(WriteManifest(files, "checkpoints", manifest).ok());
    const std::string text = *files.Contents("checkpoints/" + CheckpointName(2) + "/MANIFEST");
    manifests.Add(text);
    manifests.Add(text.substr(0, text.rfind("# crc32c ")));
  }
  std::ofstream words(folder / "manifest.words");
  AddWords(*checkpoint::Manifest::descriptor(), words);
}

void MakeForger(const fs::path& folder) {
  Corpus corpus(folder, "forger");
  Rng rng(2, RngPurpose::kTest);
  for (int i = 0; i < 40; ++i) {
    std::string input(2 + rng.NextBelow(300), '\0');
    for (char& c : input) c = static_cast<char>(rng.NextBelow(256));
    corpus.Add(input);
  }
}

}  // namespace
}  // namespace kumo::fuzz

int main(int argc, char** argv) {
  CHECK_EQ(argc, 3) << "make_corpora SOURCES FOLDER";
  FLAGS_minloglevel = google::GLOG_FATAL;
  const std::filesystem::path sources = argv[1], folder = argv[2];
  using namespace kumo::fuzz;
  MakeServerNode(folder);
  MakeSession(folder);
  MakeExperiment(sources, folder);
  MakeNetwork(sources, folder);
  MakeOnnx(folder);
  MakeIdx(folder);
  MakeCtf(folder);
  MakeTables(folder);
  MakeImages(folder);
  MakeDetection(folder);
  MakeTensorFiles(folder);
  MakeCheckpoints(folder);
  MakeForger(folder);
}
