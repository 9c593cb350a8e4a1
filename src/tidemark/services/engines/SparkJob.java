package tidemark;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * A Spark application that writes tables. Its argument is a JSON file with the settings. It reads orders from standard
 * input, one JSON line each, answers each with a line, and ends at the end of the input.
 *
 * <p>Answers begin with a prefix, because libraries print as well. Times are System.nanoTime, a clock that all processes
 * of the machine share; times of stages, which Spark has in milliseconds since 1970, are converted to it.
 */
public final class SparkJob {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String ANSWER = "answer: ";
  private static final long OFFSET_NS = System.nanoTime() - System.currentTimeMillis() * 1_000_000;
  private final SparkSession session;
  private final Stages stages = new Stages();
  private Dataset<Row> held;

  private SparkJob(SparkSession session) {
    this.session = session;
    session.sparkContext().addSparkListener(stages);
  }

  public static void main(String[] arguments) throws Exception {
    SparkConf settings = new SparkConf();
    texts(JSON.readTree(new File(arguments[0]))).forEach(settings::set);
    SparkJob job = new SparkJob(SparkSession.builder().config(settings).getOrCreate());
    say(JSON.createObjectNode().put("ready_ns", System.nanoTime()));
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String order = orders.readLine(); order != null; order = orders.readLine()) {
      ObjectNode answer;
      try {
        answer = job.done(JSON.readTree(order));
      } catch (Throwable error) {
        answer = JSON.createObjectNode().put("error", Loopback.causes(error));
      }
      say(answer);
    }
    job.session.stop();
  }

  private static void say(ObjectNode answer) {
    System.out.println("\n" + ANSWER + answer);
    System.out.flush();
  }

  /** Carry out an order: hold the rows of a file in memory, or write a table from them or from a topic's messages. */
  private ObjectNode done(JsonNode order) throws Exception {
    ObjectNode answer = JSON.createObjectNode();
    if (order.has("hold")) {
      if (held != null) {
        held.unpersist(true);
      }
      held = session.read().parquet(order.get("hold").asText()).cache();
      return answer.put("rows", held.count());
    }
    stages.clear();
    TimedHdfs.CALLS.clear();
    answer.put("began_ns", System.nanoTime());
    Dataset<Row> rows = order.has("topic") ? received(order.get("topic")) : held;
    rows.write()
        .format(order.get("format").asText())
        .options(texts(order.get("options")))
        .mode(order.get("mode").asText())
        .save(order.get("path").asText());
    answer.put("done_ns", System.nanoTime());
    session.sparkContext().listenerBus().waitUntilEmpty();
    answer.set("kafka", JSON.valueToTree(stages.ofKafka));
    answer.set("tasks", JSON.valueToTree(stages.others));
    answer.set("hdfs", JSON.valueToTree(TimedHdfs.CALLS));
    return answer;
  }

  /** Return the rows of all messages of a topic that carry the subject's header. */
  private Dataset<Row> received(JsonNode topic) {
    Dataset<Row> messages =
        session.read().format("kafka").options(texts(topic.get("options"))).option("includeHeaders", "true").load();
    String header = "exists(headers, each -> each.key = 'subjectId' AND CAST(each.value AS STRING) = '%s')";
    messages = messages.where(String.format(header, topic.get("subject").asText()));
    if (topic.get("limit").asLong() > 0) {
      messages = messages.limit(topic.get("limit").asInt());
    }
    return messages
        .select(org.apache.spark.sql.avro.functions.from_avro(functions.col("value"), topic.get("schema").asText())
            .as("row"))
        .select("row.*");
  }

  private static Map<String, String> texts(JsonNode object) {
    return JSON.convertValue(object, new TypeReference<>() {});
  }

  /** Start and end of each stage; those that read Kafka, and decode what they read, are listed separately. */
  private static final class Stages extends SparkListener {
    private final Queue<long[]> ofKafka = new ConcurrentLinkedQueue<>();
    private final Queue<long[]> others = new ConcurrentLinkedQueue<>();

    @Override
    public void onStageCompleted(SparkListenerStageCompleted completed) {
      StageInfo stage = completed.stageInfo();
      long[] span = {
        (Long) stage.submissionTime().get() * 1_000_000 + OFFSET_NS,
        (Long) stage.completionTime().get() * 1_000_000 + OFFSET_NS,
      };
      boolean reads = stage.rddInfos().mkString(" ").contains("KafkaSourceRDD");
      (reads ? ofKafka : others).add(span);
    }

    private void clear() {
      ofKafka.clear();
      others.clear();
    }
  }
}
