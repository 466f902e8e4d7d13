# A bot's session with an arena, in lines of JSON on standard input and output. It knows no game.
#
# Source this file, define `decide` (and `begin` and `hear` if you need them), and call `play GAME…`.
#
#   begin    a match begins: forget the last one. ${match[game]}, ${match[seat]} … are the fields of `match`
#   hear     something has happened: ${news[kind]} and its other fields
#   decide   a question is asked: ${question[kind]} and its other fields. Set `answer`, in JSON: answer='"fold"'
#            ${legal[@]} are the legal answers, in JSON; for a range it is empty, and ${question[min]} and
#            ${question[max]} are its ends
#
# A list of texts is one text with spaces: ${question[hand]} is "As Td 9h". Other lists and maps are JSON.
#
# One jq process reads all messages. A jq process for every message would be much slower.

readonly FS=$'\x1f' # session.jq puts it between fields

declare -A match=() question=() news=()
declare -a legal=()

begin() { :; }
hear() { :; }

# Sets `answer` to a random legal answer.
any_legal() {
  if ((${#legal[@]})); then
    answer=${legal[SRANDOM % ${#legal[@]}]}
  else
    local min=${question[min]} max=${question[max]}
    answer=$((min + (SRANDOM << 30 | SRANDOM & 0x3fffffff) % (max - min + 1)))
  fi
}

# Plays these games until the arena closes standard input.
play() {
  local kind id ask fields answer asked='' status=0

  jq -nc --arg name "${ARENA_NAME:-bash}" '{type: "hello", protocol: 1, $name, games: $ARGS.positional}' --args "$@"

  while IFS=$FS read -r kind id ask fields; do
    case $kind in
      match)
        read_into match "$fields"
        begin
        printf '{"type":"ready","match":%s,"nonce":"%s"}\n' "$id" "$SRANDOM"
        ;;
      news)
        if [[ $ask != "$asked" ]]; then # the news of a repeated question are old
          read_into news "$fields"
          hear
        fi
        ;;
      legal)
        IFS=$FS read -ra legal <<<"$fields"
        ;;
      ask)
        if [[ $ask != "$asked" ]]; then
          read_into question "$fields"
          answer=null
          decide
          asked=$ask
        fi
        say_answer
        ;;
      again) # an answer was refused in practice mode: answer again
        printf '%s\n' "$fields" >&2
        any_legal
        say_answer
        ;;
      refused)
        printf '%s\n' "$fields" >&2
        status=1
        ;;
      unknown)
        printf '%s\n' "$fields" >&2
        exit 1
        ;;
    esac
  done < <(exec jq --unbuffered -nrf "$(dirname "${BASH_SOURCE[0]}")/session.jq")
  exit "$status"
}

say_answer() {
  printf '{"type":"answer","match":%s,"ask":%s,"value":%s}\n' "$id" "$ask" "$answer"
}

# read_into MAP FIELDS: reads names and values, which alternate, into a map.
read_into() {
  local -n map=$1
  local -a words
  local i
  IFS=$FS read -ra words <<<"$2"
  map=()
  for ((i = 0; i < ${#words[@]}; i += 2)); do
    map[${words[i]}]=${words[i + 1]-}
  done
}
