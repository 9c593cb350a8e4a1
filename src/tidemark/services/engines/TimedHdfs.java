package tidemark;

import java.io.IOException;
import java.util.EnumSet;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.util.Progressable;

/**
 * An HDFS client that records the time of its calls: metadata operations, and the closing of files, which waits until
 * blocks are stored and reported. Writes before that proceed in parallel with the writer and are not recorded.
 */
public final class TimedHdfs extends DistributedFileSystem {
  /** Begin and end of each call, by System.nanoTime. */
  static final Queue<long[]> CALLS = new ConcurrentLinkedQueue<>();

  @FunctionalInterface
  private interface Call<T> {
    T made() throws IOException;
  }

  private static <T> T timed(Call<T> call) throws IOException {
    long began = System.nanoTime();
    try {
      return call.made();
    } finally {
      CALLS.add(new long[] {began, System.nanoTime()});
    }
  }

  @Override
  public FSDataOutputStream create(
      Path file, FsPermission permission, EnumSet<CreateFlag> flags, int buffer, short copies, long block,
      Progressable progress, Options.ChecksumOpt checksum) throws IOException {
    FSDataOutputStream opened =
        timed(() -> super.create(file, permission, flags, buffer, copies, block, progress, checksum));
    return new FSDataOutputStream(opened, null) {
      @Override
      public void close() throws IOException {
        timed(() -> {
          super.close();
          return null;
        });
      }
    };
  }

  @Override
  public FSDataInputStream open(Path file, int buffer) throws IOException {
    return timed(() -> super.open(file, buffer));
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    return timed(() -> super.rename(from, to));
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    return timed(() -> super.delete(path, recursive));
  }

  @Override
  public FileStatus[] listStatus(Path path) throws IOException {
    return timed(() -> super.listStatus(path));
  }

  @Override
  public RemoteIterator<FileStatus> listStatusIterator(Path path) throws IOException {
    return timed(() -> super.listStatusIterator(path));
  }

  @Override
  protected RemoteIterator<LocatedFileStatus> listLocatedStatus(Path path, PathFilter filter) throws IOException {
    return timed(() -> super.listLocatedStatus(path, filter));
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    return timed(() -> super.getFileStatus(path));
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    return timed(() -> super.mkdirs(path, permission));
  }
}
