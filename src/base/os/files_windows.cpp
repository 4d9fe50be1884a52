// SPDX-License-Identifier: MIT
// Descriptors are those of the C library. Whoever holds a lock has opened the file or folder such
// that it can rename and remove it, and nobody else can write to it, rename it or remove it.
#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/os/files.h"
#include "base/os/wide.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {
namespace {

constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;  // sizes have 32 bits
constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
constexpr int kLastStream = 2;
constexpr int kTries = 100;  // 10 ms apart, while another process has a file open

int errno_of(DWORD code) {
  switch (code) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_NETPATH:
    case ERROR_INVALID_DRIVE: return ENOENT;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: return EEXIST;
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION: return EWOULDBLOCK;
    case ERROR_ACCESS_DENIED:
    case ERROR_WRITE_PROTECT: return EACCES;
    case ERROR_DIR_NOT_EMPTY: return ENOTEMPTY;
    case ERROR_DIRECTORY: return ENOTDIR;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: return ENOSPC;
    case ERROR_TOO_MANY_OPEN_FILES: return EMFILE;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY: return ENOMEM;
    case ERROR_INVALID_HANDLE: return EBADF;
    case ERROR_NOT_SAME_DEVICE: return EXDEV;
    default: return EIO;
  }
}

void set_errno() { errno = errno_of(::GetLastError()); }

HANDLE handle_of(int fd) { return reinterpret_cast<HANDLE>(::_get_osfhandle(fd)); }

// Opens a file or folder, itself if it is a link and `flags` say so. Returns its descriptor.
int open_handle(const std::string& path, DWORD access, DWORD shared, DWORD when, DWORD flags,
                int mode) {
  occupy_standard_streams();
  const HANDLE handle = ::CreateFileW(wide(path).c_str(), access, shared, nullptr, when,
                                      FILE_FLAG_BACKUP_SEMANTICS | flags, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    set_errno();
    return -1;
  }
  const int fd = ::_open_osfhandle(reinterpret_cast<std::intptr_t>(handle), _O_BINARY | mode);
  if (fd < 0) {
    ::CloseHandle(handle);
    errno = EMFILE;
  }
  return fd;
}

// Opens what exists, and locks it.
int open_and_lock(const std::string& path) {
  return open_handle(path, GENERIC_READ | DELETE, FILE_SHARE_READ | FILE_SHARE_WRITE, OPEN_EXISTING,
                     FILE_FLAG_OPEN_REPARSE_POINT, _O_RDONLY);
}

bool mark_removed(int fd) {
  FILE_DISPOSITION_INFO info = {TRUE};
  return ::SetFileInformationByHandle(handle_of(fd), FileDispositionInfo, &info, sizeof info) != 0;
}

// Returns the names of what is in an open folder. Its handle is used, since the lock may keep
// others from being opened.
std::vector<std::wstring> names_in(int fd) {
  constexpr std::size_t kBytes = 1 << 16;
  std::vector<std::wstring> names;
  std::vector<std::uint64_t> memory(kBytes / sizeof(std::uint64_t));
  auto* const buffer = reinterpret_cast<char*>(memory.data());
  while (::GetFileInformationByHandleEx(handle_of(fd), FileIdBothDirectoryInfo, buffer, kBytes)) {
    for (const char* at = buffer;;) {
      const auto* const entry = reinterpret_cast<const FILE_ID_BOTH_DIR_INFO*>(at);
      std::wstring name(entry->FileName, entry->FileNameLength / sizeof(wchar_t));
      if (name != L"." && name != L"..") names.push_back(std::move(name));
      if (entry->NextEntryOffset == 0) break;
      at += entry->NextEntryOffset;
    }
  }
  return names;
}

// Removes what is in an open folder. Returns false if something cannot be removed.
bool empty_folder(int fd, const std::string& path) {
  std::error_code error;
  for (const std::wstring& name : names_in(fd)) {
    std::error_code failed;
    std::filesystem::remove_all(utf8_path(path) / name, failed);
    if (failed) error = failed;
  }
  return !error;
}

