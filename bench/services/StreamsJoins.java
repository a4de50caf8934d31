// The joins of the benchmark in Kafka Streams: java StreamsJoins BOOTSTRAP APPLICATION WORK THREADS DIRECTORY

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;

public final class StreamsJoins {
    public record Reading(String device, double celsius, String place, long at) {}

    public record Setting(String device, double limit, String owner) {}

    public record Looked(String device, double celsius, double limit, long at) {}

    public record Pair(String device, double first, double second, long at) {}

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration SPAN = Duration.ofSeconds(10);

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments[3]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put("auto.offset.reset", "earliest");
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, Reading> left = stream(builder, "left");
        String out = arguments[1] + ".out";
        if (arguments[2].equals("looked")) {
            left.join(
                            builder.table("settings", Consumed.with(Serdes.String(), serde(Setting.class))),
                            (reading, setting) ->
                                    new Looked(reading.device(), reading.celsius(), setting.limit(), reading.at()),
                            Joined.with(Serdes.String(), serde(Reading.class), serde(Setting.class)))
                    .to(out, Produced.with(Serdes.String(), serde(Looked.class)));
        } else {
            left.join(
                            stream(builder, "right"),
                            (first, second) ->
                                    new Pair(
                                            first.device(),
                                            first.celsius(),
                                            second.celsius(),
                                            Math.max(first.at(), second.at())),
                            JoinWindows.ofTimeDifferenceAndGrace(SPAN, SPAN),
                            StreamJoined.with(Serdes.String(), serde(Reading.class), serde(Reading.class)))
                    .to(out, Produced.with(Serdes.String(), serde(Pair.class)));
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private static KStream<String, Reading> stream(StreamsBuilder builder, String topic) {
        return builder.stream(topic, Consumed.with(Serdes.String(), serde(Reading.class)));
    }

    private static <T> Serde<T> serde(Class<T> type) {
        return Serdes.serdeFrom(
                (topic, value) -> {
                    try {
                        return value == null ? null : JSON.writeValueAsBytes(value);
                    } catch (IOException error) {
                        throw new UncheckedIOException(error);
                    }
                },
                (topic, bytes) -> {
                    try {
                        return bytes == null ? null : JSON.readValue(bytes, type);
                    } catch (IOException error) {
                        throw new UncheckedIOException(error);
                    }
                });
    }
}
