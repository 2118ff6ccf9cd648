// PyTorch side of train_speed.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace kumo {

// PyTorch process that answers requests line by line (train_speed.py --serve). During Kumo's turn
// it waits for the next line.
class Torch {
 public:
  // arguments: of train_speed.py.
  explicit Torch(const std::string& arguments) {
    const char* python = std::getenv("KUMO_TORCH_PYTHON");
    python_ = python == nullptr ? "python3" : python;
    // By default glibc returns the memory of PyTorch's tensors to the system after each step;
    // LeNet's step then takes a third longer.
    const std::string command =
        "OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 MALLOC_MMAP_THRESHOLD_=1073741824 "
        "MALLOC_TRIM_THRESHOLD_=4294967296 exec " +
        python_ + " " + KUMO_TRAIN_SPEED_PY + " --serve " + arguments;
    std::signal(SIGPIPE, SIG_IGN);  // a dead process shows as the end of its answers
    int questions[2];
    int answers[2];
    if (pipe2(questions, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(questions[0], STDIN_FILENO);
      dup2(answers[1], STDOUT_FILENO);
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    close(questions[0]);
    close(answers[1]);
    questions_ = fdopen(questions[1], "w");
    answers_ = fdopen(answers[0], "r");
  }
  ~Torch() {
    if (questions_ != nullptr) fclose(questions_);  // the end of its input ends it
    if (answers_ != nullptr) fclose(answers_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  Torch(const Torch&) = delete;
  Torch& operator=(const Torch&) = delete;

  // Empty if the Python has no PyTorch.
  std::string Version() { return Field(Ask("version"), "torch"); }
  const std::string& python() const { return python_; }

  std::vector<std::string> Settings(const std::string& work) {
    const std::string list = Ask(work + " list");
    std::vector<std::string> settings;
    size_t end = 0;
    for (size_t begin = list.find('"'); begin != std::string::npos;
         begin = list.find('"', end + 1)) {
      end = list.find('"', begin + 1);
      if (end == std::string::npos) break;
      settings.push_back(list.substr(begin + 1, end - begin - 1));
    }
    return settings;
  }
  // Samples per second; 0, with a message, if the setting does not work.
  double Measure(const std::string& work, const std::string& setting, double seconds) {
    const std::string answer = Ask(work + " " + setting + " " + std::to_string(seconds));
    const std::string key = "\"samples_per_s\": ";
    const size_t at = answer.find(key);
    if (at != std::string::npos) return std::atof(answer.c_str() + at + key.size());
    std::cerr << "PyTorch, " << work << ", " << setting << ": "
              << (answer.empty() ? "no answer\n" : answer);
    return 0;
  }

 private:
  std::string Ask(const std::string& question) {
    if (questions_ == nullptr || answers_ == nullptr) return "";
    std::fputs((question + "\n").c_str(), questions_);
    std::fflush(questions_);
    std::array<char, 4096> line;
    return fgets(line.data(), line.size(), answers_) == nullptr ? "" : line.data();
  }
  static std::string Field(const std::string& json, const std::string& name) {
    const std::string key = "\"" + name + "\": \"";
    const size_t at = json.find(key);
    if (at == std::string::npos) return "";
    const size_t begin = at + key.size();
    return json.substr(begin, json.find('"', begin) - begin);
  }

  std::string python_;
  pid_t child_ = -1;
  FILE* questions_ = nullptr;
  FILE* answers_ = nullptr;
};

}  // namespace kumo
