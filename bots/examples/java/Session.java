import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import sun.misc.Signal;

/**
 * A bot's session with an arena: its messages, its matches, and its connection. It connects again
 * when the connection is lost. It knows no game; the players do.
 */
public final class Session {
    /** Plays one match. */
    public interface Player {
        /** Answers a question with something that its {@code legal} allows. */
        JsonElement decide(JsonObject question);

        /** Takes note of what has happened. All news come before the next question. */
        default void hear(JsonObject news) {}
    }

    private static final int DONE = 1000, PROTOCOL = 1002, LOST = 1006, OVERSIZE = 1009, CRASHED = 1011;
    private static final int REPLACED = 4000, UNWELCOME = 4001;
    private static final int STOPPED = 130; // the exit status after a signal
    private static final Duration PATIENCE = Duration.ofSeconds(60), TIMEOUT = Duration.ofSeconds(10);
    private static final long FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 2_000;
    private static final long SILENCE_S = 30; // an arena answers hello within this time
    private static final int REASON_CHARS = 40; // a close reason has at most 123 bytes of UTF-8

    private final List<String> games;
    private final Function<JsonObject, Player> makePlayer;
    private final Map<String, Seat> seats = new HashMap<>(); // by the id of the match
    private String resume; // the latest session, or null
    private Standing standing = Standing.STRANGER;
    private Boolean finish; // what the welcome of this connection says of it; null after goodbye
    private volatile boolean leaving; // after the matches that are on
    private volatile BlockingQueue<Event> connected; // the events of this connection; null until welcome

    private Session(List<String> games, Function<JsonObject, Player> makePlayer) {
        this.games = games;
        this.makePlayer = makePlayer;
    }

    /**
     * Plays until the arena closes, and exits.
     *
     * @param games the names of the games that the bot plays
     * @param makePlayer makes the player for one match, from the message {@code match}
     * @param args the program's arguments: {@code --stdio} for lines instead of a WebSocket
     */
    public static void play(List<String> games, Function<JsonObject, Player> makePlayer, String... args)
            throws IOException, InterruptedException {
        var session = new Session(games, makePlayer);
        switch (String.join(" ", args)) {
            case "" -> System.exit(session.playOverWebSocket());
            case "--stdio" -> System.exit(session.playOverLines());
            default -> {
                System.err.println("expected no arguments or --stdio, got " + String.join(" ", args));
                System.exit(2);
            }
        }
    }

    /** A random legal answer, from a list or from a range of whole numbers. */
    public static JsonElement anyLegal(JsonElement legal) {
        var random = ThreadLocalRandom.current();
        if (legal instanceof JsonArray list) {
            return list.get(random.nextInt(list.size()));
        }
        var range = legal.getAsJsonObject();
        long min = range.get("min").getAsLong(), max = range.get("max").getAsLong();
        return new JsonPrimitive(random.nextLong(min, max + 1));
    }

    // ---- Messages

    /** How the bot stands with the arena. */
    private enum Standing {
        STRANGER, // the arena has not said welcome over this connection
        WELCOME,
        EXPIRED, // the arena was started again, and does not know the session
        FAILED // the bot cannot go on, and has printed why
    }

    /** A seat in a match. It stores its latest answer, because a question may come again. */
    private static final class Seat {
        final Player player;
        final String nonce = UUID.randomUUID().toString(); // a part of what the cards come from
        String ask = "";
        JsonElement answer;

        Seat(Player player) {
            this.player = player;
        }
    }

    private String hello() {
        var hello = message("hello", "name", System.getenv().getOrDefault("ARENA_NAME", "java"));
        hello.addProperty("protocol", 1);
        hello.add("games", new Gson().toJsonTree(games));
        hello.addProperty("tables", 8);
        hello.addProperty("batch", true);
        hello.addProperty("client", "card-arena example (java)");
        if (System.getenv("ARENA_TOKEN") != null) {
            hello.addProperty("token", System.getenv("ARENA_TOKEN"));
        }
        if (resume != null) {
            hello.addProperty("resume", resume);
        }
        finish = null;
        return hello.toString();
    }

    /** Handles a frame, and returns the frame to send, or null if there is none. */
    private String reply(String frame) {
        var heard = JsonParser.parseString(frame);
        var replies = new JsonArray();
        for (var message : heard instanceof JsonArray batch ? batch : List.of(heard)) {
            var reply = take(message.getAsJsonObject());
            if (reply != null) {
                replies.add(reply);
            }
        }
        if (leaving && finish != null && (finish || seats.isEmpty())) {
            replies.add(goodbye());
        }
        return switch (replies.size()) {
            case 0 -> null;
            case 1 -> replies.get(0).toString();
            default -> replies.toString();
        };
    }

