// SPDX-License-Identifier: MIT
// Version of the library, and attributes of its declarations.
#pragma once

/// Major version.
#define TENSORGRAD_VERSION_MAJOR 0

/// Minor version.
#define TENSORGRAD_VERSION_MINOR 3

/// Patch version.
#define TENSORGRAD_VERSION_PATCH 0

/// Version as text: "MAJOR.MINOR.PATCH".
#define TENSORGRAD_VERSION_STRING "0.3.0"

/// Inline namespace of the ABI. It changes with every release that breaks binary compatibility, so
/// that a program built against another ABI fails to link. Source code uses `tensorgrad::Tensor`;
/// only symbol names contain the ABI.
#define TENSORGRAD_ABI v0_3

/// Marks a parameter whose memory the result refers to, so that clang warns if that is a temporary.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define TENSORGRAD_LIFETIMEBOUND [[clang::lifetimebound]]
#endif
#endif
#ifndef TENSORGRAD_LIFETIMEBOUND
#define TENSORGRAD_LIFETIMEBOUND
#endif
