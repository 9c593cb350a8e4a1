package tidemark;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** HTTP server on loopback: answers one request after the other, on a port that the kernel picks; it prints the port. */
final class Loopback {
  /** Produces the answer to a request; an exception is returned to the client with its causes. */
  @FunctionalInterface
  interface Answer {
    String to(String method, String body) throws Exception;
  }

  private Loopback() {}

  /** Start to answer requests for each of the paths; `version` is that of the served program. */
  static void serve(String version, Map<String, Answer> answers) throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    answers.forEach((path, answer) -> server.createContext(path, exchange -> reply(exchange, answer)));
    server.start();
    System.out.println("Version: " + version);
    System.out.println("Listens on port: " + server.getAddress().getPort());
  }

  /** Return the error and its causes, from the outermost to the innermost; the stack trace goes to the log. */
  static String causes(Throwable error) {
    error.printStackTrace(System.out);
    StringBuilder text = new StringBuilder();
    for (Throwable each = error; each != null; each = each.getCause()) {
      text.append(text.isEmpty() ? "" : "; caused by ").append(each);
    }
    return text.toString();
  }

  private static void reply(HttpExchange exchange, Answer answer) throws IOException {
    int status = 200;
    String said;
    try {
      String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      said = answer.to(exchange.getRequestMethod(), body);
    } catch (Throwable error) {
      status = 500;
      said = causes(error);
    }
    byte[] bytes = said.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(status, bytes.length);
    exchange.getResponseBody().write(bytes);
    exchange.close();
  }
}
