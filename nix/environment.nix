# A stack's Python environment: the wheels of its lock, installed from the store by pip, as './tidemark' does.
{ pkgs, fetched }:
stack: lock:
pkgs.runCommandCC "tidemark-${stack}" {
  nativeBuildInputs = [
    pkgs.python312
    pkgs.autoPatchelfHook
  ];
  # Libraries that 'manylinux' wheels may expect on a system.
  buildInputs = pkgs.pythonManylinuxPackages.manylinux2014;
  # Needed only for the JVM's windows and sound, which no server uses.
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
  # Tidemark's stamp of a complete environment.
  stamp = builtins.hashFile "sha256" lock.file;
} ''
  export HOME=$TMPDIR
  unset PYTHONPATH
  python3.12 -m venv $out
  # pip checks the lock's hashes once more. One package is a source package, so setuptools is installed first.
  options="--quiet --no-index --find-links $wheelhouse --no-deps --no-build-isolation --no-compile"
  options="$options --disable-pip-version-check"
  if grep -q '^setuptools==' $lock; then $out/bin/pip install $options setuptools; fi
  $out/bin/pip install $options --require-hashes --requirement $lock

  # Let programs and libraries of the wheels find the C library of nixpkgs. DuckDB's extensions stay unchanged: a
  # changed byte breaks their signature, and DuckDB has already loaded the libraries that they need.
  site=$(echo $out/lib/python3.12/site-packages)
  autoPatchelf -- $(find $site -mindepth 1 -maxdepth 1 -not -name 'duckdb_extension_*') $out/bin

  # The store does not change, so byte code need not be compared with its source at each import.
  # Some packages contain sources for other versions of Python, which do not compile and are never imported.
  $out/bin/python -m compileall -qq -j 0 -x '/tests?/' --invalidation-mode unchecked-hash $site || :
  $out/bin/python ${./verify_extensions.py} $site
  echo "$stamp  $out  -" > $out/.stamp
''
