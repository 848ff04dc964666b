import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.a2aproject.sdk.A2A;
import org.a2aproject.sdk.client.Client;
import org.a2aproject.sdk.client.MessageEvent;
import org.a2aproject.sdk.client.TaskUpdateEvent;
import org.a2aproject.sdk.client.http.A2ACardResolver;
import org.a2aproject.sdk.client.transport.jsonrpc.JSONRPCTransport;
import org.a2aproject.sdk.client.transport.jsonrpc.JSONRPCTransportConfigBuilder;
import org.a2aproject.sdk.client.transport.spi.interceptors.auth.AuthInterceptor;
import org.a2aproject.sdk.spec.AgentCard;
import org.a2aproject.sdk.spec.Part;
import org.a2aproject.sdk.spec.TaskArtifactUpdateEvent;
import org.a2aproject.sdk.spec.TaskStatusUpdateEvent;
import org.a2aproject.sdk.spec.TextPart;

/** Calls an agent: Main http://127.0.0.1:8080/a2a/echo 'Hello', with the key in PARLEY_KEY. */
public final class Main {
    public static void main(String[] args) throws Exception {
        String key = System.getenv("PARLEY_KEY");
        CompletableFuture<Void> done = new CompletableFuture<>();
        AgentCard card = A2ACardResolver.builder().baseUrl(args[0]).build().getAgentCard();
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
