# A stack's Python environment: the wheels of its lock, installed by pip as './tidemark' does it, from the store.
{ pkgs, fetched }:
stack: lock:
pkgs.runCommandCC "tidemark-${stack}" {
  nativeBuildInputs = [
    pkgs.python312
    pkgs.autoPatchelfHook
  ];
  # What wheels for 'manylinux' may expect of a system.
  buildInputs = pkgs.pythonManylinuxPackages.manylinux2014;
  # Wanted by the JVM's windows and sound, which no server opens.
  autoPatchelfIgnoreMissingDeps = [
    "libX11.so.6"
    "libXext.so.6"
    "libXi.so.6"
    "libXrender.so.1"
    "libXtst.so.6"
    "libasound.so.2"
  ];
  lock = lock.file;
  wheelhouse = fetched.wheelhouse lock;
  # What Tidemark leaves in an environment that is whole.
  stamp = builtins.hashFile "sha256" lock.file;
} ''
  export HOME=$TMPDIR
  unset PYTHONPATH
  python3.12 -m venv $out
  # The lock's own hashes are checked once more by pip. One package is a source package: setuptools goes first.
  options="--quiet --no-index --find-links $wheelhouse --no-deps --no-build-isolation --no-compile"
  options="$options --disable-pip-version-check"
  if grep -q '^setuptools==' $lock; then $out/bin/pip install $options setuptools; fi
  $out/bin/pip install $options --require-hashes --requirement $lock

  # Programs and libraries of the wheels find the C library of nixpkgs. DuckDB's extensions stay as they are: a
  # changed byte breaks their signature, and what they need DuckDB has loaded before them.
  site=$(echo $out/lib/python3.12/site-packages)
  autoPatchelf -- $(find $site -mindepth 1 -maxdepth 1 -not -name 'duckdb_extension_*') $out/bin

  # Nothing changes in the store, so that byte code need not be compared with its source at each import.
  # Some packages carry sources for other versions of Python, which do not compile and are never imported.
  $out/bin/python -m compileall -qq -j 0 -x '/tests?/' --invalidation-mode unchecked-hash $site || :
  $out/bin/python ${./verify_extensions.py} $site
  echo "$stamp  $out  -" > $out/.stamp
''
