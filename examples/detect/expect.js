// expect.js DETECT MODELS PHOTO... > expected.json - what `detect` finds when onnxruntime computes the networks.
//
// DETECT: the program; MODELS: the folder that models.sh has filled. Wants the npm package onnxruntime-node 1.30.0 where Node finds
// it (NODE_PATH). detect writes what goes into its networks - pictures, where they have AIPP - onnxruntime computes what comes out, and detect
// works on that.
'use strict';
const fs = require('fs'), os = require('os'), path = require('path'), { execFileSync } = require('child_process');
const ort = require('onnxruntime-node');
const networks = {
  face_back: ['face_detection_back_256x256_barracuda.onnx', 'input:0', [1, 256, 256, 3]],
  text_lines: ['ch_PP-OCRv4_det_infer.onnx', 'x', [1, 3, 640, 640]],
  text_turn: ['ch_ppocr_mobile_v2.0_cls_infer.onnx', 'x', [1, 3, 48, 192]],
  text_read_320: ['ch_PP-OCRv4_rec_infer.onnx', 'x', [1, 3, 48, 320]],
  text_read_960: ['ch_PP-OCRv4_rec_infer.onnx', 'x', [1, 3, 48, 960]],
};

// YUV 4:2:0 with interleaved chroma to red, green, blue, by the matrix of the .aipp files: whole numbers from 0 to 255.
function toRgb(nv12, width, height) {
  const out = new Float32Array(3 * width * height), clamp = (x) => Math.min(Math.max(x >> 8, 0), 255);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const luma = nv12[y * width + x], at = (height + (y >> 1)) * width + (x & ~1), u = nv12[at] - 128, v = nv12[at + 1] - 128;
      out.set([clamp(256 * luma + 359 * v), clamp(256 * luma - 88 * u - 183 * v), clamp(256 * luma + 454 * u)], 3 * (y * width + x));
    }
  return out;
}

// What AIPP does in the compiled networks.
const prepare = {
  face_back: (bytes) => toRgb(bytes, 256, 256).map((x) => x / 127.5 - 1),
  text_lines: (bytes) => {
    const mean = [0.485, 0.456, 0.406], deviation = [0.229, 0.224, 0.225], rgb = toRgb(bytes, 640, 640), plane = 640 * 640;
    return Float32Array.from({ length: 3 * plane }, (_, i) => {
      const c = Math.floor(i / plane);
      return (rgb[3 * (i % plane) + 2 - c] / 255 - mean[c]) / deviation[c];
    });
  },
};

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let k = 0; k < 8; k++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (~crc >>> 0).toString(16).padStart(8, '0');
}

(async () => {
  const [detect, models, ...photos] = process.argv.slice(2), scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'detect-'));
  const run = (...options) => execFileSync(detect, ['--models', models, '--out', scratch, ...options, ...photos]);
  const json = path.join(scratch, 'found.json'), sessions = {};
  run('--keep', scratch);
  for (const file of fs.readdirSync(scratch).filter((name) => name.endsWith('.in.bin'))) {
    const name = file.split('.')[0], [onnx, input, dims] = networks[name];
    sessions[name] = sessions[name] || (await ort.InferenceSession.create(path.join(models, onnx), { logSeverityLevel: 3 }));
    const bytes = fs.readFileSync(path.join(scratch, file));
    const data = prepare[name] ? prepare[name](bytes) : new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    const results = await sessions[name].run({ [input]: new ort.Tensor('float32', data, dims) });
    sessions[name].outputNames.forEach((output, k) => {
      const { buffer, byteOffset, byteLength } = results[output].data;
      fs.writeFileSync(path.join(scratch, file.replace('in.bin', `out${k}.bin`)), Buffer.from(buffer, byteOffset, byteLength));
    });
  }
  run('--replay', scratch, '--json', json);
  const found = JSON.parse(fs.readFileSync(json, 'utf8'));
  found.forEach((entry, i) => { entry.crc32 = crc32(fs.readFileSync(photos[i])); });
  const lines = found.map(({ photo, crc32: crc, found: things }) =>
    `  {"photo": "${photo}", "crc32": "${crc}", "found": [${things.map((t) => '\n    ' + JSON.stringify(t)).join(',')}]}`);
  process.stdout.write(`[\n${lines.join(',\n')}\n]\n`);
  fs.rmSync(scratch, { recursive: true });
})();
