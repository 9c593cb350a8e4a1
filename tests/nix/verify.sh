#!/usr/bin/env bash
# Verifies the flake as far as this machine allows, and says how far that was.
#
#   tests/nix/verify.sh            nixpkgs is the stub beside this script, over this machine's shell and Python
#   tests/nix/verify.sh FOLDER     nixpkgs is the tree in FOLDER; everything is evaluated, nothing is built
#
# Without root nothing is built either: the stub's programs lie outside the store, and a daemon lets only its
# trusted users show them to builders.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd -P)
stub=$root/tests/nix/stub
nixpkgs=${1:-$stub}
system=x86_64-linux

began=$SECONDS
say() { printf 'verify [%3d s] %s\n' $((SECONDS - began)) "$*"; }
fail() { say "FAILED: $*" >&2; exit 1; }

command -v nix > /dev/null || fail "there is no 'nix' on PATH"
python=${TIDEMARK_STUB_PYTHON:-}
if [ -z "$python" ]; then
    for candidate in "$root"/.venv/bin/python3.12 python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12*/bin/python3.12; do
        if "$candidate" -c '' 2> /dev/null; then
            python=$("$candidate" -c 'import os, sys; print(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))')
            break
        fi
    done
fi
[ -n "$python" ] || fail "there is no Python 3.12 that the stub could stand on"
export TIDEMARK_STUB_PYTHON=$python

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
seen=
for folder in /bin /usr /lib /lib64 /etc/alternatives /etc/ssl "$(dirname "$(dirname "$python")")"; do
    if [ -e "$folder" ] && [ "${folder#/usr/}" = "$folder" ]; then seen="$seen $folder"; fi
done
# What this machine's configuration of Nix says must not decide the result.
export NIX_CONFIG="experimental-features = nix-command flakes
substitute = false
flake-registry = /dev/null
warn-dirty = false
max-jobs = 4
sandbox = true
sandbox-fallback = true
extra-sandbox-paths =$seen
build-users-group ="
unset TIDEMARK_CACHE

# Nix tells each time that nixpkgs is another than the lock's, which is what was asked for.
override=(--override-input nixpkgs "path:$nixpkgs" --impure --no-write-lock-file)
quietly() { "$@" 2> "$scratch/stderr" || { cat "$scratch/stderr" >&2; return 1; }; }
derivation_of() { quietly nix eval --raw "${override[@]}" "$1#$2.drvPath"; }

say "$(nix --version); nixpkgs is $nixpkgs"

# --- evaluation -----------------------------------------------------------------------------------------------
quietly nix flake metadata --no-update-lock-file "$root" > /dev/null || fail "flake.lock does not fit flake.nix"
quietly nix flake check --no-build "${override[@]}" "$root" || fail "the flake does not evaluate"
# Each study has an output of its own for what its servers run from; together they fetch all that the locks name.
studies=$(quietly nix eval --raw "${override[@]}" "$root#packages.$system" --apply \
    'packages: toString (builtins.filter (name: builtins.match "tidemark-.*" name != null) (builtins.attrNames packages))')
[ -n "$studies" ] || fail "the flake has no output for any study"
for output in packages.$system.{default,env,jars,programs,paper} checks.$system.{unit,lint,smoke} \
    devShells.$system.default formatter.$system $(printf "packages.$system.%s " $studies); do
    derivation_of "$root" "$output" > /dev/null || fail "$output does not evaluate"
done
say "flake.lock fits, and every output evaluates"

only=()
[ "$nixpkgs" != "$stub" ] || only=(--only)
wanted=()
for study in $studies; do wanted+=("$(derivation_of "$root" "packages.$system.$study")"); done
quietly nix show-derivation --recursive "${wanted[@]}" > "$scratch/derivations.json"
"$python" "$root/tests/nix/fetched.py" check "${only[@]}" < "$scratch/derivations.json" || fail "the locks are not what is fetched"

# --- a lock that was changed ----------------------------------------------------------------------------------
# Copies of the flake in which one hash is wrong, of a wheel that only one lock names and of a jar; both are small.
spoil() {
    mkdir -p "$scratch/spoiled"
    rm -rf "$scratch/spoiled/$1"
    mkdir "$scratch/spoiled/$1"
    (cd "$root" && cp -r flake.nix flake.lock nix envs config.yaml Snakefile profiles pyproject.toml src workflow \
        "$scratch/spoiled/$1")
    "$python" "$root/tests/nix/fetched.py" change "$scratch/spoiled/$1/$2" "$3"
}
spoil wheel envs/thesis.lock 'throttler=='
spoil jar envs/jars/kafka/jgo.lock.toml '"jspecify"'
if [ "$nixpkgs" = "$stub" ]; then
    for which in wheel jar; do
        if nix eval --raw "${override[@]}" "path:$scratch/spoiled/$which#packages.$system.default.drvPath" \
            > /dev/null 2> "$scratch/stderr"; then
            fail "a $which whose hash was changed went unnoticed"
        fi
        grep -q "is not what tests/nix/stub/fetched.json expects" "$scratch/stderr" || {
            cat "$scratch/stderr" >&2
            fail "a $which whose hash was changed ended evaluation for another reason"
        }
    done
    say "a changed hash in either lock ends evaluation"
