import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetryContext;
import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;

/** Keeps what clients push to a broker, one file each, in the folder that telemetry.receiver.folder names. */
public class TelemetryReceiver implements MetricsReporter, ClientTelemetryExporterProvider, ClientTelemetryExporter {
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private Path folder;

    @Override
    public void configure(Map<String, ?> configs) {
        folder = Path.of(String.valueOf(configs.get("telemetry.receiver.folder")));
    }

    @Override
    public ClientTelemetryExporter clientTelemetryExporter() {
        return this;
    }

    @Override
    public void exportMetrics(ClientTelemetryContext context, ClientTelemetryPayload payload) {
        ByteBuffer data = payload.data().duplicate();
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        try {
            Path part = folder.resolve(NUMBER.incrementAndGet() + ".part");
            Files.write(part, bytes);
            Files.move(part, folder.resolve(part.getFileName().toString().replace(".part", ".otlp")));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
