// SPDX-License-Identifier: MIT
// The functions of browser.js that browser.cpp calls. WebGPU objects are numbers above 0. Sizes and
// offsets are doubles, as in JavaScript. Functions that take an `id` post one event with that id.
#pragma once

extern "C" {

// Kinds of events.
enum {
  kTgEventDone = 0,
  kTgEventFailed = 1,
  kTgEventDestroyed = 2,  // for id `lost`: the device was destroyed deliberately
  kTgEventDropped = 3     // the device was released meanwhile; the event must not be delivered
};

struct TgEvent {
  int id;
  int kind;
  int object;     // the created object, or 0
  char* message;  // null, or to be freed by the receiver
};

struct TgAdapterInfo {
  char* texts[4];  // vendor, architecture, device, description; to be freed by the receiver
  int software;
  int least_subgroup, most_subgroup;
};

// Returns false if there is no event.
bool tg_js_next_event(TgEvent* out);
// Suspends the caller until there is an event, or at most for `milliseconds` unless negative. The
// only function that suspends.
void tg_js_sleep(double milliseconds);

bool tg_js_has_webgpu();
void tg_js_add_ref(int object);
void tg_js_release(int object);
void tg_js_request_adapter(int id);
void tg_js_adapter_info(int adapter, TgAdapterInfo* out);
// Writes the limits of an adapter or a device: one double per name in browser.js, -1 if the object
// has no such limit.
void tg_js_limits(int object, double* out);
bool tg_js_has_feature(int object, const char* name);
// `features` is separated by commas. `limits` is as in tg_js_limits(), with -1 for the default.
// Posts an event with id `lost` or `error` whenever the device is lost or has an error.
void tg_js_request_device(int adapter, const char* features, const double* limits, int id, int lost,
                          int error);
int tg_js_queue(int device);
void tg_js_destroy(int device);

int tg_js_create_buffer(int device, double size, int usage, const char* label, int label_size);
double tg_js_buffer_size(int buffer);
int tg_js_buffer_usage(int buffer);
void tg_js_map(int buffer, int mode, double offset, double size, int id);
void tg_js_read_mapped(int buffer, double offset, double size, void* out);
void tg_js_unmap(int buffer);

int tg_js_create_module(int device, const char* code, int size, const char* label, int label_size);
// An entry has three numbers:
// - the buffer type: 0 for uniform, 1 for storage, 2 for read-only storage
// - whether the offset is dynamic
// - the minimum size of the binding
int tg_js_create_group_layout(int device, const int* entries, int count, const char* label,
                              int label_size);
int tg_js_create_pipeline_layout(int device, const int* layouts, int count);
// An entry has three numbers: buffer, offset, size.
int tg_js_create_group(int device, int layout, const double* entries, int count, const char* label,
                       int label_size);
int tg_js_create_pipeline(int device, int layout, int module, const char* label, int label_size);
void tg_js_create_pipeline_async(int device, int layout, int module, const char* label,
                                 int label_size, int id);
int tg_js_create_queries(int device, int count);

int tg_js_create_encoder(int device);
// `queries` is 0 if the pass is not timed.
int tg_js_begin_pass(int encoder, int queries, int begin, int end);
void tg_js_set_pipeline(int pass, int pipeline);
// `offset` is the dynamic offset, or negative if there is none.
void tg_js_set_group(int pass, int index, int group, double offset);
void tg_js_dispatch(int pass, int x, int y, int z);
void tg_js_end_pass(int pass);
void tg_js_copy_buffer(int encoder, int from, double from_offset, int to, double to_offset,
                       double size);
void tg_js_resolve_queries(int encoder, int queries, int first, int count, int to, double offset);
int tg_js_finish(int encoder);
void tg_js_submit(int queue, const int* commands, int count);
void tg_js_write_buffer(int queue, int buffer, double offset, const void* data, double size);
void tg_js_on_work_done(int queue, int id);
void tg_js_push_scope(int device, int filter);
void tg_js_pop_scope(int device, int id);

}  // extern "C"