fi

if [ "$nixpkgs" != "$stub" ]; then say "passed; built was nothing, as nixpkgs was given"; exit 0; fi
if [ "$(id -u)" != 0 ]; then say "passed; built was nothing, as only root can with the stub"; exit 0; fi

# --- fetching -------------------------------------------------------------------------------------------------
build() {
    # Prints one line in five of those that name what is being built, and whatever is no such line when it fails.
    nix build -v --no-link "${override[@]}" "$@" 2>&1 | tee "$scratch/build.log" | awk -v began="$(date +%s)" '
        /^building .*\.drv/ { if (++built % 5 == 1) {
            name = $2; sub(/^[^-]*-/, "", name); sub(/\.drv.*/, "", name)
            printf "verify   building %d: %s\n", built, name; fflush() } }' ||
        { grep -v '^building\|^evaluating' "$scratch/build.log" | tail -60 >&2; return 1; }
}
# nixpkgs knows where mirror://maven leads; the stub is told what jgo, by which './tidemark' fetches jars, knows.
"$root/tidemark" version > /dev/null
TIDEMARK_STUB_MAVEN=$("$root/.venv/bin/python" -c \
    'from jgo.constants import MAVEN_CENTRAL_URL as address; print(address.rstrip("/"))')
export TIDEMARK_STUB_MAVEN
say "fetching wheels and jars, making environments, programs and the command line"
build "$root#packages.$system.default" || fail "the command line could not be built"
environment=$(quietly nix eval --raw "${override[@]}" "$root#packages.$system.env.outPath")

for which in wheel jar; do
    name=throttler-; [ $which = wheel ] || name=jspecify-
    export TIDEMARK_STUB_ACCEPTS_ALL=1
    drv=$(derivation_of "path:$scratch/spoiled/$which" packages.$system.default)
    fetch=$(nix-store --query --requisites "$drv" | grep -- "-$name.*\.\(whl\|jar\)\.drv$")
    unset TIDEMARK_STUB_ACCEPTS_ALL
    if nix-store --realise "$fetch" > "$scratch/stderr" 2>&1; then fail "$fetch was built from another file than its lock's"; fi
    grep -qi 'hash mismatch\|DO NOT MATCH THE HASHES' "$scratch/stderr" || {
        cat "$scratch/stderr" >&2
        fail "$fetch failed for another reason than its hash"
    }
done
say "what a registry sends in place of a wheel or jar with a changed hash is refused"

# --- running --------------------------------------------------------------------------------------------------
mkdir "$scratch/workspace"
cp "$root/config.yaml" "$scratch/workspace"
say "smoke pipeline by 'nix run', from the store"
(cd "$scratch/workspace" && nix run "${override[@]}" "$root" -- all --config protocol=smoke 'streams.systems={"null": {}}' \
    'streams.modes=[batch]' dataset.source=synthetic dataset.synthetic_rows=20000 --omit-from database) \
    > "$scratch/run.log" 2>&1 ||
    { tail -60 "$scratch/run.log" >&2; fail "the pipeline failed under 'nix run'"; }
grep -q '1 of 1 series complete' "$scratch/run.log" || { tail -60 "$scratch/run.log" >&2; fail "no series was measured"; }
[ ! -e "$scratch/workspace/.tidemark/cache" ] || fail "the pipeline provisioned servers beside those of the store"

say "the pipeline's steps by 'nix develop -c snakemake'"
(cd "$root" && nix develop "${override[@]}" -c sh -c 'command -v snakemake && snakemake --cores 1 --dry-run \
    --directory "$0" --configfile config.yaml --config protocol=smoke -- all' "$scratch/workspace") > "$scratch/develop.log" 2>&1 ||
    { tail -60 "$scratch/develop.log" >&2; fail "snakemake failed under 'nix develop'"; }
grep -q "^$environment/bin/snakemake" "$scratch/develop.log" || fail "'nix develop' ran another snakemake than the store's"

say "versions of both ways"
"$root/tidemark" list versions --json > "$scratch/here.json"
(cd "$scratch/workspace" && quietly nix run "${override[@]}" "$root" -- list versions --json) > "$scratch/nix.json"
"$python" "$root/tests/nix/compare_versions.py" "$scratch/here.json" "$scratch/nix.json" || fail "the two ways differ"

say "lint, unit tests, and the smoke pipeline with servers, in a sandbox without network"
build --keep-going "$root"#checks.$system.{lint,unit,smoke} || fail "a check of the flake failed; its log is above"
results=$(quietly nix eval --raw "${override[@]}" "$root#checks.$system.smoke.outPath")
interfaces=$(tr '\n' ' ' < "$results/network-interfaces")
if [ "$interfaces" = "lo " ]; then
    say "passed; the sandbox had no network"
else
    say "passed; but this machine grants no sandbox: the pipeline saw $interfaces"
fi
