// SPDX-License-Identifier: MIT
// NumPy's files: arrays (.npy) and archives of named arrays (.npz).
#pragma once

#include <map>
#include <string>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/train/host_tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Reads the array of a .npy file, as numpy.save() writes it. Element types become those of
/// read_weights(): float64 (rounded to nearest), float32 and float16 become f32, integers become
/// i32, but uint32 becomes u32, and bool becomes bool. Both byte orders and orders of axes are
/// read.
///
/// Throws IoError naming the file if it cannot be read or is malformed, or if it has elements of
/// another type or a value that does not fit.
HostTensor read_npy(const FileSource& source);

/// Reads the arrays of a .npz file by their names, as numpy.savez() and numpy.savez_compressed()
/// write them. Checksums are verified. Throws the errors of read_npy(), and IoError if the archive
/// is malformed or uses another compression.
std::map<std::string, HostTensor> read_npz(const FileSource& source);

/// Writes a tensor as a .npy file, atomically. f32 is written as float32, f16 as float16, i32 as
/// int32, u32 as uint32 and bool as bool. Throws IoError if the file cannot be written.
void write_npy(const FileSink& sink, const HostTensor& tensor);

/// Writes tensors as a .npz file without compression, atomically. Throws the errors of write_npy(),
/// and IoError if the archive would have more than 4 GiB, more than 65,535 tensors, or a name that
/// is empty, too long or not UTF-8.
void write_npz(const FileSink& sink, const std::map<std::string, HostTensor>& tensors);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