bool is_folder(int fd) {
  const std::optional<FileInfo> info = file_info(fd);
  return info && info->kind == FileKind::kFolder;
}

}  // namespace

void occupy_standard_streams() {
  for (int stream = 0; stream <= kLastStream; ++stream) {
    // -2: without a console, and so never given to a file.
    if (::_get_osfhandle(stream) != -1) continue;
    const int fd = ::_wopen(L"NUL", _O_RDWR | _O_BINARY);
    if (fd > kLastStream) ::_close(fd);
  }
}

int open_file(const std::string& path, Open how) {
  constexpr DWORD kBoth = GENERIC_READ | GENERIC_WRITE;
  switch (how) {
    case Open::kRead: return open_handle(path, GENERIC_READ, kShared, OPEN_EXISTING, 0, _O_RDONLY);
    case Open::kAppend:
      return open_handle(path, kBoth, kShared, OPEN_EXISTING, 0, _O_RDWR | _O_APPEND);
    case Open::kNew:
      return open_handle(path, GENERIC_WRITE, kShared, CREATE_NEW, 0, _O_WRONLY | _O_APPEND);
    case Open::kEmpty:
      return open_handle(path, GENERIC_WRITE, kShared, CREATE_ALWAYS, 0, _O_WRONLY);
  }
  return -1;
}

std::optional<FileInfo> file_info(int fd) {
  const HANDLE handle = handle_of(fd);
  if (::GetFileType(handle) != FILE_TYPE_DISK) return FileInfo{};
  BY_HANDLE_FILE_INFORMATION info = {};
  if (!::GetFileInformationByHandle(handle, &info)) {
    set_errno();
    return std::nullopt;
  }
  const bool folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  return FileInfo{folder ? FileKind::kFolder : FileKind::kFile,
                  std::uint64_t{info.nFileSizeHigh} << 32U | info.nFileSizeLow};
}

std::ptrdiff_t read_at(int fd, std::uint64_t offset, std::span<std::byte> out) {
  OVERLAPPED at = {};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32U);
  DWORD count = 0;
  const auto size = static_cast<DWORD>(std::min(out.size(), kMaxTransfer));
  if (::ReadFile(handle_of(fd), out.data(), size, &count, &at)) return count;
  if (::GetLastError() == ERROR_HANDLE_EOF) return 0;
  set_errno();
  return -1;
}

