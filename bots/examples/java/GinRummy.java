import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.Comparator;
import java.util.function.LongToDoubleFunction;
import java.util.stream.LongStream;

/**
 * Plays gin rummy by the melds that its hand can still make, and by what the other seat may want.
 *
 * <p>A set of cards is a {@code long} with one bit for each card: the thirteen cards of a suit, ace first,
 * then those of the next suit.
 */
final class GinRummy implements Session.Player {
    private static final String RANKS = "A23456789TJQK", SUITS = "shdc";
    private static final long PACK = (1L << 52) - 1;
    private static final long[] MELDS = LongStream.concat(sets(), runs()).toArray();
    private static final int[] MELD_POINTS = LongStream.of(MELDS).mapToInt(GinRummy::points).toArray();

    private static final double OUTS = 1.2, DANGER = 0.6; // in points of deadwood; found by trying
    private static final int KNOCK_LIMIT = 10, EAGER_TURNS = 4;

    private final int seat;
    private long out; // cards that are out of play
    private long taken; // what the other seat took from the discards and still has
    private int turns; // of this round

    GinRummy(JsonObject match) {
        seat = match.get("seat").getAsInt();
    }

    @Override
    public JsonElement decide(JsonObject question) {
        var hand = cards(question.getAsJsonArray("hand"));
        return switch (question.get("kind").getAsString()) {
            case "offer" -> new JsonPrimitive(melds(hand, card(question.get("upcard"))) ? "take" : "pass");
            case "draw" -> new JsonPrimitive(
                    melds(hand, card(question.get("discard"))) ? "discard" : "stock");
            case "turn" -> turn(hand);
            case "melds" -> JsonNull.INSTANCE; // the referee finds the best
            default -> Session.anyLegal(question.get("legal"));
        };
    }

    @Override
    public void hear(JsonObject news) {
        switch (news.get("kind").getAsString()) {
            case "dealt" -> {
                out = card(news.get("upcard"));
                taken = 0;
                turns = 0;
            }
            case "turn" -> {
                if (news.get("seat").getAsInt() != seat && !news.get("card").isJsonNull()) {
                    taken |= card(news.get("card")); // from the discards
                }
                taken &= ~card(news.get("discarded"));
                out = out & ~taken | card(news.get("discarded"));
            }
            default -> {} // not used
        }
    }

    /** Knocks early or with gin: later the other seat has little deadwood itself, and may undercut. */
    private JsonObject turn(long hand) {
        turns++;
        var unseen = PACK & ~hand & ~out & ~taken;
        var tidiest = best(hand, card -> -deadwood(hand & ~card));
        var knocks = deadwood(hand & ~tidiest) <= (turns <= EAGER_TURNS ? KNOCK_LIMIT : 0);
        var discard = knocks ? tidiest : best(hand, card -> worth(hand & ~card, card, unseen));
        var answer = new JsonObject();
        answer.addProperty("discard", name(discard));
        answer.addProperty("knock", knocks);
        return answer;
    }

    private static long best(long cards, LongToDoubleFunction worth) {
        return each(cards).boxed().max(Comparator.comparingDouble(worth::applyAsDouble)).orElseThrow();
    }

    private double worth(long kept, long discard, long unseen) {
        return OUTS * outs(kept, unseen) - DANGER * danger(discard, unseen) - deadwood(kept);
    }

    /** The points that the next card is expected to add to the melds. */
    private static double outs(long kept, long unseen) {
        long useful = 0;
        for (var meld : MELDS) {
            var missing = meld & ~kept;
            useful |= Long.bitCount(missing) == 1 ? missing : 0;
        }
        var gain = each(useful & unseen).mapToInt(card -> melded(kept | card) - melded(kept)).sum();
        return (double) gain / Long.bitCount(unseen);
    }

    /** How many melds of three the other seat may make with a card; those with cards it took count more. */
    private int danger(long discard, long unseen) {
        int danger = 0;
        for (var meld : MELDS) {
            var others = meld & ~discard;
            if (others != meld && Long.bitCount(others) == 2 && (others & ~(unseen | taken)) == 0) {
                danger += 1 + 3 * Long.bitCount(others & taken);
            }
        }
        return danger;
    }

    // ---- Cards and melds

    static int deadwood(long hand) {
        return points(hand) - melded(hand);
    }

    /** The most points of a hand that can be in melds. */
    static int melded(long hand) {
        return melded(hand, 0);
    }

    private static int melded(long hand, int first) {
        int best = 0;
        for (int i = first; i < MELDS.length; i++) {
            if ((MELDS[i] & ~hand) == 0) {
                best = Math.max(best, MELD_POINTS[i] + melded(hand & ~MELDS[i], i + 1));
            }
        }
        return best;
    }

    private static boolean melds(long hand, long card) {
        return melded(hand | card) > melded(hand);
    }

    private static int points(long cards) {
        return each(cards).mapToInt(card -> Math.min(Long.numberOfTrailingZeros(card) % 13 + 1, 10)).sum();
    }

    /** All sets: three or four cards of a rank. */
    private static LongStream sets() {
        return LongStream.range(0, 13).flatMap(rank -> {
            var four = (1L | 1L << 13 | 1L << 26 | 1L << 39) << rank;
            return LongStream.concat(LongStream.of(four), each(four).map(card -> four & ~card));
        });
    }

    /** All runs of three to five cards of a suit; a longer run is two of these. */
    private static LongStream runs() {
        return LongStream.rangeClosed(3, 5).flatMap(length -> LongStream.range(0, 4)
                .flatMap(suit -> LongStream.rangeClosed(0, 13 - length)
                        .map(first -> (1L << length) - 1 << suit * 13 + first)));
    }

    /** The cards of a set of cards, one by one. */
    private static LongStream each(long cards) {
        return LongStream.iterate(cards, rest -> rest != 0, rest -> rest & rest - 1).map(Long::lowestOneBit);
    }

    static long cards(Iterable<JsonElement> names) {
        long cards = 0;
        for (var name : names) {
            cards |= card(name);
        }
        return cards;
    }

    private static long card(JsonElement name) {
        var text = name.getAsString();
        return 1L << SUITS.indexOf(text.charAt(1)) * 13 + RANKS.indexOf(text.charAt(0));
    }

    private static String name(long card) {
        int place = Long.numberOfTrailingZeros(card);
        return "" + RANKS.charAt(place % 13) + SUITS.charAt(place / 13);
    }
}
