{
  description = "The few functions of nixpkgs that Tidemark's flake calls, over the programs of this machine";

  outputs = _: { legacyPackages.x86_64-linux = import ./packages.nix; };
}
