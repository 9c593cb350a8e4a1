# Builds for 'nix flake check'. The sandbox has no network: a pipeline that passes there needs none.
{
  pkgs,
  environment,
  programs,
  application,
  source,
  tested,
}:
let
  # A writable copy.
  workspace = from: ''
    export HOME=$TMPDIR TIDEMARK_CACHE=${programs}
    cp -r ${from} workspace
    chmod -R u+w workspace
    cd workspace
    export PYTHONPATH=$PWD/src
  '';
  check = name: commands: pkgs.runCommand "tidemark-${name}" { } commands;
in
rec {
  unit = check "unit" ''
    ${workspace tested}
    ${environment}/bin/python -m pytest tests/software tests/stream
    touch $out
  '';

  lint = check "lint" ''
    ${workspace tested}
    export PATH=${environment}/bin:$PATH
    ruff check --no-cache .
    ruff format --no-cache --check .
    mypy --cache-dir $TMPDIR/mypy
    # By name: given a folder, snakefmt skips files below a folder 'build', where everything is in the sandbox.
    snakefmt --check Snakefile workflow/Snakefile workflow/rules/*.smk
    touch $out
  '';

  # The complete pipeline at its smallest size, on real servers and a synthetic replica of the trips.
  smoke = check "smoke" ''
    ${workspace source}
    ${application}/bin/tidemark all --config protocol=smoke 'streams.modes=[batch]' \
      'stacks=[thesis, current]' 'streams.systems={iceberg-pyiceberg: {}}' \
      dataset.source=synthetic dataset.synthetic_rows=20000
    mkdir $out
    cp -r results/. $out
    tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' > $out/network-interfaces
  '';

  # The paper of that smoke run: shows that the paper builds; its numbers are those of a replica.
  paper = check "paper" ''
    mkdir $out
    cp ${smoke}/paper.pdf $out
  '';
}
