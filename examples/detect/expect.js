// expect.js DETECT MODELS PHOTO... > expected.json - what `detect` finds when onnxruntime computes the networks.
//
// DETECT: the program; MODELS: the folder that models.sh has filled. Wants the npm package onnxruntime-node 1.30.0 where Node finds
// it (NODE_PATH). detect writes what goes into its networks, onnxruntime computes what comes out, and detect works on that.
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
    const data = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
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
    `  {"photo": "${photo}", "crc32": "${crc}", "found": [\n${things.map((t) => '    ' + JSON.stringify(t)).join(',\n')}\n  ]}`);
  process.stdout.write(`[\n${lines.join(',\n')}\n]\n`);
  fs.rmSync(scratch, { recursive: true });
})();
