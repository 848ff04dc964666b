import java.net.URI;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import io.a2a.A2A;
import io.a2a.client.Client;
import io.a2a.client.MessageEvent;
import io.a2a.client.TaskUpdateEvent;
import io.a2a.client.http.A2ACardResolver;
import io.a2a.client.http.JdkA2AHttpClient;
import io.a2a.client.transport.jsonrpc.JSONRPCTransport;
import io.a2a.client.transport.jsonrpc.JSONRPCTransportConfigBuilder;
import io.a2a.client.transport.spi.interceptors.auth.AuthInterceptor;
import io.a2a.spec.AgentCard;
import io.a2a.spec.Part;
import io.a2a.spec.TaskArtifactUpdateEvent;
import io.a2a.spec.TaskStatusUpdateEvent;
import io.a2a.spec.TextPart;

/** Calls an agent: Main http://127.0.0.1:8080/a2a/echo 'Hello', with the key in PARLEY_KEY. */
public final class Main {
    public static void main(String[] args) throws Exception {
        String key = System.getenv("PARLEY_KEY");
        CompletableFuture<Void> done = new CompletableFuture<>();
        // This version of the SDK looks for cards at the root, and reads no card that has more than 1.0 knows.
        String path = URI.create(args[0]).getPath() + "/.well-known/agent-card.json";
        AgentCard card = new A2ACardResolver(new JdkA2AHttpClient(), args[0], null, path, Map.of("A2A-Version", "1.0"))
                .getAgentCard();
        var transport = new JSONRPCTransportConfigBuilder()
                .addInterceptor(new AuthInterceptor((scheme, context) -> key))
                .build();
        try (Client client = Client.builder(card)
                .withTransport(JSONRPCTransport.class, transport)
                .addConsumer((event, agent) -> {
                    if (event instanceof MessageEvent message) {
                        print(message.getMessage().parts());
                        done.complete(null);
                    } else if (event instanceof TaskUpdateEvent update) {
                        if (update.getUpdateEvent() instanceof TaskArtifactUpdateEvent artifact) {
                            print(artifact.artifact().parts());
                        } else if (update.getUpdateEvent() instanceof TaskStatusUpdateEvent status) {
                            System.err.println(status.status().state());
                            if (status.status().state().isFinal()) {
                                done.complete(null);
                            }
                        }
                    }
                })
                .streamingErrorHandler(done::completeExceptionally)
                .build()) {
            client.sendMessage(A2A.toUserMessage(args[1]));
            done.get(60, TimeUnit.SECONDS);
        }
    }

    private static void print(Iterable<Part<?>> parts) {
        for (Part<?> part : parts) {
            if (part instanceof TextPart text) {
                System.out.println(text.text());
            }
        }
    }
}
