#!/usr/bin/env bash
# onnxruntime-genai-directml 0.13.1 and 0.14.1, its newest, for Windows: their requirements.
# Behaviour: 0.14.1 (like 0.14.0) requires onnxruntime-directml>=1.26.0, of which the newest release is 1.24.4. So pip
#   cannot install it, and without a version it installs 0.13.1 or older.
# One would have guessed: the newest wheel of a package installs on the platform that it is for.
# Concerns: whoever runs language models through DirectML from Python, and pins the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
resolve() { # PACKAGE: what pip would install for 64-bit Windows and Python 3.12
    "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --dry-run --ignore-installed --target there \
        --platform win_amd64 --python-version 3.12 --only-binary :all: --report report.json "$1" 2>error.txt
}
"${PYTHON:-python3}" -m pip --version
if resolve onnxruntime-genai-directml==0.14.1; then
    echo "0.14.1 can be installed now"
    exit 1
fi
grep -o "onnxruntime-directml>=1.26.0 (from onnxruntime-genai-directml)" error.txt | head -1
newest=$(grep -o "from versions: [^)]*" error.txt | head -1)
echo "onnxruntime-directml, ${newest##*, }"
[ "${newest##*, }" = 1.24.4 ]
resolve onnxruntime-genai-directml
"${PYTHON:-python3}" - <<'PYTHON'
import json

chosen = {each["metadata"]["name"]: each["metadata"]["version"] for each in json.load(open("report.json"))["install"]}
print({name: version for name, version in chosen.items() if name.startswith("onnxruntime")})
assert chosen["onnxruntime-genai-directml"] == "0.13.1"
assert chosen["onnxruntime-directml"] == "1.24.4"
PYTHON
