// Attention with a dense mask by ONNX Runtime, forward only. A peer of `cobble bench`; bench/cobble/peers.hpp says how it
// is called. The model is written here: MatMul, Mul, Add, Softmax, MatMul.

'use strict';

const fs = require('fs');
const path = require('path');

const kInstalled = path.join(__dirname, '..', '..', 'build', 'peers', 'node_modules');  // by bench/peers/install
const kFloat = 1;

function loadRuntime() {
  for (const paths of [undefined, {paths: [kInstalled]}]) {
    try {
      const file = require.resolve('onnxruntime-node', paths);
      let folder = path.dirname(file);
      while (!fs.existsSync(path.join(folder, 'package.json'))) folder = path.dirname(folder);
      return {runtime: require(file), version: JSON.parse(fs.readFileSync(path.join(folder, 'package.json'))).version};
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  throw new Error('the package onnxruntime-node is not installed (bench/peers/install puts it into build/peers)');
}

// ------------------------------------------------------------------------------------------------- protocol buffers

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}
const integer = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);
const string = (field, value) => bytes(field, Buffer.from(value));
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));

// The numbers are those of onnx.proto.
function node(type, inputs, output, ...attributes) {
  return message(1, ...inputs.map((name) => string(1, name)), string(2, output), string(4, type), ...attributes);
}
const kIntType = 2;
const kIntsType = 7;
const axisAttribute = (axis) => message(5, string(1, 'axis'), integer(3, axis), integer(20, kIntType));
const permutation = (axes) =>
    message(5, string(1, 'perm'), ...axes.map((axis) => integer(8, axis)), integer(20, kIntsType));
function value(field, name, shape) {
  const dimensions = shape.map((size) => message(1, integer(1, size)));
  return message(field, string(1, name), message(2, message(1, integer(1, kFloat), message(2, ...dimensions))));
}
function scalar(name, number) {
  const raw = Buffer.alloc(4);
  raw.writeFloatLE(number);
  return message(5, integer(2, kFloat), string(8, name), bytes(9, raw));
}

function attentionModel(shapes, scale) {
  const graph = message(7,
      node('Transpose', ['key'], 'key_transposed', permutation([0, 1, 3, 2])),
      node('MatMul', ['query', 'key_transposed'], 'products'),
      node('Mul', ['products', 'scale'], 'scores'),
      node('Add', ['scores', 'bias'], 'masked'),
      node('Softmax', ['masked'], 'probabilities', axisAttribute(3)),
      node('MatMul', ['probabilities', 'value'], 'output'),
      string(2, 'attention'),
      scalar('scale', scale),
      ...['query', 'key', 'value', 'bias'].map((name) => value(11, name, shapes[name])),
      value(12, 'output', shapes.output));
  const kFormat = 8;
  const kOperators = 17;
  return Buffer.concat([integer(1, kFormat), graph, message(8, string(1, ''), integer(2, kOperators))]);
}

// ---------------------------------------------------------------------------------------------------------- tensors

function readNpy(file) {
  const data = fs.readFileSync(file);
  const long = data[6] > 1;
  const begin = (long ? 12 : 10) + (long ? data.readUInt32LE(8) : data.readUInt16LE(8));
  const header = data.toString('latin1', 0, begin);
  const shape = /'shape': \(([^)]*)\)/.exec(header)[1].split(',').filter((size) => size.trim()).map(Number);
  return {type: /'descr': '([^']*)'/.exec(header)[1], shape, data: data.subarray(begin)};
}

function readFloats(file) {
  const array = readNpy(file);
  if (array.type !== '<f4') throw new Error(`${file}: f32 is what the model takes, found ${array.type}`);
  return {shape: array.shape, data: new Float32Array(new Uint8Array(array.data).buffer)};
}

function writeNpy(file, shape, data) {
  let header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  header += ' '.repeat(64 - (10 + header.length + 1) % 64) + '\n';
  const start = Buffer.alloc(10);
  start.write('\x93NUMPY\x01\x00', 'latin1');
  start.writeUInt16LE(header.length, 8);
  fs.writeFileSync(file, Buffer.concat([start, Buffer.from(header, 'latin1'),
                                        Buffer.from(data.buffer, data.byteOffset, data.byteLength)]));
}

// 0 within the pattern, else what exp makes 0 of (not -infinity: a row without pairs would be NaN).
function biasOf(file) {
  const kMasked = -1e30;
  const mask = readNpy(file);
  const bias = new Float32Array(mask.data.length);
  for (let i = 0; i < bias.length; ++i) bias[i] = mask.data[i] ? 0 : kMasked;
  return {shape: [1, 1, ...mask.shape], data: bias};
}

// Medians, as bench/cobble/statistics.cpp measures them.
async function measure(seconds, work) {
  const timed = async () => {
    const start = process.hrtime.bigint();
    await work();
    return Number(process.hrtime.bigint() - start) / 1e6;
  };
  const least = await timed() > 1e3 * seconds ? 1 : 3;
  const times = [];
  for (let total = 0; times.length < least || (total < 1e3 * seconds && times.length < 50);) {
    times.push(await timed());
    total += times[times.length - 1];
  }
  times.sort((a, b) => a - b);
  return (times[Math.floor((times.length - 1) / 2)] + times[Math.floor(times.length / 2)]) / 2;
}

async function main(folder) {
  const {runtime} = loadRuntime();
  const problem = JSON.parse(fs.readFileSync(path.join(folder, 'problem.json')));
  const arrays = {bias: biasOf(path.join(folder, 'mask.npy'))};
  for (const name of ['query', 'key', 'value']) arrays[name] = readFloats(path.join(folder, `${name}.npy`));
  const shapes = Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, array.shape]));
  shapes.output = [...shapes.query.slice(0, 3), shapes.value[3]];
  const session = await runtime.InferenceSession.create(
      attentionModel(shapes, problem.scale), {intraOpNumThreads: problem.threads, interOpNumThreads: 1});
  const inputs = {};
  for (const [name, array] of Object.entries(arrays)) {
    inputs[name] = new runtime.Tensor('float32', array.data, array.shape);
  }
  let output = null;
  const forward_ms = await measure(problem.seconds, async () => {
    output = (await session.run(inputs)).output;
  });
  writeNpy(path.join(folder, 'output.npy'), shapes.output, output.data);
  console.log(JSON.stringify({forward_ms, backward_ms: null}));
}

if (process.argv[2] === '--version') {
  try {
    console.log(loadRuntime().version);
  } catch (error) {
    console.error(error.message.split('\n')[0]);
    process.exit(1);
  }
} else {
  main(process.argv[2]).catch((error) => {
    console.error(error.message.split('\n')[0]);
    process.exit(1);
  });
}
