// SPDX-License-Identifier: MIT
// Files and folders in memory: conversions, ownership of the bytes, and that every reader and
// writer of this module treats them like files.
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <unordered_map>

#include "io_test_util.h"
#include "support/file_pairs.h"
#include "support/source_path.h"
#include "tensorgrad/data.h"

namespace tensorgrad {
namespace {

using test::as_bytes;
using test::bits_of_range;
using test::bytes_written_by;
using test::expect_reads_bytes_as_files;
using test::gzipped;
using test::io_error_of;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Bytes = std::vector<std::byte>;

Bytes to_bytes(std::string_view text) {
  const auto bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

void put_file_in_folders(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  write_file_atomically(path.string(), bytes);
}

std::string text_of(const FileSource& source) { return bits_of_range(read_file(source)); }

TEST(FileSource, converts_from_paths_and_from_bytes) {
  const TempDir folder;
  test::put_file(folder / "f", "abc");
  const std::string path = folder / "f";
  EXPECT_EQ(text_of(path), "abc");
  EXPECT_EQ(text_of(path.c_str()), "abc");
#ifndef _WIN32  // where its text is no UTF-8
  EXPECT_EQ(text_of(std::filesystem::path(path)), "abc");
#endif
  const Bytes bytes = to_bytes("xyz");
  const std::array<std::byte, 2> two = {std::byte{'o'}, std::byte{'k'}};
  EXPECT_EQ(text_of(bytes), "xyz");
  EXPECT_EQ(text_of(std::span(bytes).first(2)), "xy");
  EXPECT_EQ(text_of(std::span<const std::byte, 2>(two)), "ok");
  EXPECT_EQ(text_of(two), "ok");
  EXPECT_EQ(text_of({bytes, "named"}), "xyz");
  EXPECT_EQ(text_of(FileSource::text("hello")), "hello");
  EXPECT_EQ(text_of(Bytes()), "");
  EXPECT_EQ(FileSource(bytes).name(), "<memory>");
  EXPECT_EQ(FileSource(bytes, "named").name(), "named");
  EXPECT_EQ(FileSource(path).name(), path);
  EXPECT_TRUE(FileSource(bytes).in_memory());
  EXPECT_FALSE(FileSource(path).in_memory());
}

TEST(FileSource, views_bytes_unless_they_are_moved_in) {
  Bytes bytes = to_bytes("abc");
  const std::byte* const data = bytes.data();
  EXPECT_EQ(FileSource(bytes).bytes().data(), data);
  FileSource copy = "";
  {
    const FileSource owner(std::move(bytes));
    copy = owner;
  }
  EXPECT_EQ(copy.bytes().data(), data);
  EXPECT_EQ(text_of(copy), "abc");
}

TEST(FileSource, has_the_size_limit_of_files) {
  const TempDir folder;
  test::put_file(folder / "f", "abcd");
  const Bytes bytes = to_bytes("abcd");
  const std::string path = folder / "f";
  EXPECT_EQ(io_error_of([&] { read_file({bytes, "f"}, 3); }), "f: has 4 bytes; at most 3 allowed");
  EXPECT_EQ(io_error_of([&] { read_file({bytes, path}, 3); }),
            io_error_of([&] { read_file(path, 3); }));
  EXPECT_EQ(io_error_of([&] { read_text_file({bytes, path}, 3); }),
            io_error_of([&] { read_text_file(path, 3); }));
  const Bytes zipped = to_bytes(gzipped("abcd"));
  EXPECT_EQ(read_text_file(zipped, 4), "abcd");
  EXPECT_EQ(io_error_of([&] { read_text_file({zipped, "z"}, 3); }),
            "z: text exceeds the limit of 3 bytes");
}

TEST(FileSink, is_replaced_atomically) {
  Bytes bytes = to_bytes("before");
  StoredFile file;
  file.tensors["w"] = {"U8", {2}, to_bytes("ab")};
  file.tensors["bad"] = {"NONE", {}, {}};
  EXPECT_EQ(io_error_of([&] { write_safetensors(bytes, file); }),
            "<memory>: tensor \"bad\": unknown dtype \"NONE\"");
  EXPECT_EQ(io_error_of([&] { write_safetensors({bytes, "mine"}, file); }),
            "mine: tensor \"bad\": unknown dtype \"NONE\"");
  EXPECT_EQ(bytes, to_bytes("before"));
  file.tensors.erase("bad");
  write_safetensors(bytes, file);
  EXPECT_EQ(read_safetensors(bytes), file);
  EXPECT_EQ(bytes.capacity(), bytes.size());
}

TEST(ReadersOfBytes, match_files) {
  const auto idx = [](const FileSource& source) {
    const IdxArray array = read_idx(source);
    return to_string(array.shape) + bits_of_range(array.bytes);
  };
  const std::string labels = test::idx_text(8, {3}, "abc");
  expect_reads_bytes_as_files(as_bytes(labels), idx);
  expect_reads_bytes_as_files(as_bytes(gzipped(labels)), idx);

  const auto csv = [](const FileSource& source) {
    const CsvData data = read_csv(source);
    return bits_of_range(data.train.features) + bits_of_range(data.train.labels);
  };
  const std::string table = "a,b,label\n1,2,cat\n3,4,dog\n";
  expect_reads_bytes_as_files(as_bytes(table), csv);
  expect_reads_bytes_as_files(as_bytes(gzipped(table)), csv);

  const auto text = [](const FileSource& source) {
    const TextData data = read_text(source);
    return data.vocabulary.decode(data.train) + "|" + data.vocabulary.decode(data.validation);
  };
  expect_reads_bytes_as_files(as_bytes("\xef\xbb\xbfZ\u00fcrich"), text);
  expect_reads_bytes_as_files(as_bytes(gzipped("hello")), text);

  for (const char* name : {"colour.jpg", "grey.jpg", "cmyk.jpg"}) {
    const std::string file =
        test::get_file(test::source_path("tests/unit/io/fixtures/") + std::string(name));
    expect_reads_bytes_as_files(as_bytes(file), [](const FileSource& source) {
      return bits_of_range(read_image(source, {.height = 7, .width = 5}).pixels);
    });
  }
}

TEST(WritersOfBytes, match_files) {
  StoredFile stored;
  stored.tensors["w"] = {"F32", {2, 1}, to_bytes("abcdefgh")};
  stored.tensors["none"] = {"U8", {0}, {}};
  stored.metadata = {{"key", "value"}};
  const auto tensors =
      bytes_written_by([&](const FileSink& sink) { write_safetensors(sink, stored); });
  expect_reads_bytes_as_files(
      tensors, [](const FileSource& source) { return dump_safetensors(read_safetensors(source)); });
  EXPECT_EQ(read_safetensors(tensors), stored);

  const MbjsFile mbjs{.version = 3, .layers = {MbjsLayer::kMamba1}, .tensors = {{1, 2}, {}, {-3}}};
  const auto bytes = bytes_written_by([&](const FileSink& sink) { write_mbjs(sink, mbjs); });
  EXPECT_EQ(read_mbjs(bytes), mbjs);
  expect_reads_bytes_as_files(bytes, [](const FileSource& source) {
    std::string all;
    for (const auto& tensor : read_mbjs(source).tensors) all += bits_of_range(tensor) + "|";
    return all;
  });
}

// Lists the entries of a folder, and tests which files and folders exist.
TEST(FolderSource, has_the_files_of_a_folder_in_memory_and_on_disk) {
  const TempDir disk;
  std::map<std::string, Bytes> files;
  for (const char* name : {"b/2.txt", "a-b/1.txt", "a/1.txt", "a/c/3.txt", "z", "a.txt"}) {
    files[name] = to_bytes(name);
    put_file_in_folders(disk / name, files[name]);
  }
  const FolderSource in_memory(files, disk.str());
  for (const FolderSource& folder : {FolderSource(disk.str()), in_memory}) {
    EXPECT_TRUE(folder.exists());
    EXPECT_EQ(folder.name(), disk.str());
    EXPECT_THAT(folder.entries(), ElementsAre("a/", "a-b/", "a.txt", "b/", "z"));
    EXPECT_THAT(folder.folder("a").entries(), ElementsAre("1.txt", "c/"));
    EXPECT_THAT(folder.folder("a").folder("c").entries(), ElementsAre("3.txt"));
    EXPECT_TRUE(folder.has_file("z") && folder.has_file("a/1.txt") && folder.has_folder("a"));
    EXPECT_TRUE(folder.folder("a").has_folder("c"));
    EXPECT_FALSE(folder.has_file("a") || folder.has_folder("z") || folder.has_file("A"));
    EXPECT_FALSE(folder.folder("a").has_file("z"));
    EXPECT_EQ(folder.folder("a").file("1.txt").name(), disk / "a/1.txt");
    EXPECT_EQ(text_of(folder.folder("a").file("c/3.txt")), "a/c/3.txt");
    EXPECT_THAT(
        [&] { read_file(folder.folder("a").file("none")); },
        ThrowsMessage<IoError>(HasSubstr((disk / "a/none") + ": cannot be opened: no such")));
  }
  EXPECT_FALSE(FolderSource(disk / "none").exists());
  EXPECT_FALSE(FolderSource(disk / "z").exists());
}

TEST(FolderSource, converts_from_maps_and_lists) {
  const Bytes bytes = to_bytes("abc");
  const FolderSource listed = {{"a", bytes}, {"b/c", FileSource::text("xyz")}};
  EXPECT_EQ(listed.file("a").bytes().data(), bytes.data());
  EXPECT_EQ(listed.file("a").name(), "<memory>/a");
  EXPECT_EQ(text_of(listed.file("b/c")), "xyz");
  const std::unordered_map<std::string, Bytes> map = {{"a", bytes}};
  EXPECT_EQ(FolderSource(map).file("a").bytes().data(), map.at("a").data());
  std::map<std::string, Bytes> moved = {{"a", bytes}};
  const std::byte* const data = moved.at("a").data();
  const FolderSource owner(std::move(moved), "mine");
  EXPECT_EQ(owner.file("a").bytes().data(), data);
  EXPECT_EQ(owner.file("a").name(), "mine/a");
  // An entry of the folder may also be a file on disk, which keeps its path.
  const TempDir disk;
  test::put_file(disk / "f", "on disk");
  const FolderSource mixed = {{"f", disk / "f"}};
  EXPECT_EQ(text_of(mixed.file("f")), "on disk");
  EXPECT_EQ(mixed.file("f").name(), disk / "f");
}

TEST(FolderSource, invalid_file_names_are_rejected) {
  const auto refused = [](const std::vector<std::pair<std::string, FileSource>>& files,
                          const char* message) {
    EXPECT_THAT([&] { FolderSource folder(files); }, ThrowsMessage<UserError>(HasSubstr(message)));
  };
  const FileSource empty = FileSource::text("");
  for (const char* name : {"", "/a", "a/", "a//b"}) refused({{name, empty}}, "has an empty part");
  refused({{"a", empty}, {"a", empty}}, "the file name \"a\" occurs twice");
  refused({{"a/b/c", empty}, {"a/b", empty}}, "\"a/b\" is both a file and the folder of \"a/b/c\"");
}

// Removes the file and its empty parents, because a folder in memory has no empty folders.
void remove_with_empty_folders(std::filesystem::path path) {
  std::filesystem::remove(path);
  for (path = path.parent_path(); std::filesystem::is_empty(path); path = path.parent_path())
    std::filesystem::remove(path);
}

// Four IDX files, and image folders.
TEST(ImageFolder, is_read_from_memory_as_from_disk) {
  const std::string images = test::idx_text(8, {2, 1, 2}, "abcd");
  const std::string labels = test::idx_text(8, {2}, std::string("\0\1", 2));
  const std::string colour = test::get_file(test::source_path("tests/unit/io/fixtures/colour.jpg"));
  const std::vector<std::map<std::string, Bytes>> folders = {
      {{"train-images-idx3-ubyte", to_bytes(images)},
       {"train-labels-idx1-ubyte.gz", to_bytes(gzipped(labels))},
       {"t10k-images", to_bytes(images)},
       {"t10k-labels", to_bytes(labels)},
       {"classes.txt", to_bytes("cat\ndog\n")}},
      {{"train/cat/1.jpg", to_bytes(colour)},
       {"train/cat/2.JPG", to_bytes(colour)},
       {"train/dog/1.jpg", to_bytes(colour)},
       {"train/dog/notes.txt", to_bytes("no picture")},
       {"test/dog/3.jpg", to_bytes(colour)},
       {".hidden/1.jpg", to_bytes("")}}};
  const auto read = [](const FolderSource& folder) {
    const LabeledImages data = read_image_folder(folder);
    std::string all = to_string(data.image_shape) + std::to_string(data.skipped);
    for (const std::string& name : data.class_names) all += "," + name;
    for (const ImageSet* set : {&data.train, &data.test})
      all += bits_of_range(set->images) + bits_of_range(set->labels);
    return all;
  };
  for (const auto& files : folders) {
    const TempDir disk;
    for (const auto& [name, bytes] : files) {
      put_file_in_folders(disk / name, bytes);
    }
    EXPECT_EQ(read({files, disk.str()}), read(disk.str()));
    // With one file cut short, and without it.
    for (const auto& [name, bytes] : files) {
      auto fewer = files;
      fewer[name].resize(bytes.size() / 2);
      write_file_atomically(disk / name, fewer[name]);
      const auto outcome = [&](const FolderSource& folder) {
        try {
          return read(folder);
        } catch (const IoError& error) {
          return error.message();
        }
      };
      EXPECT_EQ(outcome({fewer, disk.str()}), outcome(disk.str())) << name;
      fewer.erase(name);
      remove_with_empty_folders(disk / name);
      EXPECT_EQ(outcome({fewer, disk.str()}), outcome(disk.str())) << name;
      put_file_in_folders(disk / name, bytes);
    }
  }
}

}  // namespace
}  // namespace tensorgrad
