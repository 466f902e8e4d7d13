import com.google.gson.JsonObject;
import java.util.List;

/** Plays gin rummy well, and the other games at random. */
public final class Bot {
    private static final List<String> GAMES =
            List.of("ace_king_queen", "gin_rummy", "high_low", "three_card_poker", "blackjack");

    public static void main(String[] args) throws Exception {
        Session.play(GAMES, Bot::makePlayer, args);
    }

    static Session.Player makePlayer(JsonObject match) {
        return switch (match.get("game").getAsString()) {
            case "gin_rummy" -> new GinRummy(match);
            default -> question -> Session.anyLegal(question.get("legal"));
        };
    }
}
