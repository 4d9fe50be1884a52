// SPDX-License-Identifier: MIT
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX 1
#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <shellapi.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "os/process.h"

namespace tensorgrad::cli::os {
namespace {

HANDLE handle_of(std::FILE* stream) {
  return reinterpret_cast<HANDLE>(::_get_osfhandle(::_fileno(stream)));
}

std::atomic<void (*)(int)> end_request;

// Called in a thread of its own.
BOOL WINAPI handle_event(DWORD event) {
  const int number = event == CTRL_C_EVENT ? SIGINT : SIGTERM;
  void (*const handle)(int) = end_request.exchange(nullptr);
  if (handle == nullptr) return FALSE;  // ends the process
  handle(number);
  // Windows ends the process when this call returns, or after some seconds.
  if (event == CTRL_CLOSE_EVENT || event == CTRL_LOGOFF_EVENT || event == CTRL_SHUTDOWN_EVENT)
    ::Sleep(INFINITE);
  return TRUE;
}

}  // namespace

char** arguments(int& count, char** given) {
  for (std::FILE* const stream : {stdin, stdout, stderr}) ::_setmode(::_fileno(stream), _O_BINARY);
  ::SetConsoleOutputCP(CP_UTF8);
  for (std::FILE* const stream : {stdout, stderr}) {
    DWORD mode = 0;
    if (::GetConsoleMode(handle_of(stream), &mode))
      ::SetConsoleMode(handle_of(stream), mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  }
  wchar_t** const wide = ::CommandLineToArgvW(::GetCommandLineW(), &count);
  if (wide == nullptr) return given;
  static std::vector<std::string> texts;
  static std::vector<char*> pointers;
  for (int i = 0; i < count; ++i) {
    const int size = ::WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, nullptr, 0, nullptr, nullptr);
    std::string text(static_cast<std::size_t>(size), '\0');
    ::WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, text.data(), size, nullptr, nullptr);
    texts.push_back(std::move(text));  // with its zero
  }
  ::LocalFree(wide);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers.data();
}

void set_if_unset(const char* variable, const char* value) {
  if (::GetEnvironmentVariableA(variable, nullptr, 0) == 0) ::_putenv_s(variable, value);
}

bool is_terminal(std::FILE* stream) {
  DWORD mode = 0;
  return ::GetConsoleMode(handle_of(stream), &mode) != 0;
}

int terminal_columns(std::FILE* stream) {
  CONSOLE_SCREEN_BUFFER_INFO info = {};
  if (!::GetConsoleScreenBufferInfo(handle_of(stream), &info)) return 0;
  return info.srWindow.Right - info.srWindow.Left + 1;
}

const int kInterrupt = SIGINT;

void on_end_request(void (*handle)(int)) {
  end_request = handle;
  ::SetConsoleCtrlHandler(handle_event, TRUE);
}

void* open_library(const std::string& path, std::string& error) {
  error = path + ": not supported on Windows";
  return nullptr;
}

void* find_symbol(void* /*library*/, const char* /*name*/) { return nullptr; }

std::string host_name() {
  const char* const name = std::getenv("COMPUTERNAME");
  return name == nullptr ? "localhost" : name;
}

std::string allowed_cores() {
  return std::string(std::max(1U, std::thread::hardware_concurrency()), '1');
}

// The holder has opened it such that nobody else can write to it.
bool is_locked(const std::string& path) {
  const HANDLE file = ::CreateFileW(utf8_path(path).c_str(), GENERIC_WRITE,
                                    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                    OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, nullptr);
  if (file == INVALID_HANDLE_VALUE) return ::GetLastError() == ERROR_SHARING_VIOLATION;
  ::CloseHandle(file);
  return false;
}

}  // namespace tensorgrad::cli::os
