# What 'nix flake check' builds. The sandbox has no network: a pipeline that passes there needs none.
{
  pkgs,
  environment,
  programs,
  application,
  source,
  tested,
}:
let
  # A copy that can be written to, with byte code kept out of it.
  workspace = from: ''
    export HOME=$TMPDIR PYTHONDONTWRITEBYTECODE=1 TIDEMARK_CACHE=${programs}
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
    ${environment}/bin/python -m pytest tests/dataset tests/runs tests/software tests/stream
    touch $out
  '';

  lint = check "lint" ''
    ${workspace tested}
    export PATH=${environment}/bin:$PATH
    ruff check --no-cache .
    ruff format --no-cache --check .
    mypy --cache-dir $TMPDIR/mypy
    # By name: of the files in a folder it leaves out what lies below a 'build', as all does in the sandbox.
    snakefmt --check Snakefile workflow/rules/*.smk
    touch $out
  '';

  # The whole pipeline, as small as it gets, on real servers and a synthetic replica of the trips.
  smoke = check "smoke" ''
    ${workspace source}
    ${application}/bin/tidemark all --config protocol=smoke 'streams.modes=[batch]' \
      'stacks=[thesis, current]' 'streams.systems={iceberg-pyiceberg: {}}' \
      dataset.source=synthetic dataset.synthetic_rows=20000
    mkdir $out
    cp -r results/. $out
    tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' > $out/network-interfaces
  '';

  # The paper over that smoke run: it shows that the paper builds, its numbers are those of a replica.
  paper = check "paper" ''
    mkdir $out
    cp ${smoke}/paper.pdf $out
  '';
}
