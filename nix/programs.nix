# What a workspace's cache holds once it is provisioned, made by Tidemark itself from the fetched jars.
{
  pkgs,
  environment,
  others,
  fetched,
  source,
}:
pkgs.runCommandCC "tidemark-programs" {
  nativeBuildInputs = [ pkgs.autoPatchelfHook ];
  buildInputs = pkgs.pythonManylinuxPackages.manylinux2014;
  inherit (fetched) jars;
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
  # Verifies each jar against its lock, unpacks PostgreSQL, compiles the launcher of Iceberg's catalog, formats a
  # storage for Kafka, and archives the class data of both: the two are started for it, on loopback.
  cd work
  PYTHONPATH=${source}/src TIDEMARK_CACHE=$out ${environment}/bin/python -m tidemark \
    provision --target provisioned.json
  find $out -name '.*lock' -delete
  autoPatchelf -- $out/postgres
''
