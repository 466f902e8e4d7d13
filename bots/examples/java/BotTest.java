import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;

/** Asks the bot what the arena would ask: {@code make test}. */
final class BotTest {
    public static void main(String[] args) {
        drawsWhatItCanMeld();
        knocksWithGin();
        countsDeadwood();
        playsTheOtherGames();
        System.out.println("ok");
    }

    private static void drawsWhatItCanMeld() {
        var bot = Bot.makePlayer(json("{'game': 'gin_rummy', 'seat': 0}"));
        var hand = cards("5s 6s 7s 9h 9d 9c Kd Qc 2h Ac");
        expect("\"take\"", bot.decide(ask("offer", hand, "upcard", "8s")));
        expect("\"pass\"", bot.decide(ask("offer", hand, "upcard", "Jh")));
        expect("\"discard\"", bot.decide(ask("draw", hand, "discard", "9s")));
        expect("\"stock\"", bot.decide(ask("draw", hand, "discard", "Kh")));
    }

    private static void knocksWithGin() {
        var bot = Bot.makePlayer(json("{'game': 'gin_rummy', 'seat': 0}"));
        var hand = cards("5s 6s 7s 9h 9d 9c Ah 2h 3h Kd 8s");
        expect("{\"discard\":\"Kd\",\"knock\":true}", bot.decide(ask("turn", hand, "drawn", "8s")));
        expect("null", bot.decide(ask("melds", hand, "legal", "")));
    }

    private static void countsDeadwood() {
        assert deadwood("As 2s 3s Qs Ks Ad") == 21 : "the ace is low";
        assert deadwood("7s 7h 7d 5s 6s") == 11 : "the seven is worth more in the set";
        assert deadwood("7s 7h 7d 7c 5s 6s") == 0 : "three sevens are enough for a set";
        assert deadwood("2c 3c 4c 5c 6c 7c 8c") == 0 : "a long run is two short ones";
    }

    private static void playsTheOtherGames() {
        var bot = Bot.makePlayer(json("{'game': 'high_low', 'seat': 3}"));
        bot.hear(json("{'kind': 'dealt'}"));
        expect("4", bot.decide(json("{'kind': 'bid', 'legal': [4]}")));
        bot = Bot.makePlayer(json("{'game': 'three_card_poker', 'seat': 0}"));
        expect("500000000000", bot.decide(json("""
                {'kind': 'ante', 'legal': {'min': 500000000000, 'max': 500000000000}}""")));
    }

    private static JsonObject ask(String kind, JsonArray hand, String field, String value) {
        var question = new JsonObject();
        question.addProperty("kind", kind);
        question.add("hand", hand);
        question.addProperty(field, value);
        return question;
    }

    private static int deadwood(String names) {
        return GinRummy.deadwood(GinRummy.cards(cards(names)));
    }

    private static JsonArray cards(String names) {
        var cards = new JsonArray();
        for (var name : names.split(" ")) {
            cards.add(name);
        }
        return cards;
    }

    private static JsonObject json(String text) {
        return JsonParser.parseString(text).getAsJsonObject();
    }

    private static void expect(String json, JsonElement got) {
        assert got.toString().equals(json) : "expected " + json + ", got " + got;
    }
}
