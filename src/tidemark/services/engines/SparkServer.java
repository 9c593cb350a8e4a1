package tidemark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.EventLoggingListener;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.Trigger;
import scala.Option;

/**
 * A Spark session, served through Loopback; its argument is a JSON file with the settings.
 *
 * <p>POST /sql runs a statement and returns its rows, plans and times. For /stream, POST starts the streaming query, of
 * which there is one at a time; GET returns its state, DELETE stops it. For /events, POST begins an event log in a
 * folder, DELETE ends it once it holds all earlier events. Requests and answers are JSON, except for the states.
 */
public final class SparkServer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long LAST_BATCH_NS = 60_000_000_000L;
  private final SparkSession session;
  private StreamingQuery query;
  private EventLoggingListener events;

  private SparkServer(SparkSession session) {
    this.session = session;
  }

  public static void main(String[] arguments) throws Exception {
    SparkConf settings = new SparkConf();
    texts(JSON.readTree(new File(arguments[0]))).forEach(settings::set);
    SparkServer server = new SparkServer(SparkSession.builder().config(settings).getOrCreate());
    Loopback.Answer sql = server.asking(server::sql);
    Loopback.Answer stream = server.asking(server::stream);
    Loopback.Answer events = server.asking(server::events);
    Loopback.serve(server.session.version(), Map.of("/sql", sql, "/stream", stream, "/events", events));
  }

  /** Set the session in the answering thread, which does not inherit it from the thread that made it. */
  private Loopback.Answer asking(Loopback.Answer answer) {
    return (method, body) -> {
      SparkSession.setActiveSession(session);
      return answer.to(method, body);
    };
  }

  /** Run a statement. Times: until the execution plan and until all rows were available; a command is done by then. */
  private String sql(String method, String body) throws Exception {
    JsonNode asked = JSON.readTree(body);
    session.sparkContext().setJobDescription(asked.get("name").asText());
    ObjectNode told = JSON.createObjectNode();
    told.put("submitted_ms", System.currentTimeMillis());
    long began = System.nanoTime();
    Dataset<Row> answer = session.sql(asked.get("text").asText());
    QueryExecution execution = answer.queryExecution();
    execution.executedPlan();
    told.put("planned_ns", System.nanoTime() - began);
    List<Row> rows = answer.collectAsList();
    told.put("elapsed_ns", System.nanoTime() - began);
    told.put("optimized", execution.optimizedPlan().toString());
    told.put("executed", execution.executedPlan().toString());
    told.set("columns", JSON.valueToTree(answer.columns()));
    ArrayNode cells = told.putArray("rows");
    for (Row row : rows) {
      ArrayNode line = cells.addArray();
      for (int column = 0; column < row.length(); column++) {
        line.add(cell(row.get(column)));
      }
    }
    return JSON.writeValueAsString(told);
  }

  /** Return numbers and booleans as such, all else as text; decimals too, because a JSON number would lose digits. */
  private static JsonNode cell(Object value) {
    if (value instanceof BigDecimal number) {
      return JSON.valueToTree(number.toPlainString());
    }
    boolean plain = value == null || value instanceof Number || value instanceof Boolean;
    return JSON.valueToTree(plain ? value : value.toString());
  }

  /** Begin or end Spark's event log, which covers one part of the session. */
  private String events(String method, String body) throws Exception {
    SparkContext context = session.sparkContext();
    if (events != null) {
      context.listenerBus().waitUntilEmpty();
      context.removeSparkListener(events);
      events.stop();
      events = null;
    }
    if (method.equals("POST")) {
      events =
          new EventLoggingListener(
              context.applicationId(),
              Option.empty(),
              new File(JSON.readTree(body).get("folder").asText()).toURI(),
              context.getConf(),
              context.hadoopConfiguration());
      events.start();
      context.listenerBus().addToEventLogQueue(events);
    }
    return events == null ? "ENDED" : "BEGUN";
  }

  private String stream(String method, String body) throws Exception {
    return switch (method) {
      case "POST" -> start(JSON.readTree(body));
      case "GET" -> state();
      case "DELETE" -> stop();
      default -> throw new IllegalArgumentException(method);
    };
  }

  private String start(JsonNode asked) throws Exception {
    texts(asked.get("settings")).forEach((name, value) -> session.conf().set(name, value));
    session.readStream().format("kafka").options(texts(asked.get("source"))).load().createOrReplaceTempView("events");
    DataStreamWriter<Row> writer =
        session
            .sql(asked.get("query").asText())
            .writeStream()
            .outputMode("append")
            .format(asked.get("format").asText())
            .options(texts(asked.get("options")))
            .trigger(Trigger.ProcessingTime(asked.get("every_ms").asLong()));
    query = asked.get("table").isNull() ? writer.start() : writer.toTable(asked.get("table").asText());
    return query.id().toString();
  }

  /** Return RUNNING, FINISHED, or FAILED with the reason. */
  private String state() {
    if (query.exception().isDefined()) {
      return "FAILED: " + Loopback.causes(query.exception().get());
    }
    return query.isActive() ? "RUNNING" : "FINISHED";
  }

  /** Stop the query after its current batch: with Hudi, an interrupted batch ends the JVM. */
  private String stop() throws Exception {
    if (query != null) {
      long deadline = System.nanoTime() + LAST_BATCH_NS;
      while (query.isActive() && query.status().isTriggerActive() && System.nanoTime() < deadline) {
        Thread.sleep(20);
      }
      query.stop();
    }
    return "STOPPED";
  }

  private static Map<String, String> texts(JsonNode object) {
    Map<String, String> found = new LinkedHashMap<>();
    object.fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
    return found;
  }
}
