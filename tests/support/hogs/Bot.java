import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A whole bot in one file, without a library: `java Bot [DEED]` plays the first legal answer, and does its deed at its third
 * decision. What the deeds are is in bot.py beside it. The JDK has no JSON; what is needed of it is at the end.
 */
public class Bot {
    static final int HOARD_MIB = 320;
    static final List<byte[]> hoard = new ArrayList<>();
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws IOException, InterruptedException {
        String deed = arguments.length > 0 ? arguments[0] : "hello";
        String name = System.getenv().getOrDefault("ARENA_NAME", "bot");
        say("{\"type\":\"hello\",\"protocol\":1,\"name\":\"" + name + "\",\"games\":[\"ace_king_queen\"]}");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int asked = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String type = field(line, "type");
            String match = field(line, "match");
            if ("\"match\"".equals(type)) {
                say("{\"type\":\"ready\",\"match\":" + match + ",\"nonce\":\"java\"}");
            } else if ("\"ask\"".equals(type)) {
                asked++;
                if (asked == 3) {
                    perform(deed);
                }
                String value = first(field(line, "legal"));
                say("{\"type\":\"answer\",\"match\":" + match + ",\"ask\":" + field(line, "ask") + ",\"value\":" + value + "}");
            }
        }
    }

    static void say(String message) {
        out.print(message + "\n");
        out.flush();
    }

    // ---- Deeds

    static void perform(String deed) throws InterruptedException {
        switch (deed) {
            case "hog":
                for (int piece = 0; piece < HOARD_MIB / 8; piece++) {
                    byte[] more = new byte[8 << 20];
                    Arrays.fill(more, (byte) 1);
                    hoard.add(more);
                    Thread.sleep(2);
                }
                break;
            case "crash":
                System.err.println("it was the butler");
                System.exit(1);
                break;
            case "spin":
                spin();
                break;
            case "stall":
                Thread.sleep(Long.MAX_VALUE);
                break;
            case "ponder":
                Thread thread = new Thread(Bot::spin);
                thread.setDaemon(true);
                thread.start();
                break;
            default:
                break;
        }
    }

    static void spin() {
        while (true) {
        }
    }

    // ---- JSON: values are kept as they are written

    /** A field's value in an object, wherever it stands there; null if there is none. */
    static String field(String object, String name) {
        String key = '"' + name + '"';
        int depth = 0;
        for (int at = 0; at < object.length(); at++) {
            char letter = object.charAt(at);
            if (letter == '"') {
                int end = endOfString(object, at);
                if (depth == 1 && object.substring(at, end).equals(key) && end < object.length() && object.charAt(end) == ':') {
                    return valueAt(object, end + 1);
                }
                at = end - 1;
            } else if (letter == '{' || letter == '[') {
                depth++;
            } else if (letter == '}' || letter == ']') {
                depth--;
            }
        }
        return null;
    }

    /** The first legal answer of a list, or the least of a range. */
    static String first(String legal) {
        return legal.startsWith("[") ? valueAt(legal, 1) : field(legal, "min");
    }

    /** The value that begins somewhere, up to the comma or bracket behind it. */
    static String valueAt(String text, int begin) {
        int depth = 0;
        int at = begin;
        for (; at < text.length(); at++) {
            char letter = text.charAt(at);
            if (depth == 0 && (letter == ',' || letter == '}' || letter == ']')) {
                break;
            }
            if (letter == '"') {
                at = endOfString(text, at) - 1;
            } else if (letter == '{' || letter == '[') {
                depth++;
            } else if (letter == '}' || letter == ']') {
                depth--;
            }
        }
        return text.substring(begin, at).strip();
    }

    /** Where the string that begins somewhere has ended. */
    static int endOfString(String text, int begin) {
        int at = begin + 1;
        while (at < text.length() && text.charAt(at) != '"') {
            at += text.charAt(at) == '\\' ? 2 : 1;
        }
        return Math.min(at + 1, text.length());
    }
}
