# Stands in for nixpkgs where that cannot be had: the same functions, over this machine's shell and Python.
#
# Whatever is fetched must be in fetched.json with its hash, or evaluation ends: a changed lock shows at once.
let
  system = "x86_64-linux";
  expected = builtins.fromJSON (builtins.readFile ./fetched.json);
  python = builtins.getEnv "TIDEMARK_STUB_PYTHON";
  # Set where a changed lock is to get as far as the registries, whose answer must not be taken then.
  acceptsAll = builtins.getEnv "TIDEMARK_STUB_ACCEPTS_ALL" == "1";

  assertExpected =
    name: sha256: value:
    if acceptsAll || (expected ? ${name} && expected.${name} == sha256) then
      value
    else
      throw "${name} with sha256 ${sha256} is not what tests/nix/stub/fetched.json expects; if the locks were meant to change, run: python tests/nix/fetched.py write";

  join = builtins.concatStringsSep;

  runCommand =
    name: attributes: commands:
    let
      made = derivation (
        attributes
        // {
          inherit name system commands;
          builder = "/bin/bash";
          # Nix ends a builder that closes its output early, which a last command that is exec'd would do.
          args = [
            "-c"
            ''
              set -euo pipefail
              for input in $nativeBuildInputs; do PATH=$input/bin:$PATH; done
              # Nothing to patch: programs of wheels find this machine's C library by themselves.
              autoPatchelf() { [ "$1" = -- ] && shift && ls -d "$@" > /dev/null; }
              eval "$commands"
              :
            ''
          ];
          PATH = "/usr/bin:/bin";
          nativeBuildInputs = attributes.nativeBuildInputs or [ ];
          SOURCE_DATE_EPOCH = 315532800;
        }
      );
    in
    if attributes ? outputHash then assertExpected name attributes.outputHash made else made;

  linkFarm =
    name: entries:
    runCommand name { } (
      "mkdir -p $out; cd $out\n"
      + join "\n" (
        map (entry: "mkdir -p $(dirname '${entry.name}'); ln -s ${entry.path} '${entry.name}'") entries
      )
    );

  writeShellScriptBin =
    name: text:
    runCommand name
      {
        script = "#!/bin/bash\n" + text;
        passAsFile = [ "script" ];
      }
      ''
        mkdir -p $out/bin
        cp $scriptPath $out/bin/${name}
        chmod +x $out/bin/${name}
      '';
in
rec {
  inherit runCommand linkFarm writeShellScriptBin;
  runCommandCC = runCommand;
  autoPatchelfHook = linkFarm "no-patching" [ ];
  pythonManylinuxPackages.manylinux2014 = [ ];
  libxcrypt-legacy = linkFarm "no-libcrypt" [ ];
  systemdLibs = linkFarm "no-libsystemd" [ ];
  git = linkFarm "no-git" [ ];
  nixfmt-tree = writeShellScriptBin "treefmt" "echo 'there is no formatter in the stub' >&2; exit 1";

  # The shell that 'nix develop' opens.
  bashInteractive = runCommand "bash" { } "mkdir -p $out/bin; ln -s /bin/bash $out/bin/bash";

  python312 = runCommand "python312" { inherit python; } ''
    mkdir -p $out/bin
    ln -s "$python" $out/bin/python3.12
  '';

  # nixpkgs knows what mirror://maven means; here verify.sh requests it from jgo.
  fetchurl =
    {
      name,
      url,
      sha256,
    }:
    runCommand name
      {
        inherit python;
        outputHashMode = "flat";
        outputHashAlgo = "sha256";
        outputHash = sha256;
        path = builtins.substring (builtins.stringLength "mirror://maven/") (-1) url;
        impureEnvVars = [
          "TIDEMARK_STUB_MAVEN"
          "SSL_CERT_FILE"
          "HTTPS_PROXY"
          "https_proxy"
        ];
      }
      ''
        "$python" -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' \
          "$TIDEMARK_STUB_MAVEN/$path" "$out"
      '';

  mkShell =
    { packages, shellHook }:
    derivation {
      name = "tidemark-shell";
      inherit system shellHook;
      outputs = [ "out" ]; # what 'nix develop' runs in place of the builder loops over them
      builder = "/bin/bash";
      args = [
        "-c"
        "export > $out; :"
      ];
      nativeBuildInputs = packages;
      PATH = join ":" (map (package: "${package}/bin") packages ++ [ "/usr/bin:/bin" ]);
    };
}
