package org.apache.iceberg.rest;

import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * FileIO for a local disk that uses only java.nio.file, in place of Hadoop's local file system.
 *
 * <p>Hadoop's starts a process for each change of a file's permissions if its native library is missing, and writes a
 * checksum file for each file. This class does neither. Like Hadoop's, it makes missing folders and leaves written data
 * to the page cache. A location is a path, or a URI of the scheme file.
 */
public final class NioFileIO implements FileIO {
  public NioFileIO() {}

  static Path path(String location) {
    return location.startsWith("file:") ? Path.of(URI.create(location).getPath()) : Path.of(location);
  }

  @Override
  public InputFile newInputFile(String location) {
    return new LocalInput(location);
  }

  @Override
  public OutputFile newOutputFile(String location) {
    return new LocalOutput(location);
  }

  @Override
  public void deleteFile(String location) {
    try {
      Files.delete(path(location));
    } catch (NoSuchFileException error) {
      throw new NotFoundException(error, "File does not exist: %s", location);
    } catch (IOException error) {
      throw new UncheckedIOException("Failed to delete " + location, error);
    }
  }

  private record LocalInput(String location) implements InputFile {
    @Override
    public long getLength() {
      try {
        return Files.size(path(location));
      } catch (NoSuchFileException error) {
        throw new NotFoundException(error, "File does not exist: %s", location);
      } catch (IOException error) {
        throw new UncheckedIOException("Failed to look at " + location, error);
      }
    }

    @Override
    public SeekableInputStream newStream() {
      try {
        return new LocalInputStream(Files.newByteChannel(path(location), StandardOpenOption.READ));
      } catch (NoSuchFileException error) {
        throw new NotFoundException(error, "File does not exist: %s", location);
      } catch (IOException error) {
        throw new UncheckedIOException("Failed to open " + location, error);
      }
    }

    @Override
    public boolean exists() {
      return Files.exists(path(location));
    }
  }

  private record LocalOutput(String location) implements OutputFile {
    /** Create the file atomically: of two concurrent calls, one fails. */
    @Override
    public PositionOutputStream create() {
      return open(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return open(StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE);
    }

    @Override
    public InputFile toInputFile() {
      return new LocalInput(location);
    }

    private PositionOutputStream open(OpenOption... options) {
      Path path = path(location);
      try {
        Files.createDirectories(path.toAbsolutePath().getParent());
        return new LocalOutputStream(Files.newOutputStream(path, options));
      } catch (FileAlreadyExistsException error) {
        throw new AlreadyExistsException(error, "File already exists: %s", location);
      } catch (IOException error) {
        throw new UncheckedIOException("Failed to create " + location, error);
      }
    }
  }

  private static final class LocalInputStream extends SeekableInputStream {
    private final SeekableByteChannel channel;

    LocalInputStream(SeekableByteChannel channel) {
      this.channel = channel;
    }

    @Override
    public long getPos() throws IOException {
      return channel.position();
    }

    @Override
    public void seek(long position) throws IOException {
      if (position > channel.size()) {
        throw new EOFException("Cannot seek to " + position + " in " + channel.size() + " bytes");
      }
      channel.position(position);
    }

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      return channel.read(ByteBuffer.wrap(into, offset, length));
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  private static final class LocalOutputStream extends PositionOutputStream {
    private final OutputStream buffered;
    private long position;

    LocalOutputStream(OutputStream file) {
      this.buffered = new BufferedOutputStream(file);
    }

    @Override
    public long getPos() {
      return position;
    }

    @Override
    public void write(int value) throws IOException {
      buffered.write(value);
      position += 1;
    }

    @Override
    public void write(byte[] from, int offset, int length) throws IOException {
      buffered.write(from, offset, length);
      position += length;
    }

    @Override
    public void flush() throws IOException {
      buffered.flush();
    }

    @Override
    public void close() throws IOException {
      buffered.close();
    }
  }
}
