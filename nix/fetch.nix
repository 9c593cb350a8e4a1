# One derivation per artifact of the locks, with the lock's hash: a fetch yields exactly this artifact or fails.
{ pkgs, locks }:
let
  python = pkgs.python312;

  # The pip of this Python, which './tidemark' uses as well.
  pip = pkgs.runCommand "tidemark-pip" { nativeBuildInputs = [ python ]; } ''
    python3.12 -m venv $out
  '';

  # The user's proxy, mirror or certificate: they change the source of a fetch, never its content.
  surroundings = [
    "http_proxy"
    "https_proxy"
    "no_proxy"
    "HTTP_PROXY"
    "HTTPS_PROXY"
    "NO_PROXY"
    "PIP_CERT"
    "PIP_INDEX_URL"
    "PIP_EXTRA_INDEX_URL"
    "PIP_FIND_LINKS"
    "PIP_DEFAULT_TIMEOUT"
  ];

  # pip looks up a file's address in its index; an address built from name and version would be a guess.
  wheel =
    lock:
    {
      name,
      version,
      sha256,
      file,
    }:
    pkgs.runCommand file {
      nativeBuildInputs = [ pip ];
      impureEnvVars = surroundings;
      outputHashMode = "flat";
      outputHashAlgo = "sha256";
      outputHash = sha256;
      requirement = "${name}==${version} --hash=sha256:${sha256}";
      # To read the metadata of a source package, pip builds it, with the setuptools of the lock.
      builders = if builtins.match ".*\\.whl" file != null then "" else "${setuptools lock}";
    } ''
      export HOME=$TMPDIR PYTHONPATH=
      if [ -n "$builders" ]; then
        pip install --quiet --no-index --no-deps --no-compile --target builders "$builders/"*.whl
        export PYTHONPATH=$PWD/builders
      fi
      echo "$requirement" > requirement.txt
      pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --no-build-isolation \
        --require-hashes --dest fetched --requirement requirement.txt
      mv fetched/* $out
    '';

  wheelhouse =
    name: lock: kept:
    pkgs.linkFarm name (
      map (pin: {
        name = pin.file;
        path = wheel lock pin;
      }) (builtins.filter kept lock.wheels)
    );
  setuptools = lock: wheelhouse "setuptools-wheel" lock (pin: pin.name == "setuptools");

  jar =
    {
      groupId,
      artifactId,
      version,
      sha256,
      file,
    }:
    pkgs.fetchurl {
      name = file;
      url = "mirror://maven/${builtins.replaceStrings [ "." ] [ "/" ] groupId}/${artifactId}/${version}/${file}";
      inherit sha256;
    };
in
{
  # A folder with all wheels of a lock, for pip to install from.
  wheelhouse = lock: wheelhouse "tidemark-wheelhouse" lock (_: true);

  # The jars of some servers as SERVER/FILE, like in a workspace's cache.
  jars =
    study: servers:
    pkgs.linkFarm "tidemark-jars-${study}" (
      builtins.concatMap (
        server:
        map (entry: {
          name = "${server}/${entry.file}";
          path = jar entry;
        }) locks.jars.${server}
      ) servers
    );
}
