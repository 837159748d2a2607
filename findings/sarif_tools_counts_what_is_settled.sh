#!/usr/bin/env bash
# sarif-tools 3.0.5: sarif --check, summary and csv.
# Behaviour: a result with suppressions, and one whose baselineState is "absent" (it is no longer there), count as errors
#   and fail `sarif --check error`; neither column nor option of these commands tells them apart. A result without a
#   level has that of its rule, as SARIF says, and kind "pass" counts as none.
# One would have guessed: what the file says is suppressed or gone does not fail a build.
# Concerns: whoever checks SARIF in CI with sarif-tools after a tool that writes suppressions or baseline states.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check sarif-tools==3.0.5
packages/bin/python - <<'PYTHON'
import json

WHERE = [{"physicalLocation": {"artifactLocation": {"uri": "a.json"}, "region": {"startLine": 1}}}]


def write(name, **fields):
    result = {"ruleId": "R", "ruleIndex": 0, "message": {"text": name}, "locations": WHERE, **fields}
    rule = {"id": "R", "defaultConfiguration": {"level": "error"}}
    run = {"tool": {"driver": {"name": "tool", "rules": [rule]}}, "results": [result]}
    with open(f"{name}.sarif", "w") as file:
        json.dump({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}, file)


write("plain")
write("suppressed", suppressions=[{"kind": "inSource", "status": "accepted"}])
write("absent", baselineState="absent")
write("pass", kind="pass")
PYTHON
for name in plain suppressed absent pass; do
    status=0
    packages/bin/sarif --check error csv -o "$name.csv" "$name.sarif" >/dev/null || status=$?
    echo "$name: status $status, $(tail -1 "$name.csv")"
    if [ "$name" = pass ]; then [ "$status" = 0 ]; else [ "$status" = 1 ] && grep -q ",error,R,$name," "$name.csv"; fi
done
