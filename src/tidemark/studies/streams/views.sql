-- Views of the metrics database, one row per run.
CREATE VIEW throughput AS
SELECT r.run_id, s.system, s.mode, s.batch_size, s.stack, s.sweep, r.run, r.cold, r.events,
       r.events / (r.elapsed_ns / 1e9) AS harness_events_per_s,
       r.events / (o.write_ns / 1e9) AS system_events_per_s
FROM runs r
JOIN series s USING (series_id)
JOIN (SELECT run_id, sum(write_ns) AS write_ns FROM operations GROUP BY run_id) o USING (run_id);

CREATE VIEW write_times AS
SELECT r.run_id, s.system, s.mode, s.batch_size, s.stack, s.sweep, r.run, r.cold, count(*) AS operations,
       quantile_cont(o.write_ns, 0.5) / 1e6 AS median_ms,
       (quantile_cont(o.write_ns, 0.75) - quantile_cont(o.write_ns, 0.25)) / 1e6 AS iqr_ms,
       quantile_cont(o.write_ns, 0.9) / 1e6 AS p90_ms,
       quantile_cont(o.write_ns, 0.99) / 1e6 AS p99_ms,
       quantile_cont(o.write_ns, 0.999) / 1e6 AS p999_ms,
       max(o.write_ns) / 1e6 AS max_ms
FROM operations o
JOIN runs r USING (run_id)
JOIN series s USING (series_id)
GROUP BY ALL;
