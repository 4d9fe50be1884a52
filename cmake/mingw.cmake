# SPDX-License-Identifier: MIT
# Compiles for 64-bit Windows on another machine, with Debian's mingw-w64 and the libraries that
# `./dev windows` builds into build/windows-sysroot; Wine runs what must run here.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
foreach(language IN ITEMS C CXX)
  # GCC keeps vectors of 32 and 64 bytes on a stack that Windows aligns to 16 bytes (GCC bug 54412),
  # so the assembler writes moves that need no alignment.
  set(CMAKE_${language}_FLAGS_INIT "-D_WIN32_WINNT=0x0A00 -Wa,-muse-unaligned-vector-move,-mbig-obj")
endforeach()
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
# No DLL of the compiler is needed. Threads get the stack of the program, which Windows makes 1 MiB.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -Wl,--stack,8388608")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static")
set(CMAKE_FIND_ROOT_PATH "${CMAKE_CURRENT_LIST_DIR}/../build/windows-sysroot")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS INCLUDE LIBRARY PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/lib/wine/wine64)
