// SPDX-License-Identifier: MIT
// Trains the same model on the CPU and on the GPU that the package `webgpu` finds, and prints what
// the test compares: the devices, the losses and whether checkSupport() agrees.
import { create, globals } from 'webgpu';

Object.assign(globalThis, globals);
navigator.gpu = create([]);
const { checkSupport, compile, Linear, Module, mse, optim, tanh } = await import(process.argv[2]);

class Mlp extends Module {
  in = new Linear(1, 64);
  out = new Linear(64, 1);
  forward(x) { return this.out.forward(tanh(this.in.forward(x))); }
}
const x = Float32Array.from({ length: 32 }, (_, i) => i / 8 - 2);
const y = x.map(Math.sin);
const train = async (kind) => {
  const trainer = await compile({
    model: new Mlp(), loss: (net, batch) => mse(net.forward(batch.x), batch.y), seed: 1,
    inputs: { x: [32, 1], y: [32, 1] }, optimizer: optim.adam({ lr: 0.01 }),
    device: { kind, allowSoftware: true } });
  const losses = [];
  for (let i = 0; i < 50; ++i) losses.push((await trainer.step({ x, y })).loss);
  return { device: trainer.device, losses };
};
const { device } = await checkSupport({ allowSoftware: true });
console.log(JSON.stringify({ supported: device, cpu: await train('cpu'), gpu: await train('webgpu') }));
process.exit();  // the GPU keeps node running
