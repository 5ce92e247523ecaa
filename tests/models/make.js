// make.js FOLDER > expected.tsv - what onnxruntime makes of the models of models.tsv, whose files are in FOLDER (fetch.sh).
//
// Wants the npm package onnxruntime-node 1.30.0 where Node finds it (NODE_PATH). Inputs are pseudo-random numbers that
// models_test.c makes, too; of every output its largest magnitude and some of its values are kept.
'use strict';
const fs = require('fs'), path = require('path'), ort = require('onnxruntime-node');
const SAMPLES = 24;

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let k = 0; k < 8; k++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (~crc >>> 0).toString(16).padStart(8, '0');
}

// xorshift64, 24 bits a number
function numbers(count, seed, low, high) {
  const mask = (1n << 64n) - 1n, out = new Float32Array(count);
  let state = (BigInt(seed) * 0x9e3779b97f4a7c15n + 0x2545f4914f6cdd1dn) & mask;
  for (let i = 0; i < count; i++) {
    state ^= (state << 13n) & mask;
    state ^= state >> 7n;
    state ^= (state << 17n) & mask;
    out[i] = Math.fround(low + (high - low) * Number(state >> 40n) / 16777216);
  }
  return out;
}

function tensor(spec, place) {
  const [, name, shape, values] = spec.match(/^(.*)=([0-9x]+|scalar)=(.*)$/);
  const dims = shape === 'scalar' ? [] : shape.split('x').map(Number);
  const count = dims.reduce((a, b) => a * b, 1), range = values.match(/^(-?[0-9]+)\.\.(-?[0-9]+)$/);
  if (values === 'zeros') return [name, new ort.Tensor('float32', new Float32Array(count), dims)];
  if (range) return [name, new ort.Tensor('float32', numbers(count, place + 1, Number(range[1]), Number(range[2])), dims)];
  return [name, new ort.Tensor('int64', BigInt64Array.from([BigInt(values)]), dims)];
}

(async () => {
  const lines = ['# made by make.js with onnxruntime-node ' + require('onnxruntime-node/package.json').version];
  for (const row of fs.readFileSync(path.join(__dirname, 'models.tsv'), 'utf8').trim().split('\n').slice(1)) {
    const [name, , file, inputs] = row.split('\t');
    const model = fs.readFileSync(path.join(process.argv[2], path.basename(file)));
    const session = await ort.InferenceSession.create(model, { logSeverityLevel: 3 });
    const results = await session.run(Object.fromEntries(inputs.split(' ').map(tensor)));
    lines.push(['model', name, model.length, crc32(model)].join('\t'));
    session.outputNames.forEach((output, k) => {
      const { data, dims } = results[output];
      let most = 0, largest = 0;
      data.forEach((x, i) => { most = Math.max(most, Math.abs(x)); if (x > data[largest]) largest = i; });
      const places = [largest];
      for (let i = 0; i < SAMPLES; i++) places.push(Number(BigInt(i) * 2654435761n % BigInt(data.length)));
      lines.push(['output', k, dims.join('x'), most.toPrecision(9), places.map(i => i + ':' + data[i].toPrecision(9)).join(' ')].join('\t'));
    });
  }
  const text = lines.join('\n') + '\n';
  process.stdout.write(text + 'crc32\t' + crc32(Buffer.from(text)) + '\n');
})();
