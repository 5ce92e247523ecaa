# Sourced by the scripts here: small checks that count failures.
set -u
failures=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

pass() { echo "ok: $1"; }
fail() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}
# expect STATUS NAME COMMAND...: the exit status is as said; output is kept in $work/out.
expect() {
    local status=$1 name=$2 got=0
    shift 2
    "$@" >"$work/out" 2>&1 || got=$?
    if [ "$got" -eq "$status" ]; then pass "$name"; else
        fail "$name: exit status $got, expected $status"
        sed 's/^/    /' "$work/out" | head -40
    fi
}
# says NAME TEXT: the last output contains TEXT.
says() {
    if grep -qF -- "$2" "$work/out"; then pass "$1"; else
        fail "$1: \"$2\" is not in the output"
        sed 's/^/    /' "$work/out" | head -40
    fi
}
finish() {
    echo "$failures failed"
    [ "$failures" -eq 0 ]
    exit
}
