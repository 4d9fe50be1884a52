// SPDX-License-Identifier: MIT
// navigator.gpu for browser.cpp; browser_js.h says what each function does. A library of emscripten
// (--js-library). Promises post events, which C++ takes when it is ready for them: JavaScript never
// calls into wasm, and only tg_js_sleep() suspends it.
const library = {
  $tgGpu__deps: ['$UTF8ToString', '$stringToNewUTF8'],
  $tgGpu: {
    // By number. `owned`: destroyed with the last reference, as the garbage collector does not know
    // how much memory of the GPU it would free. `device`: the entry of the device that has it.
    objects: [{}],
    unused: [],
    events: [],
    wake: null,
    // The limits in the order of browser.cpp.
    limits: [
      'maxTextureDimension1D', 'maxTextureDimension2D', 'maxTextureDimension3D',
      'maxTextureArrayLayers', 'maxBindGroups', 'maxBindGroupsPlusVertexBuffers',
      'maxBindingsPerBindGroup', 'maxDynamicUniformBuffersPerPipelineLayout',
      'maxDynamicStorageBuffersPerPipelineLayout', 'maxSampledTexturesPerShaderStage',
      'maxSamplersPerShaderStage', 'maxStorageBuffersPerShaderStage',
      'maxStorageTexturesPerShaderStage', 'maxUniformBuffersPerShaderStage',
      'maxUniformBufferBindingSize', 'maxStorageBufferBindingSize',
      'minUniformBufferOffsetAlignment', 'minStorageBufferOffsetAlignment', 'maxVertexBuffers',
      'maxBufferSize', 'maxVertexAttributes', 'maxVertexBufferArrayStride',
      'maxInterStageShaderVariables', 'maxColorAttachments', 'maxColorAttachmentBytesPerSample',
      'maxComputeWorkgroupStorageSize', 'maxComputeInvocationsPerWorkgroup',
      'maxComputeWorkgroupSizeX', 'maxComputeWorkgroupSizeY', 'maxComputeWorkgroupSizeZ',
      'maxComputeWorkgroupsPerDimension',
    ],
    add(object, {owned = false, device} = {}) {
      const number = tgGpu.unused.pop() ?? tgGpu.objects.length;
      tgGpu.objects[number] = {object, references: 1, owned, device};
      return number;
    },
    get: (number) => tgGpu.objects[number].object,
    post(id, kind, {object = 0, message = '', device} = {}) {
      tgGpu.events.push({id, kind, object, message, device});
      tgGpu.wake?.();
    },
    // Posts what the promise comes to; `found` makes an object's number of its value.
    settle(promise, id, device, found = () => 0) {
      promise.then((value) => tgGpu.post(id, 0, {object: found(value), device}),
        (error) => tgGpu.post(id, 1, {message: error?.message || String(error), device}));
    },
    text: (pointer, size) => UTF8ToString(pointer >>> 0, size),
    ints: (pointer, count) => HEAP32.subarray(pointer >>> 2, (pointer >>> 2) + count),
    doubles: (pointer, count) => HEAPF64.subarray(pointer >>> 3, (pointer >>> 3) + count),
    pipeline: (layout, module, label, labelSize) => ({
      layout: tgGpu.get(layout),
      compute: {module: tgGpu.get(module), entryPoint: 'main'},
      label: tgGpu.text(label, labelSize),
    }),
  },

  tg_js_next_event: (out) => {
    const event = tgGpu.events.shift();
    if (!event) return 0;
    const message = event.message ? stringToNewUTF8(event.message) : 0;
    // What was to hear of it may be gone with the device.
    const kind = event.device?.released ? 3 : event.kind;
    HEAP32.set([event.id, kind, event.object, message], out >>> 2);
    return 1;
  },
  tg_js_sleep__async: 'auto',
  tg_js_sleep__sig: 'vd',
  tg_js_sleep: (milliseconds) => new Promise((resolve) => {
    if (tgGpu.events.length) return resolve();
    const timer = milliseconds < 0 ? 0 : setTimeout(() => tgGpu.wake?.(), milliseconds);
    tgGpu.wake = () => {
      tgGpu.wake = null;
      clearTimeout(timer);
      resolve();
    };
  }),

  // Without JSPI nothing can wait for it.
  tg_js_has_webgpu: () => !!globalThis.navigator?.gpu && 'Suspending' in WebAssembly,
  tg_js_add_ref: (number) => {
    tgGpu.objects[number].references++;
  },
  tg_js_release: (number) => {
    const entry = tgGpu.objects[number];
    if (--entry.references > 0) return;
    entry.released = true;
    if (entry.owned) entry.object.destroy();
    tgGpu.objects[number] = null;
    tgGpu.unused.push(number);
  },
  tg_js_request_adapter: (id) => {
    const adapter = navigator.gpu.requestAdapter({powerPreference: 'high-performance'});
    tgGpu.settle(adapter, id, undefined, (found) => found ? tgGpu.add(found) : 0);
  },
  tg_js_adapter_info: (adapter, out) => {
    const info = tgGpu.get(adapter).info;
    const software = info.isFallbackAdapter || /swiftshader|llvmpipe/i.test(info.architecture);
    const texts = [info.vendor, info.architecture, info.device, info.description];
    HEAP32.set([...texts.map((text) => stringToNewUTF8(text || '')), software ? 1 : 0,
      info.subgroupMinSize || 0, info.subgroupMaxSize || 0], out >>> 2);
  },
  tg_js_limits: (number, out) => {
    const limits = tgGpu.get(number).limits;
    HEAPF64.set(tgGpu.limits.map((name) => limits[name] ?? -1), out >>> 3);
  },
  tg_js_has_feature: (number, name) => tgGpu.get(number).features.has(tgGpu.text(name)),
  tg_js_request_device: (adapter, features, limits, id, lost, error) => {
    const requiredLimits = {};
    tgGpu.doubles(limits, tgGpu.limits.length).forEach((value, i) => {
      if (value >= 0) requiredLimits[tgGpu.limits[i]] = value;
    });
    const requiredFeatures = tgGpu.text(features).split(',').filter((name) => name);
    const device = tgGpu.get(adapter).requestDevice(
      {requiredFeatures, requiredLimits, label: 'tensorgrad'});
    tgGpu.settle(device, id, undefined, (made) => {
      const number = tgGpu.add(made, {owned: true});
      const device = tgGpu.objects[number];
      made.lost.then((info) => tgGpu.post(lost, info.reason === 'destroyed' ? 2 : 1,
        {message: info.message || 'the browser took it away', device}));
      made.onuncapturederror = (event) => {
        event.preventDefault();
        tgGpu.post(error, 1, {message: event.error.message || 'unknown error', device});
      };
      return number;
    });
  },
  tg_js_queue: (device) =>
    tgGpu.add(tgGpu.get(device).queue, {device: tgGpu.objects[device]}),
  tg_js_destroy: (device) => tgGpu.get(device).destroy(),

  tg_js_create_buffer: (device, size, usage, label, labelSize) =>
    tgGpu.add(tgGpu.get(device).createBuffer({size, usage, label: tgGpu.text(label, labelSize)}),
      {owned: true, device: tgGpu.objects[device]}),
  tg_js_buffer_size: (buffer) => tgGpu.get(buffer).size,
  tg_js_buffer_usage: (buffer) => tgGpu.get(buffer).usage,
  tg_js_map: (buffer, mode, offset, size, id) =>
    tgGpu.settle(tgGpu.get(buffer).mapAsync(mode, offset, size), id,
      tgGpu.objects[buffer].device),
  tg_js_read_mapped: (buffer, offset, size, out) =>
    HEAPU8.set(new Uint8Array(tgGpu.get(buffer).getMappedRange(offset, size)), out >>> 0),
  tg_js_unmap: (buffer) => tgGpu.get(buffer).unmap(),

  tg_js_create_module: (device, code, size, label, labelSize) =>
    tgGpu.add(tgGpu.get(device).createShaderModule(
      {code: tgGpu.text(code, size), label: tgGpu.text(label, labelSize)})),
  tg_js_create_group_layout: (device, entries, count, label, labelSize) => {
    const numbers = tgGpu.ints(entries, 3 * count);
    const types = ['uniform', 'storage', 'read-only-storage'];
    const list = Array.from({length: count}, (_, i) => {
      const [type, hasDynamicOffset, minBindingSize] = numbers.subarray(3 * i, 3 * i + 3);
      return {
        binding: i,
        visibility: 4,  // GPUShaderStage.COMPUTE
        buffer: {type: types[type], hasDynamicOffset: !!hasDynamicOffset, minBindingSize},
      };
    });
    return tgGpu.add(tgGpu.get(device).createBindGroupLayout(
      {entries: list, label: tgGpu.text(label, labelSize)}));
  },
  tg_js_create_pipeline_layout: (device, layouts, count) =>
    tgGpu.add(tgGpu.get(device).createPipelineLayout(
      {bindGroupLayouts: Array.from(tgGpu.ints(layouts, count), tgGpu.get)})),
  tg_js_create_group: (device, layout, entries, count, label, labelSize) => {
    const numbers = tgGpu.doubles(entries, 3 * count);
    const list = Array.from({length: count}, (_, i) => {
      const [buffer, offset, size] = numbers.subarray(3 * i, 3 * i + 3);
      return {binding: i, resource: {buffer: tgGpu.get(buffer), offset, size}};
    });
    return tgGpu.add(tgGpu.get(device).createBindGroup(
      {layout: tgGpu.get(layout), entries: list, label: tgGpu.text(label, labelSize)}));
  },
  tg_js_create_pipeline: (device, layout, module, label, labelSize) =>
    tgGpu.add(tgGpu.get(device).createComputePipeline(
      tgGpu.pipeline(layout, module, label, labelSize))),
  tg_js_create_pipeline_async: (device, layout, module, label, labelSize, id) =>
    tgGpu.settle(tgGpu.get(device).createComputePipelineAsync(
      tgGpu.pipeline(layout, module, label, labelSize)), id, tgGpu.objects[device],
    (made) => tgGpu.add(made)),
  tg_js_create_queries: (device, count) =>
    tgGpu.add(tgGpu.get(device).createQuerySet({type: 'timestamp', count}), {owned: true}),

  tg_js_create_encoder: (device) => tgGpu.add(tgGpu.get(device).createCommandEncoder()),
  tg_js_begin_pass: (encoder, queries, begin, end) =>
    tgGpu.add(tgGpu.get(encoder).beginComputePass(queries ? {
      timestampWrites: {
        querySet: tgGpu.get(queries),
        beginningOfPassWriteIndex: begin,
        endOfPassWriteIndex: end,
      },
    } : {})),
  tg_js_set_pipeline: (pass, pipeline) => tgGpu.get(pass).setPipeline(tgGpu.get(pipeline)),
  tg_js_set_group: (pass, index, group, offset) =>
    tgGpu.get(pass).setBindGroup(index, tgGpu.get(group), offset < 0 ? [] : [offset]),
  tg_js_dispatch: (pass, x, y, z) => tgGpu.get(pass).dispatchWorkgroups(x, y, z),
  tg_js_end_pass: (pass) => tgGpu.get(pass).end(),
  tg_js_copy_buffer: (encoder, from, fromOffset, to, toOffset, size) =>
    tgGpu.get(encoder).copyBufferToBuffer(tgGpu.get(from), fromOffset, tgGpu.get(to), toOffset,
      size),
  tg_js_resolve_queries: (encoder, queries, first, count, to, offset) =>
    tgGpu.get(encoder).resolveQuerySet(tgGpu.get(queries), first, count, tgGpu.get(to), offset),
  tg_js_finish: (encoder) => tgGpu.add(tgGpu.get(encoder).finish()),
  tg_js_submit: (queue, commands, count) =>
    tgGpu.get(queue).submit(Array.from(tgGpu.ints(commands, count), tgGpu.get)),
  tg_js_write_buffer: (queue, buffer, offset, data, size) =>
    tgGpu.get(queue).writeBuffer(tgGpu.get(buffer), offset, HEAPU8, data >>> 0, size),
  tg_js_on_work_done: (queue, id) =>
    tgGpu.settle(tgGpu.get(queue).onSubmittedWorkDone(), id, tgGpu.objects[queue].device),
  tg_js_push_scope: (device, filter) =>
    tgGpu.get(device).pushErrorScope(['', 'validation', 'out-of-memory', 'internal'][filter]),
  tg_js_pop_scope: (device, id) => {
    const scope = tgGpu.get(device).popErrorScope().then((error) => {
      if (error) throw error;
    });
    tgGpu.settle(scope, id, tgGpu.objects[device]);
  },
};
autoAddDeps(library, '$tgGpu');
addToLibrary(library);