    private JsonObject take(JsonObject message) {
        return switch (text(message, "type")) {
            case "welcome" -> welcome(message);
            case "match" -> sit(message);
            case "ask" -> answer(message);
            case "past" -> hear(message);
            case "over" -> leave(message);
            case "refused" -> refused(message);
            default -> throw new IllegalArgumentException("version 1 has no message of type " + text(message, "type"));
        };
    }

    private JsonObject welcome(JsonObject welcome) {
        resume = text(welcome, "session");
        finish = welcome.has("finish") && welcome.get("finish").getAsBoolean();
        standing = Standing.WELCOME;
        return null;
    }

    /** Said once per connection. An arena that does not know finish hears it when no match is on. */
    private JsonObject goodbye() {
        var goodbye = message("goodbye");
        if (finish) {
            goodbye.addProperty("finish", true);
        }
        finish = null;
        return goodbye;
    }

    private JsonObject sit(JsonObject match) {
        var seat = seats.computeIfAbsent(text(match, "match"), id -> new Seat(makePlayer.apply(match)));
        return message("ready", "match", text(match, "match"), "nonce", seat.nonce);
    }

    private JsonObject answer(JsonObject question) {
        var seat = seats.get(text(question, "match"));
        if (!text(question, "ask").equals(seat.ask)) {
            hear(question);
            seat.answer = seat.player.decide(question);
            seat.ask = text(question, "ask");
        }
        return answered(question, seat.answer);
    }

    private JsonObject hear(JsonObject message) {
        var player = seats.get(text(message, "match")).player;
        message.getAsJsonArray("news").forEach(news -> player.hear(news.getAsJsonObject()));
        return null;
    }

    private JsonObject leave(JsonObject over) {
        if (over.has("standing")) { // a competition is over
            System.err.println(text(over.getAsJsonObject("standing"), "text"));
        }
        if (seats.containsKey(text(over, "match"))) {
            hear(over);
            seats.remove(text(over, "match"));
        }
        return null;
    }

    private JsonObject refused(JsonObject refused) {
        System.err.println(text(refused, "code") + ": " + text(refused, "text"));
        var legal = refused.get("legal");
        if (legal != null && !legal.isJsonNull()) { // practice mode: answer again
            var seat = seats.get(text(refused, "match"));
            seat.answer = anyLegal(legal);
            return answered(refused, seat.answer);
        }
        standing = Standing.FAILED;
        if (text(refused, "code").equals("session")) { // begin a new session
            standing = Standing.EXPIRED;
            resume = null;
            seats.clear();
        }
        return null;
    }

    private static JsonObject answered(JsonObject question, JsonElement value) {
        var answer = message("answer", "match", text(question, "match"), "ask", text(question, "ask"));
        answer.add("value", value);
        return answer;
    }

    private static JsonObject message(String type, String... fields) {
        var message = new JsonObject();
        message.addProperty("type", type);
        for (int i = 0; i < fields.length; i += 2) {
            message.addProperty(fields[i], fields[i + 1]);
        }
        return message;
    }

    private static String text(JsonObject message, String field) {
        return message.get(field).getAsString();
    }

    // ---- Lines

