# The parsed locks: the name of each artifact, and its SHA-256 in hex.
{ root }:
let
  lines =
    path: builtins.filter (line: builtins.isString line) (builtins.split "\n" (builtins.readFile path));

  pin =
    path: line:
    let
      found = builtins.match "([A-Za-z0-9._-]+)==([^ ]+) --hash=sha256:([0-9a-f]+)  # ([^ ]+)" line;
    in
    if found == null then
      throw "${baseNameOf path}: '${line}' does not read 'name==version --hash=sha256:HEX  # file'"
    else
      {
        name = builtins.elemAt found 0;
        version = builtins.elemAt found 1;
        sha256 = builtins.elemAt found 2;
        file = builtins.elemAt found 3;
      };

  jar = entry: {
    inherit (entry) groupId artifactId version sha256;
    file = "${entry.artifactId}-${entry.version}${
      if entry ? classifier then "-${entry.classifier}" else ""
    }.jar";
  };

  # The names of the files NAME.lock in a folder.
  locksIn =
    folder:
    builtins.concatMap (
      name:
      let
        found = builtins.match "(.*)\\.lock" name;
      in
      if found == null then [ ] else found
    ) (builtins.attrNames (builtins.readDir folder));

  # Locks of Python packages: the file, and one entry per line, in order.
  wheelLocks =
    folder:
    each (locksIn folder) (name: rec {
      file = folder + "/${name}.lock";
      wheels = map (pin file) (
        builtins.filter (line: line != "" && builtins.substring 0 1 line != "#") (lines file)
      );
    });

  servers = builtins.attrNames (builtins.readDir (root + "/envs/jars"));

  each =
    names: made:
    builtins.listToAttrs (
      map (name: {
        inherit name;
        value = made name;
      }) names
    );
in
{
  stacks = wheelLocks (root + "/envs");
  # The third-party programs that workloads use.
  tools = wheelLocks (root + "/envs/tools");

  # server -> its jars, in the order of the class path.
  jars = each servers (
    server:
    map jar
      (builtins.fromTOML (builtins.readFile (root + "/envs/jars/${server}/jgo.lock.toml"))).dependencies
  );
}
