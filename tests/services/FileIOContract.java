import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Supplier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.rest.NioFileIO;

/** What Iceberg expects of a FileIO: `FileIOContract CLASS FOLDER` ends with 0, or with the expectation that failed. */
public final class FileIOContract {
  private FileIOContract() {}

  /** The planted fault: its `create` writes over what is there. */
  public static final class Overwriting implements FileIO {
    private final FileIO right = new NioFileIO();

    @Override
    public InputFile newInputFile(String location) {
      return right.newInputFile(location);
    }

    @Override
    public OutputFile newOutputFile(String location) {
      OutputFile file = right.newOutputFile(location);
      return new OutputFile() {
        @Override
        public PositionOutputStream create() {
          return file.createOrOverwrite();
        }

        @Override
        public PositionOutputStream createOrOverwrite() {
          return file.createOrOverwrite();
        }

        @Override
        public String location() {
          return file.location();
        }

        @Override
        public InputFile toInputFile() {
          return file.toInputFile();
        }
      };
    }

    @Override
    public void deleteFile(String location) {
      right.deleteFile(location);
    }
  }

  static void expect(String what, boolean holds) {
    if (!holds) {
      System.err.println("not so: " + what);
      System.exit(1);
    }
  }

  static Class<?> thrown(Supplier<?> what) {
    try {
      what.get();
      return null;
    } catch (RuntimeException error) {
      return error.getClass();
    }
  }

  static void write(Supplier<PositionOutputStream> open, String text) throws Exception {
    try (PositionOutputStream out = open.get()) {
      expect("a new stream begins at 0", out.getPos() == 0);
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      out.write(bytes[0]);
      out.write(bytes, 1, bytes.length - 1);
      expect("the position is what was written", out.getPos() == bytes.length);
      out.flush();
    }
  }

  public static void main(String[] arguments) throws Exception {
    FileIO io = (FileIO) Class.forName(arguments[0]).getConstructor().newInstance();
    Path path = Path.of(arguments[1], "made", "on the way", "file");
    OutputFile file = io.newOutputFile(path.toString());
    InputFile input = file.toInputFile();
    expect("it is not there yet", !input.exists());
    expect("its length cannot be had", thrown(input::getLength) == NotFoundException.class);
    expect("it cannot be read", thrown(input::newStream) == NotFoundException.class);

    write(file::create, "0123456789");
    expect("it is there", input.exists() && input.getLength() == 10);
    expect("create does not overwrite", thrown(file::create) == AlreadyExistsException.class);
    expect("a refused create leaves it as it was", Files.readString(path).equals("0123456789"));
    write(file::createOrOverwrite, "abcdef");
    expect("createOrOverwrite leaves nothing of the old", Files.readString(path).equals("abcdef"));

    try (SeekableInputStream in = io.newInputFile(path.toUri().toString()).newStream()) {
      expect("a URI names it as well", in.read() == 'a' && in.getPos() == 1);
      in.seek(4);
      byte[] rest = new byte[10];
      expect("a read stops at the end", in.read(rest, 0, 10) == 2 && rest[0] == 'e' && rest[1] == 'f');
      expect("and then there is nothing", in.read() == -1 && in.read(rest, 0, 10) == -1);
    }
    io.deleteFile(path.toString());
    expect("it is gone", !input.exists());
    Supplier<?> again =
        () -> {
          io.deleteFile(path.toString());
          return null;
        };
    expect("what is gone cannot be deleted", thrown(again) == NotFoundException.class);
  }
}