int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto size = static_cast<unsigned>(std::min(bytes.size(), kMaxTransfer));
    const int n = ::_write(fd, bytes.data(), size);
    if (n < 0) return errno;
    if (n == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

bool truncate(int fd, std::uint64_t bytes) {
  FILE_END_OF_FILE_INFO info = {};
  info.EndOfFile.QuadPart = static_cast<LONGLONG>(bytes);
  if (::SetFileInformationByHandle(handle_of(fd), FileEndOfFileInfo, &info, sizeof info))
    return true;
  set_errno();
  return false;
}

bool sync_file(int fd) {
  if (::FlushFileBuffers(handle_of(fd)) || ::GetLastError() == ERROR_INVALID_FUNCTION) return true;
  set_errno();
  return false;
}

// A journal of the file system holds the renames of NTFS; a folder cannot be synced.
void sync_folder_of(const std::string& /*path*/) {}

bool close_file(int fd) { return ::_close(fd) == 0; }

int create_locked(const std::string& path, bool folder) {
  int fd = -1;
  if (!folder) {
    fd = open_handle(path, GENERIC_WRITE | DELETE, FILE_SHARE_READ, CREATE_NEW, 0,
                     _O_WRONLY | _O_APPEND);
    if (fd < 0 && errno == EWOULDBLOCK) errno = EEXIST;
    return fd;
  }
  if (!::CreateDirectoryW(wide(path).c_str(), nullptr)) {
    set_errno();
    return -1;
  }
  fd = open_and_lock(path);
  if (fd < 0 && (errno == ENOENT || errno == EWOULDBLOCK)) errno = EAGAIN;
  return fd;
}

int open_locked(const std::string& path) {
  for (int tried = 0;; ++tried) {
    const int fd = open_handle(path, GENERIC_READ | GENERIC_WRITE | DELETE, FILE_SHARE_READ,
                               OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT, _O_RDWR);
    if (fd >= 0 || errno != EACCES || tried == kTries) return fd;
    ::Sleep(10);
  }
}

bool remove_if_unlocked(const std::string& path) {
  const int fd = open_and_lock(path);
  if (fd < 0) return errno == ENOENT;
  const bool removed = (!is_folder(fd) || empty_folder(fd, path)) && mark_removed(fd);
  ::_close(fd);
  return removed;
}

// Nobody else can move it.
bool is_at(int /*fd*/, const std::string& /*path*/) { return true; }

void remove_locked_file(int fd, const std::string& /*path*/) {
  mark_removed(fd);
  ::_close(fd);
}

void remove_locked_folder(int fd, const std::string& path) {
  if (empty_folder(fd, path)) mark_removed(fd);
  ::_close(fd);
}

bool rename_locked(int fd, const std::string& /*path*/, const std::string& to) {
  std::wstring whole(1 << 15, L'\0');  // the longest path
  const std::wstring name = wide(to);
  whole.resize(
      ::GetFullPathNameW(name.c_str(), static_cast<DWORD>(whole.size()), whole.data(), nullptr));
  if (is_folder(fd)) {
    const DWORD there = ::GetFileAttributesW(name.c_str());
    const bool empty = there == INVALID_FILE_ATTRIBUTES || ::RemoveDirectoryW(name.c_str());
    if (!empty) {
      set_errno();
      return false;
    }
  }
  // The structure ends with the name and its zero.
  const std::size_t bytes = sizeof(FILE_RENAME_INFO) + whole.size() * sizeof(wchar_t);
  std::vector<std::uint64_t> memory(bytes / sizeof(std::uint64_t) + 1);
  auto* const info = reinterpret_cast<FILE_RENAME_INFO*>(memory.data());
  info->FileNameLength = static_cast<DWORD>(whole.size() * sizeof(wchar_t));
  std::copy(whole.begin(), whole.end(), info->FileName);
  // Since Windows 10: replaces a file that others have open, too.
  constexpr auto kRenameEx = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);  // FileRenameInfoEx
  constexpr DWORD kReplace = 1, kPosix = 2;
  const auto size = static_cast<DWORD>(bytes);
  for (int tried = 0;; ++tried) {
    info->Flags = kReplace | kPosix;
    if (::SetFileInformationByHandle(handle_of(fd), kRenameEx, info, size)) return true;
    info->Flags = 0;
    info->ReplaceIfExists = TRUE;
    if (::SetFileInformationByHandle(handle_of(fd), FileRenameInfo, info, size)) return true;
    set_errno();
    // Perhaps another process reads the file that is replaced.
    if ((errno != EACCES && errno != EWOULDBLOCK) || tried == kTries) return false;
    ::Sleep(10);
  }
}

int unlock(int fd, const std::string& path) {
  ::_close(fd);
  return open_file(path, Open::kAppend);
}

// Of a file beside it: Windows does not replace a file that is locked.
WaitingLock::WaitingLock(const std::string& path) {
  for (int denied = 0; fd_ < 0; ::Sleep(10)) {
    fd_ = open_handle(path + ".lock", GENERIC_WRITE | DELETE, 0, OPEN_ALWAYS,
                      FILE_FLAG_DELETE_ON_CLOSE, _O_WRONLY);
    if (fd_ >= 0) return;
    if (errno == EWOULDBLOCK) continue;
    // EACCES: the last owner removes it, or it cannot be created.
    if (errno != EACCES || ++denied == kTries) return;
  }
}

WaitingLock::~WaitingLock() {
  if (fd_ >= 0) ::_close(fd_);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