    private int playOverLines() throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        var said = hello();
        while (true) {
            if (said != null) {
                out.print(said + "\n"); // println would use the system's line end
                out.flush();
            }
            var line = in.readLine();
            if (line == null) {
                return standing == Standing.FAILED ? 1 : 0;
            }
            said = reply(line);
        }
    }

    // ---- WebSocket

    /** What happens on a connection: whole frames, perhaps the signal to leave, and at last its end. */
    private sealed interface Event {}

    private record Frame(String text) implements Event {}

    private record Signalled() implements Event {}

    private record Closed(int code, String reason) implements Event {}

    /** Puts the events of a connection into a queue, so that one thread handles all of them. */
    private static final class Listener implements WebSocket.Listener {
        final BlockingQueue<Event> events = new LinkedBlockingQueue<>();
        private final StringBuilder parts = new StringBuilder(); // of a frame in several fragments

        @Override
        public CompletionStage<?> onText(WebSocket socket, CharSequence data, boolean last) {
            parts.append(data);
            if (last) {
                events.add(new Frame(parts.toString()));
                parts.setLength(0);
            }
            socket.request(1);
            return null;
        }

        @Override
        public CompletionStage<?> onClose(WebSocket socket, int code, String reason) {
            events.add(new Closed(code, reason));
            return null;
        }

        @Override
        public void onError(WebSocket socket, Throwable error) {
            events.add(new Closed(LOST, error.toString()));
        }
    }

    /** Has the bot leave. The second signal, or one without a connection, ends the program at once. */
    private synchronized void onSignal(Signal signal) {
        var events = connected;
        if (leaving || events == null) {
            Runtime.getRuntime().halt(STOPPED);
        }
        leaving = true;
        events.add(new Signalled());
    }

    /** Connects, and connects again until the session is over; returns the exit status. */
    private int playOverWebSocket() throws InterruptedException {
        var url = System.getenv().getOrDefault("ARENA_URL", "ws://127.0.0.1:7700");
        if (!url.matches("wss?://\\S+")) {
            System.err.println("expected ws://host:port, got " + url);
            return 1;
        }
        Signal.handle(new Signal("INT"), this::onSignal);
        Signal.handle(new Signal("TERM"), this::onSignal);
        // With its own threads the client may miss a close that comes right behind a frame.
        var client = HttpClient.newBuilder().executor(Runnable::run).build();
        long lostAt = System.nanoTime(), pauseMs = FIRST_PAUSE_MS;
        while (true) {
            standing = Standing.STRANGER;
            var end = converse(client, URI.create(url));
            connected = null;
            var isFinal = switch (end.code) {
                case PROTOCOL, OVERSIZE, REPLACED, UNWELCOME -> true;
                default -> false;
            };
            if (standing == Standing.FAILED) {
                return 1;
            } else if (end.code == DONE) {
                return 0;
            } else if (isFinal && standing != Standing.EXPIRED) {
                System.err.printf("the arena has closed with %d: %s%n", end.code, end.reason);
                return 1;
            } else if (leaving && seats.isEmpty()) {
                return 0;
            }
            if (standing == Standing.WELCOME) {
                lostAt = System.nanoTime();
                pauseMs = FIRST_PAUSE_MS;
            }
            if (System.nanoTime() - lostAt > PATIENCE.toNanos()) {
                System.err.printf("no arena at %s for %d s: %s%n", url, PATIENCE.toSeconds(), end.reason);
                return 1;
            }
            Thread.sleep(pauseMs);
            pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
        }
    }

    /** Serves one connection, from hello to its end. */
    private Closed converse(HttpClient client, URI url) throws InterruptedException {
        var listener = new Listener();
        WebSocket socket;
        try {
            socket = client.newWebSocketBuilder().connectTimeout(TIMEOUT).buildAsync(url, listener).join();
        } catch (CompletionException error) {
            return new Closed(LOST, error.getCause().toString());
        }
        var events = listener.events;
        send(socket, hello(), events);
        for (var event = events.poll(SILENCE_S, TimeUnit.SECONDS); ; event = events.take()) {
            if (event == null) {
                socket.abort();
                return new Closed(LOST, "no answer to hello within " + SILENCE_S + " s");
            } else if (event instanceof Closed closed) {
                return closed;
            } else if (event instanceof Frame frame) {
                try {
                    var said = reply(frame.text);
                    connected = standing == Standing.WELCOME ? events : null;
                    send(socket, said, events);
                } catch (RuntimeException failure) {
                    return crash(socket, failure, events);
                }
            } else if (event instanceof Signalled) {
                System.err.printf("matches to finish: %d; Ctrl-C again leaves now%n", seats.size());
                send(socket, reply("[]"), events);
            }
        }
    }

    /** Sends a frame and waits until it is sent, because two must not overlap. */
    private static void send(WebSocket socket, String frame, BlockingQueue<Event> events) {
        if (frame != null) {
            socket.sendText(frame, true)
                    .exceptionally(error -> {
                        events.add(new Closed(LOST, error.toString())); // after earlier events
                        return socket;
                    })
                    .join();
        }
    }

    /** Tells the arena that this program has failed, and waits a moment for its close. */
    private Closed crash(WebSocket socket, RuntimeException failure, BlockingQueue<Event> events)
            throws InterruptedException {
        failure.printStackTrace();
        standing = Standing.FAILED;
        var reason = "failed: " + failure;
        socket.sendClose(CRASHED, reason.substring(0, Math.min(reason.length(), REASON_CHARS)));
        Event event;
        do {
            event = events.poll(1, TimeUnit.SECONDS);
        } while (event instanceof Frame);
        return new Closed(CRASHED, reason);
    }
}
