# What a workspace's cache holds once it is provisioned for a study, made by Tidemark itself from the fetched jars.
{
  pkgs,
  environment,
  others,
  fetched,
  source,
}:
study: servers:
pkgs.runCommandCC "tidemark-programs-${study}" {
  nativeBuildInputs = [ pkgs.autoPatchelfHook ];
  buildInputs = pkgs.pythonManylinuxPackages.manylinux2014;
  jars = fetched.jars study servers;
  inherit servers;
} ''
  mkdir -p $out work
  for server in $jars/*; do
    mkdir -p $out/jars/$(basename $server)
    for file in $server/*; do
      ln -s $(readlink -f $file) $out/jars/$(basename $server)/$(basename $file)
    done
  done
  # The environments of the other stacks, under the names by which Tidemark looks for them.
  mkdir $out/envs
  ${builtins.concatStringsSep "\n" (
    map (stack: ''
      ln -s ${others.${stack}} $out/envs/${stack}-$(cut -c 1-12 ${others.${stack}}/.stamp)
    '') (builtins.attrNames others)
  )}
  # Verifies each jar against its lock, and has each server make ready what is made once: PostgreSQL is unpacked, the
  # launcher of Iceberg's catalog compiled, a storage for Kafka formatted, and the class data of both archived, for
  # which the two are started, on loopback.
  cd work
  PYTHONPATH=${source}/src TIDEMARK_CACHE=$out ${environment}/bin/python -m tidemark \
    provision $servers
  find $out -name '.*lock' -delete
  if [ -d $out/postgres ]; then autoPatchelf -- $out/postgres; fi
''
