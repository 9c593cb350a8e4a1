{
  description = "Tidemark: how fast can a data stream be written into a lakehouse table?";

  # nixos-26.05 of 2026-06-25. It provides the interpreter, the C library and the build tools; every library,
  # the JVM and the servers come from the locks in envs/, which './tidemark' installs from as well.
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/4062d36ebeae843c750011eef6b61ec9a9dbc9a9";

  outputs =
    { nixpkgs, ... }:
    let
      # The locks name wheels and binaries for this platform only.
      system = "x86_64-linux";
      made = import ./nix {
        pkgs = nixpkgs.legacyPackages.${system};
        root = ./.;
      };
    in
    {
      apps.${system}.default = {
        type = "app";
        program = "${made.application}/bin/tidemark";
        meta.description = "Tidemark's command line: 'nix run . -- all'";
      };
      devShells.${system}.default = made.shell;
      packages.${system} = made.byStudy // {
        default = made.application;
        env = made.environment;
        inherit (made) jars programs paper;
      };
      checks.${system} = made.checks;
      formatter.${system} = made.formatter;
    };
}
