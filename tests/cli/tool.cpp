// SPDX-License-Identifier: MIT
// Runs the tool with fork and exec, and writes the datasets.
#include "cli/tool.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "support/pictures.h"

namespace tensorgrad::test {

namespace fs = std::filesystem;

namespace {

// Arguments of the tool, allocated before a fork: after it, a lock of the allocator may be held by
// a thread that no longer exists.
class ToolCommand {
 public:
  explicit ToolCommand(const std::vector<std::string>& arguments) : words_(tool_words(arguments)) {
    for (std::string& word : words_) argv_.push_back(word.data());
    argv_.push_back(nullptr);
  }
  [[noreturn]] void become_it() const {
    std::signal(SIGHUP, SIG_DFL);  // nohup ignores it, and the tool would inherit that
    ::execv(argv_.front(), argv_.data());
    ::_exit(127);
  }

 private:
  std::vector<std::string> words_;
  std::vector<char*> argv_;
};

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::vector<std::string> tool_words(const std::vector<std::string>& arguments) {
  const char* const other = std::getenv("TEST_TG");  // such as the tool for another system
  std::vector<std::string> words = {other == nullptr ? TENSORGRAD_TG : other};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

ToolProcess::ToolProcess(const std::vector<std::string>& arguments, const fs::path& folder) {
  static std::atomic<int> count = 0;
  const std::string number = std::to_string(++count);
  out_ = folder / (".out" + number);
  err_ = folder / (".err" + number);
  const ToolCommand command(arguments);
  pid_ = ::fork();
  if (pid_ != 0) return;
  const int out = ::open(out_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  const int err = ::open(err_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  const int null = ::open("/dev/null", O_RDONLY);
  if (out < 0 || err < 0 || null < 0 || ::chdir(folder.c_str()) != 0 || ::dup2(out, 1) < 0 ||
      ::dup2(err, 2) < 0 || ::dup2(null, 0) < 0) {
    ::_exit(126);
  }
  command.become_it();
}

ToolProcess::~ToolProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ToolProcess::signal(int number) const { ::kill(pid_, number); }

ToolResult ToolProcess::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  ToolResult result;
  result.code = exit_code(status);
  result.out = read_text(out_);
  result.err = read_text(err_);
  fs::remove(out_);
  fs::remove(err_);
  return result;
}

ToolResult run_tool(const std::vector<std::string>& arguments, const fs::path& folder) {
  return ToolProcess(arguments, folder).wait();
}

pid_t fork_on_terminal(int columns, int rows, int& terminal) {
  terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::fcntl(terminal, F_SETFD, FD_CLOEXEC) != 0 || ::grantpt(terminal) != 0 ||
      ::unlockpt(terminal) != 0)
    return -1;
  // Opened before the fork: until then, macOS has no modes and no size of the terminal.
  const int streams = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  winsize size = {};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  if (streams < 0 || ::ioctl(streams, TIOCSWINSZ, &size) != 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0 && (::setsid() < 0 || ::ioctl(streams, TIOCSCTTY, 0) != 0 ||
                   ::dup2(streams, 0) != 0 || ::dup2(streams, 1) != 1 || ::dup2(streams, 2) != 2))
    ::_exit(126);
  if (pid != 0 || streams > 2) ::close(streams);
  return pid;
}

ToolResult run_tool_on_terminal(const std::vector<std::string>& arguments, const fs::path& folder,
                                unsigned short columns) {
  const ToolCommand command(arguments);
  ToolResult result;
  int terminal = -1;
  const pid_t pid = fork_on_terminal(columns, 25, terminal);
  if (pid < 0) return result;
  if (pid == 0) {
    if (::chdir(folder.c_str()) != 0 || ::setenv("TERM", "xterm", 1) != 0) ::_exit(126);
    command.become_it();
  }
  char text[4096];
  ssize_t count = 0;  // 0 or an error once the tool has exited
  while ((count = ::read(terminal, text, sizeof text)) > 0)
    result.out.append(text, static_cast<std::size_t>(count));
  ::close(terminal);
  int status = 0;
  ::waitpid(pid, &status, 0);
  result.code = exit_code(status);
  return result;
}

TestFolder::TestFolder() {
  std::string name = (fs::temp_directory_path() / "tg_test_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void write_idx(const fs::path& path, const std::vector<std::uint32_t>& shape,
               const std::vector<std::uint8_t>& bytes) {
  std::string text = {0, 0, 8, static_cast<char>(shape.size())};
  for (const std::uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(size >> shift & 255U);
  }
  text.append(bytes.begin(), bytes.end());
  write_text(path, text);
}

void write_image_folder(const fs::path& folder) {
  fs::create_directories(folder);
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (const auto& [name, count] : {std::pair("train", 60U), std::pair("test", 25U)}) {
    std::vector<std::uint8_t> pixels, labels;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t kind = below(3);
      const std::uint32_t line = below(5);
      for (std::uint32_t p = 0; p < 25; ++p) {
        const std::uint32_t y = p / 5;
        const std::uint32_t x = p % 5;
        const bool bright = kind == 0 ? y == line : kind == 1 ? x == line : x == y;
        pixels.push_back(static_cast<std::uint8_t>((bright ? 200 : 0) + below(50)));
      }
      labels.push_back(static_cast<std::uint8_t>(kind));
    }
    write_idx(folder / (name + std::string("-images-idx3-ubyte")), {count, 5, 5}, pixels);
    write_idx(folder / (name + std::string("-labels-idx1-ubyte")), {count}, labels);
  }
}

void write_class_folder(const fs::path& folder) {
  std::mt19937 random(11);
  for (const char* const name : {"columns", "rows"}) {
    fs::create_directories(folder / name);
    for (int i = 0; i < 20; ++i) {
      const std::size_t line = random() % 6;
      std::string pixels;
      for (std::size_t p = 0; p < 36; ++p) {
        const std::size_t place = name == std::string("rows") ? p / 6 : p % 6;
        pixels += static_cast<char>((place == line ? 100 : 0) + random() % 20);
      }
      write_text(folder / name / (std::to_string(i) + ".png"),
                 testing::png_of_pixels(6, 6, 1, pixels));
    }
  }
}

std::string table_text(bool with_labels) {
  std::mt19937 random(3);
  std::ostringstream out;
  out << (with_labels ? "width,height,kind\n" : "width,height\n");
  for (int i = 0; i < 80; ++i) {
    const bool large = i % 3 == 0;
    const auto size = [&] { return (large ? 20 : 10) + static_cast<int>(random() % 5); };
    out << size() << ',' << size() * 100;
    if (with_labels) out << (large ? ",large" : ",small");
    out << '\n';
  }
  return out.str();
}

}  // namespace tensorgrad::test
