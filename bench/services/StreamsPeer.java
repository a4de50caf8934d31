// The benchmark's work in Kafka Streams: java StreamsPeer BOOTSTRAP APPLICATION WORK THREADS DIRECTORY

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

public final class StreamsPeer {
    public record Reading(String device, double celsius, String place, long at) {}

    public record Fahrenheit(String device, double fahrenheit, long at) {}

    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) {
        String work = arguments[2];
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments[3]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put("auto.offset.reset", "earliest");
        settings.put(
                StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
                work.equals("count") ? StreamsConfig.EXACTLY_ONCE_V2 : StreamsConfig.AT_LEAST_ONCE);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, byte[]> input =
                builder.stream("readings", Consumed.with(Serdes.String(), Serdes.ByteArray()));
        if (work.equals("count")) {
            input.mapValues(StreamsPeer::decode)
                    .mapValues(reading -> new byte[0])
                    .groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
                    .count(Materialized.as("counts"));
        } else {
            input.mapValues(StreamsPeer::convert)
                    .to(arguments[1] + ".out", Produced.with(Serdes.String(), Serdes.ByteArray()));
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private static Reading decode(byte[] value) {
        try {
            return JSON.readValue(value, Reading.class);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private static byte[] convert(byte[] value) {
        Reading reading = decode(value);
        try {
            return JSON.writeValueAsBytes(
                    new Fahrenheit(reading.device(), reading.celsius() * 1.8 + 32, reading.at()));
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }
}
