package tidemark;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/**
 * Runs one SQL job at a time, on a cluster in this JVM.
 *
 * <p>Serves /job through Loopback: POST starts a job, GET returns its state, DELETE cancels it. The body of a POST is
 * the path of a folder with Flink's config.yaml and the statements, job.sql, each with a semicolon at the end of its
 * last line; the last statement starts the job.
 */
public final class FlinkServer {
  private static JobClient job;
  private static CompletableFuture<JobExecutionResult> result;

  private FlinkServer() {}

  public static void main(String[] arguments) throws Exception {
    Loopback.serve(EnvironmentInformation.getVersion(), Map.of("/job", FlinkServer::answer));
  }

  private static String answer(String method, String body) throws Exception {
    return switch (method) {
      case "POST" -> start(Path.of(body));
      case "GET" -> state();
      case "DELETE" -> cancel();
      default -> throw new IllegalArgumentException(method);
    };
  }

  private static String start(Path folder) throws Exception {
    Configuration settings = GlobalConfiguration.loadConfiguration(folder.toString());
    TableEnvironment environment =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
    TableResult last = null;
    for (String statement : Files.readString(folder.resolve("job.sql")).split(";\n")) {
      last = environment.executeSql(statement);
    }
    job = last.getJobClient().orElseThrow();
    result = job.getJobExecutionResult();
    return job.getJobID().toString();
  }

  /** Return Flink's status of a running job; FAILED with the reason, or FINISHED, for one that has ended. */
  private static String state() throws Exception {
    if (!result.isDone()) {
      try {
        JobStatus status = job.getJobStatus().get();
        if (!status.isGloballyTerminalState()) {
          return status.toString();
        }
      } catch (IllegalStateException ended) {
        // The cluster is gone already, and the result is about to arrive.
      }
    }
    try {
      result.get();
      return "FINISHED";
    } catch (ExecutionException error) {
      return "FAILED: " + Loopback.causes(error.getCause());
    }
  }

  private static String cancel() throws Exception {
    job.cancel().get();
    return "CANCELED";
  }
}
