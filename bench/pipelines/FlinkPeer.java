// The benchmark's work in Flink SQL: java FlinkPeer BOOTSTRAP CHECKPOINTS, then lines "WORK TOPIC" on standard
// input, each answered by the seconds that a job over all of the topic took.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

public final class FlinkPeer {
    private static final String READINGS =
            "CREATE TABLE readings (device STRING, `at` TIMESTAMP_LTZ(3), celsius DOUBLE, site STRING,"
                    + " WATERMARK FOR `at` AS `at` - INTERVAL '2' SECOND) WITH ("
                    + "'connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%s',"
                    + "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',"
                    + "'properties.isolation.level' = 'read_committed',"
                    + "'properties.max.poll.records' = '20000',"
                    + "'properties.max.partition.fetch.bytes' = '16777216',"
                    + "'properties.fetch.max.bytes' = '67108864',"
                    + "'properties.receive.buffer.bytes' = '1048576',"
                    + "'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601')";
    private static final String WINDOWS =
            "INSERT INTO windows SELECT device, window_start, window_end, AVG(celsius), COUNT(*)"
                    + " FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(`at`), INTERVAL '10' SECOND))"
                    + " GROUP BY device, window_start, window_end";
    private static final String PROJECTION =
            "INSERT INTO projected SELECT device, celsius * 1.8E0 + 32E0, `at` FROM readings";

    public static void main(String[] arguments) throws Exception {
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.split(" ");
            long began = System.nanoTime();
            run(words[0], words[1], arguments[0], arguments[1]);
            System.out.println((System.nanoTime() - began) / 1e9);
        }
    }

    private static void run(String work, String topic, String bootstrap, String checkpoints) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("parallelism.default", "2");
        settings.setString("state.backend.type", "rocksdb");
        settings.setString("execution.checkpointing.interval", "10 s");
        settings.setString("execution.checkpointing.incremental", "true");
        settings.setString("execution.checkpointing.dir", checkpoints);
        settings.setString("pipeline.object-reuse", "true");
        settings.setString("taskmanager.memory.managed.size", "512m");
        settings.setString("table.local-time-zone", "UTC");
        TableEnvironment tables =
                TableEnvironment.create(EnvironmentSettings.newInstance().withConfiguration(settings).build());
        tables.executeSql(String.format(READINGS, topic, bootstrap));
        tables.executeSql(
                "CREATE TABLE windows (device STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3),"
                        + " celsius DOUBLE, readings BIGINT) WITH ('connector' = 'blackhole')");
        tables.executeSql(
                "CREATE TABLE projected (device STRING, fahrenheit DOUBLE, `at` TIMESTAMP_LTZ(3))"
                        + " WITH ('connector' = 'blackhole')");
        tables.executeSql(work.equals("window") ? WINDOWS : PROJECTION).await();
    }
}
