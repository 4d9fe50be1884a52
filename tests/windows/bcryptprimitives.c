// SPDX-License-Identifier: MIT
// The library of Windows from which wgpu-native takes random bytes, for the Wine of Debian 12, which
// lacks it. `./dev windows` puts it into Wine's folder.
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
  return RtlGenRandom(bytes, (ULONG)count);
}
